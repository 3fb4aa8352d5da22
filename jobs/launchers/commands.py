"""Findings on commands that a launcher cannot start several times."""

from __future__ import annotations

from amlstack.base.findings import Finding
from amlstack.code_reading.shell import last_step, starter


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
