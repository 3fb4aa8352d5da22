"""Lines of progress: what changes a resource has a line of its own, what only looks at it is counted on a terminal."""

from __future__ import annotations

import re
from typing import Any

import pytest

from amlstack.cli.console import INTERRUPTED, Progress


def events(op: str, number: int) -> list[dict[str, Any]]:
    urns = (f"urn:pulumi:sandbox::amlstack::azure-native:storage:StorageAccount::s{count}" for count in range(number))
    found = ({"resourcePreEvent": {"metadata": {"op": op, "urn": one, "type": one.split("::")[2]}}} for one in urns)
    return [{"preludeEvent": {}}, *found]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_preview_is_counted_on_a_terminal_and_silent_in_a_file(
    *, terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    progress = Progress()
    take = progress.follow("previewing", "updating")

    for event in (*events("create", 3), *events("create", 1)):
        take(event)

    lines = [re.sub(r"^ *[\d.]+s ", "", line) for line in re.split(r"\n|\r\x1b\[K", capsys.readouterr().out) if line]
    counted = ["· previewing: 1 resource", "· previewing: 2 resources", "· previewing: 3 resources"]
    assert lines == ["· previewing", *(counted if terminal else []), "· updating", "· creating StorageAccount s0"]


def test_a_ctrl_c_that_the_engine_has_taken_is_confirmed(capsys: pytest.CaptureFixture[str]) -> None:
    taken = "^C received; cancelling. If you would like to terminate immediately, press ^C again.\n"
    Progress().event({"stdoutEvent": {"message": taken, "color": "never"}})
    Progress().event({"stdoutEvent": {"message": "something else\n", "color": "never"}})
    (line,) = capsys.readouterr().out.splitlines()
    assert INTERRUPTED in line
