"""Each kept log behind each prefix, in colours, and broken at a terminal's width gives the same answer.

Each log is read in two of the forms; ``make diagnose-forms`` reads all.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from amlstack.diagnose import Diagnosis, diagnose
from tests.support.diagnose.kept_logs import CASES, verdict
from tests.support.diagnose.log_texts import steps, traceback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KUBECTL = "[pod/train-abc12/pytorch] "
BEFORE = {
    "kubectl": KUBECTL,
    "compose": "trainer  | ",
    "syslog": "Feb  3 12:00:00 gpuvm python3[4242]: ",
    "kubernetes": "2023-05-10T12:00:00.123456789Z stdout F ",
    "ansi": "\x1b[31m",
    "ray": "(RayTrainWorker pid=7) ",
    "srun": "0: ",
    "mpirun": "[1,0]<stderr>:",
    "rank": "[rank0]: ",
    "default": "[default0]:",
    "default and rank": "[default0]:[rank0]: ",
    "kubectl and mpirun": f"{KUBECTL}[1,0]<stderr>:",
    "kubernetes and rank": "2023-05-10T12:00:00.123456789Z stderr F [rank0]: ",
}
RANKED = re.compile("srun|mpirun|rank|default")
"""Forms that say who wrote the lines."""


def _broken(text: str, width: int) -> str:
    text = re.sub(r"\x1b\[[\d;]*[mK]", "", text)
    rows = [line[at : at + width] for line in text.split("\n") for at in range(0, max(1, len(line)), width)]
    return "\n".join(rows)


def _by_powershell(text: str, width: int) -> str:
    """A program's stderr as PowerShell shows it: below its first words a record, all broken, at spaces if it can."""
    command = f"+ python grid.py\n+ {'~' * width * 2}\n    + CategoryInfo          : NotSpecified: (a:String) []\n \n"
    shown = f"python : reading the grid\nAt line:1 char:1\n{command}{text}"
    rows: list[str] = []
    for line in shown.split("\n"):
        rest = line
        while len(rest) > width:
            end = rest.rfind(" ", 0, width) + 1
            end = end if end and len(rest[end:].split(" ")[0]) <= width else width
            rows.append(rest[:end])
            rest = rest[end:]
        rows.append(rest)
    return "\n".join(rows)


def _behind(text: str, prefix: str, end: str = "") -> str:
    return "".join(f"{prefix}{line}{end}\n" for line in text.removesuffix("\n").split("\n"))


FORMS: dict[str, Callable[[str], str]] = {
    **{name: lambda text, prefix=prefix: _behind(text, prefix) for name, prefix in BEFORE.items()},  # type: ignore[misc]
    "coloured": lambda text: _behind(text, "\x1b[0;31m", "\x1b[0m\x1b[K"),
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "broken at 80": lambda text: _broken(text, 80),
    "broken at 100": lambda text: _broken(text, 100),
    "broken at 132": lambda text: _broken(text, 132),
    "kubectl, broken at 120": lambda text: _broken(_behind(text, KUBECTL), 120),
    "broken at 100, then kubectl": lambda text: _behind(_broken(text, 100), KUBECTL),
    "broken at 80, coloured": lambda text: _behind(_broken(text, 80), "\x1b[0;31m", "\x1b[0m\x1b[K"),
}
EXEMPT = {
    "launchers/a-note-above-an-excerpt-is-no-log": "a note begins with its mark",
    "exceptions/two-exceptions-ordered-by-the-clock": "a prefix with a time sets the clock",
    "several_ranks/timestamps-decide": "a prefix with a time sets the clock",
}
TEXTS = {
    name: {
        file.relative_to(folder): file.read_bytes().decode(errors="surrogateescape")
        for file in folder.rglob("*")
        if file.is_file() and file.name != "expected.json"
    }
    for name, folder in CASES.items()
    if name not in EXEMPT
}
LOGS = [
    name
    for name, files in TEXTS.items()
    if not any(file.suffix == ".json" or "\0" in text for file, text in files.items())
]
EVERY = "ALL_FORMS" in os.environ
CHOSEN = [
    (name, form)
    for at, name in enumerate(LOGS)
    for place, form in enumerate(FORMS)
    if EVERY or (place - at * 2) % len(FORMS) < 2
]


def _answer(one: Diagnosis, *, ranked: bool) -> tuple[object, ...]:
    return one.found, one.fatal, one.cause, None if ranked else one.rank


@for_each("name, form", CHOSEN)
def test_a_form_of_its_lines_changes_no_answer(name: str, form: str, tmp_path: Path) -> None:
    for path, text in TEXTS[name].items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", errors="surrogateescape", newline="") as out:
            out.write(FORMS[form](text))
    ranked = RANKED.search(form) is not None
    assert _answer(diagnose([tmp_path]), ranked=ranked) == _answer(verdict(name), ranked=ranked)


@for_each("width", [22, 25, 48, 58])
def test_what_powershell_broke_at_any_width_is_whole_again(width: int, tmp_path: Path) -> None:
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.53 GiB. GPU 0 has 0 bytes free"
    shown = _by_powershell(traceback(message), width)
    (tmp_path / "out.log").write_bytes(f"reading the grid\n{shown}".replace("\n", "\r\n").encode("utf-16"))
    one = diagnose([tmp_path])
    assert (one.cause, one.text) == ("cuda-out-of-memory", message)
    assert one.source is not None
    for last in (steps(60), "INFO training finished\n"):
        (tmp_path / "out.log").write_text(f"{shown}{last}")
        assert not diagnose([tmp_path]).found


def test_rows_of_one_width_without_powershells_record_are_lines_of_their_own(tmp_path: Path) -> None:
    rows = "reading rows of a grid\nKeyError: 'no rows at'\n" * 3
    (tmp_path / "out.log").write_text(f"{rows}~~~~~\n")
    assert diagnose([tmp_path]).text == "KeyError: 'no rows at'"
