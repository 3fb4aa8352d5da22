"""What a Python job file gets none of while it is read: the network, processes, credentials.

A script that submits its job when it is run must not do so because somebody asks whether it is right. The hook of
``sys.addaudithook`` sees each such call of this interpreter's own modules, and a file cannot remove it. It is a guard
against mistakes and no boundary: native code that makes its system calls by itself is not seen, nor is what a file
leaves behind for later.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET_VARIABLES: Final = re.compile(
    r"PULUMI_(CONFIG|CONFIG_PASSPHRASE|CONFIG_PASSPHRASE_FILE|CONFIG_SECRET_KEYS|ACCESS_TOKEN|BACKEND_URL)"
    r"|(ARM|AZURE|AWS|GOOGLE|IDENTITY|MSI|IMDS|ACTIONS_ID_TOKEN|ACTIONS_RUNTIME|SYSTEM_ACCESSTOKEN)(_.*)?"
    r"|IDTOKEN|SERVICEPRINCIPALKEY|(GITHUB|GH|HF|HUGGING_FACE_HUB|WANDB|UV_PUBLISH)_(TOKEN|API_KEY)"
    r"|.*(PASSWORD|PASSPHRASE|SECRET|CREDENTIAL|ACCESS_KEY|PRIVATE_KEY|SAS_TOKEN).*",
    re.IGNORECASE,
)
"""Names of variables that a job file does not see."""
_NETWORK: Final = frozenset({
    "socket.connect", "socket.sendto", "socket.sendmsg",
    "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo",
})  # fmt: skip
_PROCESSES: Final = frozenset({
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn",
})  # fmt: skip
_KEPT: Final = (".azure", ".pulumi/credentials.json", ".aws", ".config/gcloud", ".git-credentials", ".netrc")
"""Where tools keep who is signed in, below a person's folder."""
_OF_PROCESS: Final = re.compile(r"/proc/[^/]+/(task/[^/]+/)?(environ|mem)")

NETWORK, PROCESS, CREDENTIALS = "python-uses-network", "python-starts-process", "python-reads-credentials"
OF_AZURE_AI_ML: Final = (
    'Objects of azure.ai.ml are not read: `job.dump("job.yml")` writes one as the YAML that is '
    "(`amlstack check job.yml`); or write `job = Job(…)` with `from jobs import Job`."
)
_WORDS: Final = {
    NETWORK: "tries to reach the network",
    PROCESS: "tries to start a process",
    CREDENTIALS: "tries to read credentials",
}


class RefusedCallError(PermissionError):
    """A call that is refused while a job file is read. A library that only wants to know more can go on without."""


class RefusedNetworkError(BaseException):
    """The same of the network. No library can mean to catch it and try again: nothing would come of that but time."""


@dataclass
class Refusing:
    """What is refused of one file.

    Attributes:
        file: Its name, as its frames bear it.
        secret_files: Files of credentials, absolute.
        seen: The code of each refused call, what it was, and its line in the file, if it has one.
    """

    file: str
    secret_files: tuple[str, ...]
    seen: list[tuple[str, str, int | None]] = field(default_factory=list)

    def judge(self, event: str, args: tuple[Any, ...]) -> None:
        """Raises where an event of the interpreter is none for a job file."""
        if event == "open":
            if self._is_secret(args[0]):
                self._refuse(CREDENTIALS, f"open {Path(os.fsdecode(args[0])).name}")
        elif event in _NETWORK:
            self._refuse(NETWORK, event)
        elif event in _PROCESSES:
            self._refuse(PROCESS, event)

    def _is_secret(self, path: object) -> bool:
        if not isinstance(path, str | bytes):
            return False
        text = os.fsdecode(path)
        if text.startswith("/proc/"):
            return _OF_PROCESS.fullmatch(os.path.normpath(text)) is not None
        near = any(name.rsplit("/", 1)[-1] in text for name in self.secret_files)  # spares most files the look
        real = os.path.realpath(text) if near else ""
        return near and any(real == name or real.startswith(f"{name}/") for name in self.secret_files)

    def _refuse(self, code: str, call: str) -> None:
        frames = [frame for frame in traceback.extract_stack() if frame.filename == self.file]
        self.seen.append((code, call, frames[-1].lineno if frames else None))
        if code == NETWORK:
            raise RefusedNetworkError(call)
        raise RefusedCallError(f"a job file {_WORDS[code]}: {call}")


_active: list[Refusing] = []
_hooked = False


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _active and event in _WATCHED:
        now = _active.pop()  # what the refusal itself opens is not judged
        try:
            now.judge(event, args)
        finally:
            _active.append(now)


_WATCHED: Final = _NETWORK | _PROCESSES | {"open"}


@contextlib.contextmanager
def refusing(file: str) -> Iterator[Refusing]:
    """Refuse network, processes and credentials as long as a job file runs; its environment has no secrets.

    Args:
        file: Name of the file, as its frames bear it.
    """
    global _hooked  # noqa: PLW0603 - a hook is added once and can never be removed
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked = True
    hidden = {name: value for name, value in os.environ.items() if SECRET_VARIABLES.fullmatch(name)}
    refused = Refusing(file, _secret_files(hidden))
    for name in hidden:
        del os.environ[name]
    _active.append(refused)
    try:
        yield refused
    finally:
        _active.remove(refused)
        os.environ.update(hidden)


def _secret_files(hidden: dict[str, str]) -> tuple[str, ...]:
    home = os.path.expanduser("~")  # noqa: PTH111 - no person's folder is no error here
    named = [value for name, value in hidden.items() if name.upper().endswith(("_FILE", "_FILE_PATH", "_CONFIG_DIR"))]
    return tuple(os.path.realpath(each) for each in (*(f"{home}/{each}" for each in _KEPT), *named) if each)


def findings(refused: Refusing, path: Path, content: bytes, *, failed: bool) -> tuple[Finding, ...]:
    """What was refused, each once.

    Args:
        refused: After the file has run.
        path: The file.
        content: What it holds.
        failed: Whether the file did not come to its end. Where it did, a library could go on without a process.
    """
    remedy = 'Move it behind `if __name__ == "__main__":`, which is not run when the file is read.'
    if b"azure.ai.ml" in content:
        remedy = f"{remedy} {OF_AZURE_AI_ML}"
    return tuple(
        Finding(
            code,
            "",
            f"The file {_WORDS[code]} while it is read (`{call}`)",
            "Every check, dry run and preview reads a job file, without network, processes and credentials",
            remedy,
            level=Level.ERROR if failed or code != PROCESS else Level.WARNING,
            file=str(path),
            line=line,
        )
        for code, call, line in dict.fromkeys(refused.seen)
    )
