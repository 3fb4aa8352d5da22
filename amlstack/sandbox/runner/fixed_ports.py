"""Ports that a job has fixed itself. Its nodes would have them to themselves; here they are one machine's.

Jobs that fix the same port run one after the other, whichever sandbox of this user they belong to: a runner holds a
lock for each, which the kernel frees with the process, however it ends.
"""

from __future__ import annotations

import fcntl
import re
from typing import TYPE_CHECKING, Any

from amlstack.base import paths
from amlstack.code_reading.code_files import texts
from amlstack.code_reading.shell import default_port, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import ExitStack
    from pathlib import Path

_OPTION = re.compile(r"--(?:master|main_process|main-process)[-_]port[= ]+[\"']?(?P<port>\d{1,5})\b")
_ENDPOINT = re.compile(r"--rdzv[-_]endpoint[= ]+[\"']?[^\s\"':]*:(?P<port>\d{1,5})\b")
_SHELL = re.compile(r"^[^#\n]*\bMASTER_PORT=[\"']?(?P<port>\d{1,5})\b", re.MULTILINE)
_CODE = (
    re.compile(r"^[^#\n]*\benviron\[[\"']MASTER_PORT[\"']\]\s*=\s*(?:str\()?[\"']?(?P<port>\d{1,5})\b", re.MULTILINE),
    re.compile(r"^[^#\n]*[\"']tcp://[^\"':\s]*:(?P<port>\d{1,5})[\"']", re.MULTILINE),
)
_DEFAULT = re.compile(
    r"^[^#\n]*\benviron\.setdefault\(\s*[\"']MASTER_PORT[\"']\s*,\s*[\"']?(?P<port>\d{1,5})\b", re.MULTILINE
)
_LAUNCHERS_OPTION = re.compile(r"--(?:master|main_process|main-process)[-_]port\b|--config_file\b")


def ports(command: str, distribution: str | None, variables: Mapping[str, Any], code: Path) -> tuple[int, ...]:
    """The ports that the variables, the command and the scripts of a job name, in order.

    Args:
        command: The shell command.
        distribution: ``PyTorch``, ``Mpi``, ``TensorFlow``, in any letter case; None for none.
        variables: The job's environment variables.
        code: A folder with its code.
    """
    found = {match["port"] for pattern in (_OPTION, _ENDPOINT, _SHELL) for match in pattern.finditer(command)}
    found.add(str(variables.get("MASTER_PORT", "")))
    if not _LAUNCHERS_OPTION.search(command):
        found |= {str(default_port(step)) for step in steps(command)}
    patterns = [*_CODE, _SHELL]
    if (distribution or "").lower() not in ("pytorch", "mpi") and "MASTER_PORT" not in variables:
        patterns.append(_DEFAULT)  # the others' is set before their code looks
    for text in texts(code, (".py", ".sh")):
        if "MASTER_PORT" in text or "tcp://" in text:
            found |= {match["port"] for pattern in patterns for match in pattern.finditer(text)}
    return tuple(sorted(int(port) for port in found if port.isdigit() and 0 < int(port) < 1 << 16))


def hold(wanted: Iterable[int], who: str, note: Callable[[str], None], until: ExitStack) -> None:
    """Waits for each port until no other job holds it.

    Args:
        wanted: Ports in ascending order: two jobs that want the same ones never wait for each other.
        who: This job, for those that wait for it.
        note: Takes one line when there is a wait.
        until: Lets go of them when it is closed.
    """
    folder = paths.cache() / "ports"
    folder.mkdir(parents=True, exist_ok=True)
    for port in wanted:
        lock = until.enter_context((folder / f"{port}.lock").open("a+"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            other = lock.read().strip() or "another one"
            note(f"port {port} is fixed in this job and taken by {other}: waits for its end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(f"{who}\n")
        lock.flush()
