"""The engine that is used: found or built, with a backend and a PATH of its own."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.engine import checkpoints
from amlstack.engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping

STACK = "sandbox"
PASSPHRASE = "sandbox"  # noqa: S105 - the sandbox stack holds no secret worth keeping; a real stack brings its own
SALT = "v1:jV7Os2VPr1I=:v1:UsNIiCV5yWyMqIu3:4C9eDr8pZnhFkobN2RWHGELkbKd/hw=="
"""Goes with the passphrase. A stack file without one gets another from the engine, which writes it there."""


QUICK = {"GOGC": "400", "GOMEMLIMIT": "2GiB"}
"""Environment of an engine that spends less on collecting garbage: a fifth of an `up` of hundreds of resources, whose
whole state it makes anew after each step. The limit is a soft one, beyond which it collects as often as ever."""
_NO_LOGS = """\
The Pulumi engine finds this file where it would make a folder, and therefore keeps no debug log of its own of each
command: writing that log was up to half of what a preview of many resources cost the engine. Remove the file to have
the logs, which `pulumi logs` lists.
"""


@dataclass(frozen=True, slots=True)
class Engine:
    """A Pulumi CLI with its Python language host.

    Attributes:
        folders: What goes in front of PATH, first one first.
        version: What ``pulumi version`` says, without the ``v``.
        official: Whether it boots a policy pack from its folder; the engine built from Go modules needs the launcher.
    """

    folders: tuple[Path, ...]
    version: str
    official: bool

    @property
    def pack(self) -> Path:
        """What to give ``--policy-pack``: absolute, because ``main: infra/`` makes infra/ the working directory."""
        return paths.PROJECT / "policies" if self.official else paths.PROJECT / "policies" / "analyzer"


def find() -> Engine:
    """The engine: from PATH, the pinned release or a build, cached for the next time. Progress goes to stderr.

    Raises:
        EngineError: None could be had; the finder has found why.
    """
    finder = [sys.executable, str(paths.PROJECT / "tools" / "engine"), "--json"]
    done = subprocess.run(finder, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise EngineError("no Pulumi engine could be had; the lines above give the reason")
    found = json.loads(done.stdout)
    folders = tuple(Path(folder) for folder in found["path"])
    return Engine(folders, found["version"], official=found["source"] != "build")


_OWN = {
    "PULUMI_DEBUG_COMMANDS": "1",  # --event-log is behind it
    "PYTHONUNBUFFERED": "1",
}


def environ(engine: Engine, sandbox: Mapping[str, str], backend: Path | None = None) -> dict[str, str]:
    """The environment of every engine command on the sandbox stack: this process's, and `variables` over it.

    Args:
        engine: The engine that :func:`find` gave.
        sandbox: What a client of the running sandbox needs (``Endpoint.environ()``).
        backend: Folder of the state; the sandbox stack's own by default.

    Raises:
        EngineError: The home holds files of others, or a state in it cannot be read and has no good copy.
    """
    return {**QUICK, **os.environ, **sandbox, **variables(engine, backend), **_OWN}


def users_own(engine: Engine) -> dict[str, str]:
    """The environment of an engine command on a stack of the user's own, with the user's backend and sign-in."""
    words = [*map(str, _front(engine)), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    return {**QUICK, **os.environ, "PATH": os.pathsep.join(dict.fromkeys(words)), **_OWN}


def _front(engine: Engine) -> list[Path]:
    """What every engine of this project has first on PATH: itself, and the Python that its language host starts."""
    return [*engine.folders, Path(sys.executable).parent]


def variables(engine: Engine, backend: Path | None = None) -> dict[str, str]:
    """What makes a plain ``pulumi`` one that works on the sandbox's backend, beside what a client of the sandbox needs.

    Args:
        engine: The engine.
        backend: Folder of the state; the sandbox stack's own by default.

    Raises:
        EngineError: The home holds files of others.
    """
    home = paths.home()
    try:
        homes.claim(home)
    except homes.ForeignHomeError as error:
        raise EngineError(str(error)) from None
    # The stand-in for azure-native is found by its name on PATH.
    front = [*_front(engine), paths.PROJECT / "amlstack" / "sandbox" / "bin"]
    words = [*map(str, front), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    backend = backend or home / "pulumi"
    backend.mkdir(mode=0o700, parents=True, exist_ok=True)
    homes.close(home)
    for told in checkpoints.mend(backend):
        print(told, file=sys.stderr)  # noqa: T201 - as the finder does
    keep_no_logs(home / "pulumi-home")
    return {
        "PATH": os.pathsep.join(dict.fromkeys(words)),
        "PULUMI_HOME": str(home / "pulumi-home"),
        # Without the backend's side-car files: an engine killed while it writes one leaves it empty, and no later
        # command can then read the stack ("failed to load checkpoint: EOF").
        "PULUMI_BACKEND_URL": f"file://{backend}?metadata=skip",
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_SKIP_UPDATE_CHECK": "1",
    }


def keep_no_logs(home: Path) -> None:
    """Have the engine keep no debug logs in its own home; a folder of them that is there already stays in use.

    The engine has no setting for it: it goes on without them where their folder cannot be made.

    Args:
        home: What `PULUMI_HOME` names.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), (home / "logs").open("x", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(_NO_LOGS)


def private_umask(env: Mapping[str, str]) -> int:
    """The umask of an engine: what it keeps in the sandbox's home is its owner's alone; -1 for this process's own."""
    return homes.OTHERS if env.get("PULUMI_HOME") == str(paths.home() / "pulumi-home") else -1


def select(env: Mapping[str, str]) -> None:
    """Make the sandbox stack the one that commands mean by default; create it when there is none.

    Raises:
        EngineError: The engine refused; its words are in the message.
    """
    if _is_selected(env):
        return
    done = subprocess.run(
        ["pulumi", "stack", "select", "--create", "--non-interactive", STACK],
        cwd=paths.PROJECT, env=dict(env), capture_output=True, text=True, check=False, umask=private_umask(env),
    )  # fmt: skip
    if done.returncode:
        raise EngineError(f"the stack could not be selected: {done.stderr.strip()}")


def _is_selected(env: Mapping[str, str]) -> bool:
    """Whether the stack exists and is the default already, by the engine's own files: asking it takes longer."""
    project = hashlib.sha1(os.fsencode(paths.PROJECT / "Pulumi.yaml"), usedforsecurity=False).hexdigest()
    stacks = paths.home() / "pulumi" / ".pulumi" / "stacks"
    try:
        (noted,) = Path(env["PULUMI_HOME"], "workspaces").glob(f"*-{project}-workspace.json")
        selected = json.loads(noted.read_text())["stacks"][env["PULUMI_BACKEND_URL"]]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return str(selected).endswith(f"/{STACK}") and any(stacks.glob(f"*/{STACK}.json"))
