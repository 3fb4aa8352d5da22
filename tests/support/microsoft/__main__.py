"""``make microsoft-tests``: Microsoft's end-to-end tests of azure-ai-ml against a sandbox, a line for each folder.

Each test that does not pass has its reason: a kind that the sandbox refuses as not emulated, or a row of reasons.toml.
It ends with 1 when one has none.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.azure_ai_ml import POLLS
from tests.support.microsoft import source, workspace
from tests.support.running import running_sandbox

HERE: Final = Path(__file__).parent
COLUMNS: Final = ("passed", "failed", "not emulated", "not here", "skipped")
"""``not here``: what no sandbox can answer; ``skipped``: by the tests themselves."""
OPTIONS: Final = (
    *("-p", "devtools_testutils", "-p", "pytest_mock", "-p", "no:randomly", "-p", "no:cacheprovider"),
    *("--disable-socket", "--allow-hosts=127.0.0.1,localhost", "--allow-unix-socket"),
    *("-c", os.devnull, "--rootdir=.", "--continue-on-collection-errors", "-vv", "--tb=short", "--timeout=240"),
)
"""Of pytest. No test reaches another host than this one."""
_REFUSED: Final = re.compile(r"SandboxNotEmulated.*?Message: (?P<text>[^\n]*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a test: its folder, one of `COLUMNS`, the reason if it did not pass, and whether it is known."""

    test: str
    folder: str
    column: str
    reason: str
    known: bool = True


class Reasons:
    """The rows of reasons.toml: folders that are not run, why a test does not pass, and the tests of CI."""

    def __init__(self, path: Path = HERE / "reasons.toml") -> None:
        data = tomllib.loads(path.read_text("utf-8"))
        self.folders: dict[str, str] = data["folders"]
        self.rows: list[dict[str, str]] = data["reason"]
        self.examples: dict[str, str] = data["examples"]
        self.quick = [f"{group}::{name}" for group, names in data["quick"].items() for name in names]

    def verdict(self, row: dict[str, Any]) -> Verdict:
        """The verdict on one outcome, by the words of its failure."""
        test, text = str(row["test"]).removeprefix("tests/"), str(row["text"])
        folder = test.split("/", 1)[0]
        if row["outcome"] != "failed":
            return Verdict(test, folder, row["outcome"], text.rsplit("Skipped: ", 1)[-1].rstrip("')"))
        for known in self.rows:
            if re.search(known.get("test", ""), test) and re.search(known.get("text", ""), text):
                return Verdict(test, folder, known["column"], known["why"])
        if refused := _REFUSED.search(text):
            return Verdict(test, folder, "not emulated", refused["text"])
        return Verdict(test, folder, "failed", _last_words(text), known=False)


REASONS: Final = Reasons()


def _last_words(text: str) -> str:
    """The first line of the failure itself."""
    words = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return next(iter(words), text.strip().splitlines()[-1] if text.strip() else "no words")[:200]


def run(selected: list[str], configs: Path | None, keep: Path | None = None) -> list[dict[str, Any]]:
    """Runs files or folders below tests/ in a process of their own, against a sandbox of their own.

    Args:
        selected: Paths below ``tests``, or ids of tests.
        configs: The folder test_configs; None for what the sdist has.
        keep: A file to which the outcomes are written too.
    """
    with tempfile.TemporaryDirectory(prefix="microsoft-tests-", ignore_cleanup_errors=True) as made:
        folder = source.laid_out(Path(made) / "sdist", configs)
        results = keep or Path(made) / "results.jsonl"
        results.write_text("")
        with running_sandbox(Path(made) / "home") as sandbox:
            environ = {**os.environ, **sandbox.environ, **sandbox.endpoint.azure_names(), **workspace.lay_out(sandbox)}
            environ |= {"PYTHONPATH": f"{HERE / 'plugin'}{os.pathsep}{source.packages()}", "HOME": made}
            environ |= {"MICROSOFT_RESULTS": str(results), **POLLS}
            paths = [str(Path("tests") / one) for one in selected]
            command = [sys.executable, "-W", "ignore", "-m", "pytest", *OPTIONS, *paths]
            subprocess.run(command, cwd=folder, env=environ, stdout=subprocess.DEVNULL, check=False)
        return [json.loads(line) for line in results.read_text("utf-8").splitlines()]


def folders() -> list[str]:
    """The folders of the sdist that have end-to-end tests."""
    return sorted(path.parent.name for path in (source.sdist() / "tests").glob("*/e2etests"))


def functions(folder: str) -> int:
    """The number of end-to-end tests in a folder that is not run, each counted once whatever its parameters."""
    files = (source.sdist() / "tests" / folder / "e2etests").glob("test_*.py")
    return sum(len(re.findall(r"^\s*def test_", path.read_text("utf-8"), re.MULTILINE)) for path in files)


def table(verdicts: list[Verdict]) -> str:
    """Counts by folder, the total, and the share of emulated tests that passed."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in verdicts:
        counts[one.folder][one.column] += 1
        counts["all"][one.column] += 1
    lines = [f"| {' | '.join(('folder', *COLUMNS))} |", f"| --- |{' --: |' * len(COLUMNS)}"]
    for folder, found in [*sorted((k, v) for k, v in counts.items() if k != "all"), ("all", counts["all"])]:
        lines.append(f"| {' | '.join((folder, *(str(found[column]) for column in COLUMNS)))} |")
    judged = counts["all"]["passed"] + counts["all"]["failed"]
    share = f"{counts['all']['passed']} of {judged} tests of emulated kinds passed."
    return "\n".join([*lines, "", share])


def main() -> int:
    """Runs what is asked and prints counts and reasons; 0 when nothing failed without a reason."""
    parser = argparse.ArgumentParser(prog="make microsoft-tests", description=__doc__)
    parser.add_argument("tests", nargs="*", help="folders, files or ids below tests/; all emulated folders by default")
    parser.add_argument("--configs", default="", help=f"a folder test_configs; by default {source.ADDRESS} is asked")
    parser.add_argument("--results", type=Path, help="a file for the whole words of each outcome, as JSON lines")
    asked = parser.parse_args()
    try:
        chosen = asked.tests or [f"{name}/e2etests" for name in folders() if name not in REASONS.folders]
        found = run(chosen, source.configs(asked.configs), asked.results)
    except source.SourceError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    verdicts = [REASONS.verdict(row) for row in found]
    for one in verdicts:
        if one.column not in {"passed", "skipped"}:
            sys.stdout.write(f"{one.column:13}{one.test}\n{'':13}{one.reason}\n")
    if not asked.tests:
        for name, why in REASONS.folders.items():
            sys.stdout.write(f"not run      {name}: {why}\n")
            verdicts += [Verdict("", name, "not emulated", why)] * functions(name)
    sys.stdout.write(table(verdicts) + "\n")
    return int(not all(one.known for one in verdicts))


if __name__ == "__main__":
    sys.exit(main())
