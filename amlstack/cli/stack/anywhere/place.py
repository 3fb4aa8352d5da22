"""Where a stack lives: on the sandbox, apart from everything real, or on Azure with the user's own backend."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack import engine as engines
from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.cli.stack import state as states
from amlstack.cli.stack.anywhere.sandboxed import SandboxedStack

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.cli.stack.anywhere.judged import JudgedStack
    from amlstack.cli.stack.state import State
    from amlstack.engine import Engine
    from amlstack.sandbox.server.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class StackPlace:
    """A stack as the engine reaches it.

    Attributes:
        stack: What ``--stack`` gets.
        env: The environment of each command.
        options: Further options of each command that runs the program.
        owner: Whose processes the engine's are.
        endpoint: The sandbox; None on Azure.
        backend: Folder of the state where it is ours; None for the user's own backend.
        made_up: Encrypted settings that have another value here.
    """

    stack: str
    env: Mapping[str, str]
    owner: Path
    options: tuple[str, ...] = ()
    endpoint: Endpoint | None = None
    backend: Path | None = None
    made_up: tuple[str, ...] = field(default=())

    @property
    def where(self) -> str:
        """For messages."""
        return f"the sandbox at {self.endpoint.url}" if self.endpoint else "Azure"

    def state(self) -> State:
        """What is recorded of the stack.

        Raises:
            EngineError: There is no such stack, or the backend is out of reach.
        """
        if self.backend is not None:
            file = states.files_in(self.backend).get(self.stack)
            return states.State() if file is None else states.read_file(file)
        try:
            return states.of_deployment(self.exported()["deployment"])
        except (KeyError, TypeError, AttributeError):
            raise engines.EngineError(self._unknown_form) from None

    def exported(self) -> dict[str, Any]:
        """The state in the user's backend as the engine exports it, secrets encrypted.

        Raises:
            EngineError: There is no such stack, or the backend is out of reach.
        """
        done = self._pulumi("stack", "export")
        if done.returncode:
            raise engines.EngineError(_without_stack(self.stack, done.stderr.strip()))
        try:
            return dict(json.loads(done.stdout))
        except (ValueError, TypeError):
            raise engines.EngineError(self._unknown_form) from None

    @property
    def _unknown_form(self) -> str:
        return f"the state of `{self.stack}` has a form that is not known here"

    def outputs(self) -> Mapping[str, object]:
        """The stack's outputs, secrets hidden.

        Raises:
            EngineError: The backend is out of reach.
        """
        if (recorded := self.state().outputs()) is not None:
            return recorded
        done = self._pulumi("stack", "output", "--json")
        if done.returncode:
            raise engines.EngineError(done.stderr.strip())
        outputs: dict[str, object] = json.loads(done.stdout)
        return outputs

    def _pulumi(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["pulumi", *words, "--stack", self.stack, "--non-interactive"]
        return subprocess.run(
            command, cwd=paths.PROJECT, env=dict(self.env), capture_output=True, text=True, check=False
        )


def on_the_sandbox(judged: JudgedStack, engine: Engine, endpoint: Endpoint) -> StackPlace:
    """The place of any stack's settings on this machine's sandbox; the stack `sandbox` has its own.

    Raises:
        EngineError: The engine refused to make the stack there.
    """
    if judged.stack == engines.STACK:
        env = engines.environ(engine, endpoint.environ())
        engines.select(env)
        return StackPlace(engines.STACK, env, endpoint.home, endpoint=endpoint, backend=endpoint.home / "pulumi")
    here = SandboxedStack.of(judged.stack, endpoint.home)
    env = engines.environ(engine, endpoint.environ(), here.backend)
    engines.clear_stale_lock(here.backend)
    made_up = here.prepare(judged.file, env)
    options = ("--config-file", str(here.config))
    return StackPlace(judged.stack, env, endpoint.home, options, endpoint, here.backend, made_up)


def on_azure(stack: str, engine: Engine) -> StackPlace:
    """The place of a stack of the user's own."""
    return StackPlace(stack, engines.users_own(engine), turn_of(stack, sandbox=False).parent)


def without_secrets(judged: JudgedStack, stack: str, engine: Engine, folder: Path) -> StackPlace:
    """The place of a preview that opens nothing: a copy of settings and state with made-up values for all secrets.

    It needs neither passphrase nor key, and where to sign in says the environment alone.

    Args:
        judged: The settings.
        stack: The stack's name in the user's backend.
        engine: The engine.
        folder: A folder for the copy, which the caller removes.

    Raises:
        EngineError: There is no such stack, or the backend is out of reach.
    """
    real = on_azure(stack, engine)
    exported = real.exported()
    here = SandboxedStack(folder, judged.stack)
    here.backend.mkdir(parents=True)
    own = {
        "PULUMI_BACKEND_URL": f"file://{here.backend}?metadata=skip",
        "PULUMI_CONFIG_PASSPHRASE": engines.PASSPHRASE,
        "PULUMI_CONFIG_PASSPHRASE_FILE": "",
    }
    env = {**real.env, **own}
    made_up = here.prepare(judged.file, env)
    here.restore(exported, env)
    options = ("--config-file", str(here.config))
    return StackPlace(judged.stack, env, real.owner, options, backend=here.backend, made_up=made_up)


def turn_of(stack: str, *, sandbox: bool) -> Path:
    """The file by which commands on a stack wait for each other on this machine.

    Raises:
        ForeignHomeError: The sandbox's home holds files of others.
    """
    name = stack.rpartition("/")[2]
    if not sandbox:
        return paths.cache() / "turns" / f"{_plain(str(paths.PROJECT / stack))}"
    homes.claim(paths.home())
    return paths.home() / "pulumi" / "turn" if name == engines.STACK else SandboxedStack.of(name).turn


def _plain(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without_stack(stack: str, words: str) -> str:
    if "no stack named" in words:
        return f"there is no stack `{stack}` in the backend yet: `pulumi stack init {stack}` makes it"
    if "PULUMI_ACCESS_TOKEN" in words or "pulumi login" in words:
        return f"{words}\nPulumi needs a backend for the state: `pulumi login URL`; docs/azure.md says which"
    return words
