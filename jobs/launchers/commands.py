"""Finding the training process in a shell command, so that a launcher can start it several times."""

from __future__ import annotations

import re
from typing import NamedTuple

from amlstack.base.findings import Finding

_PYTHON = re.compile(
    r"(?P<python>(?:\S*/)?python(?:3(?:\.\d+)?)?)(?:\s+-u(?=\s))?\s+(?P<rest>(?:-m\s+\S|[^\s-]).*)",
    re.DOTALL,
)
_SCRIPT = re.compile(r"(?P<rest>\S+\.py(?:\s.*)?)", re.DOTALL)
_STARTERS = re.compile(
    r"^(?:\S*/)?(?:torchrun|mpirun|mpiexec|deepspeed|horovodrun|accelerate)\b"
    r"|^(?:\S*/)?python\S*\s+-m\s+(?:torch\.distributed\.(?:run|launch)|accelerate\.commands\.launch)\b"
)


class Split(NamedTuple):
    """A command taken apart: what runs before, and the script or ``-m module`` with its arguments."""

    before: str
    program: str


def split(command: str) -> Split | None:
    """Take the last step of a command apart; None when that is not one python process.

    ``pip install -r r.txt && python -u train.py --lr 1`` is ``("pip install -r r.txt && ", "train.py --lr 1")``;
    torchrun runs the interpreter itself, with ``-u``, so that other interpreter flags would be lost: None too.
    """
    start = last_step(command)
    step = command[start:].rstrip()
    if starter(command):
        return None
    if match := _PYTHON.fullmatch(step):
        return Split(command[:start], match["rest"].strip())
    if match := _SCRIPT.fullmatch(step):
        return Split(command[:start], match["rest"].strip())
    return None


def starter(command: str) -> str | None:
    """The program by which the command's last step starts ranks itself (torchrun, mpirun, …), if it does."""
    match = _STARTERS.match(command[last_step(command) :])
    return match[0] if match else None


def starts_itself(command: str, ranks: int, launcher: str) -> tuple[Finding, ...]:
    """The finding on a command that starts ranks although each process of it is one rank already."""
    program = starter(command)
    if program is None or ranks <= 1:
        return ()
    return (
        Finding(
            "launcher-in-command",
            "command",
            f"The command starts ranks itself with `{program}`, and would be run {ranks} times",
            f"Under {launcher} every process is one rank",
            "Write the command as for one process, or use TorchRun, which launches per node.",
        ),
    )


def not_python(command: str, launcher: str) -> Finding:
    """The finding on a command whose last step is not one python process that ``launcher`` could start."""
    if program := starter(command):
        return Finding(
            "launcher-in-command",
            "command",
            f"The command starts the ranks itself with `{program}`",
            f"{launcher} writes that part, so that nodes and processes agree with the job",
            "Write the command as for one process (`python train.py …`), or leave the launcher out.",
        )
    step = command[last_step(command) :].strip()
    return Finding(
        "command-not-python",
        "command",
        f"The last step of the command, `{step if len(step) <= 60 else step[:57] + '…'}`, is not a python process",
        f"{launcher} starts a python script or module",
        "End the command with `python train.py …` or `python -m package …`.",
    )


def last_step(command: str) -> int:
    """Where the last step of a shell command begins, after ``&&``, ``;`` or a line end, quotes respected."""
    quote, position, begin = "", 0, 0
    end = len(command.rstrip().rstrip(";&"))
    while position < end:
        letter = command[position]
        if letter == "\\" and quote != "'":
            position += 2
            continue
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in {";", "\n"} or command.startswith("&&", position):
            after = position + (2 if letter == "&" else 1)
            if command[after:end].strip():
                begin = after
            position = after
            continue
        position += 1
    while begin < len(command) and command[begin].isspace():
        begin += 1
    return begin
