"""The table of the comparison with azure-ai-ml at the end of the test report.

Files of the corpus (AMLSTACK_CORPUS) stand there one by one, our own cases with ``-v``, else counted.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

ROWS = pytest.StashKey[list[tuple[str, str, str, str]]]()


class Table:
    """Gathers a row per compared file: where it is from, kind, name, verdict."""

    def __init__(self, config: pytest.Config) -> None:
        self.rows = config.stash.setdefault(ROWS, [])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        module, _, test = report.nodeid.rpartition("/")[2].partition("::")
        if report.when != "call" or "equals_azure_ai_ml" not in module or "[" not in test:
            return
        result = dict(report.user_properties)
        name = test[test.index("[") + 1 : -1]
        of = "corpus" if "corpus" in module else "own"
        kind = str(result.get("kind") or ("sweep" if "sweep" in module else "pipeline" if "pipeline" in module else ""))
        self.rows.append((of, kind or "command", name, verdict(report, test, result.get("verdict"))))


def verdict(report: pytest.TestReport, test: str, result: object) -> str:
    """The outcome of the comparison; a failed test is named as such, whatever it recorded before."""
    if report.failed:
        return "DIFFERS"
    if report.skipped:
        return "not compared"
    return str(result or ("refused by both" if "refused" in test else "the same"))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Table(config), "parity-table")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = sorted(config.stash.get(ROWS, []))
    if not rows:
        return
    terminalreporter.section("job files against azure-ai-ml")
    for line in lines(rows, whole=config.get_verbosity() > 0):
        terminalreporter.write_line(line)


def lines(rows: Iterable[tuple[str, str, str, str]], *, whole: bool) -> list[str]:
    """The table as text: every row that is to be seen by itself, then counts of each kind."""
    rows = list(rows)
    shown = [row for row in rows if whole or row[0] == "corpus" or row[3] == "DIFFERS"]
    width = max((len(row[2]) for row in shown), default=0)
    listed = [f"{verdict:16} {kind:9} {name:{width}} {of}" for of, kind, name, verdict in shown]
    counts = Counter((of, kind, verdict) for of, kind, _, verdict in rows)
    return [*listed, *(f"{count:5} {verdict} ({of}, {kind})" for (of, kind, verdict), count in sorted(counts.items()))]
