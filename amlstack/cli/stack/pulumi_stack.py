"""A stack as the engine reaches it: on the sandbox, apart from everything real, or on Azure with the user's backend."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from amlstack import engine
from amlstack.base import home, paths, pulumi_wire
from amlstack.base.files import write_whole
from amlstack.cli import stack_settings, stack_state
from amlstack.cli.stack import lock
from amlstack.sandbox.server import daemon

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from amlstack.cli.stack_settings import StackSettings
    from amlstack.cli.stack_state import State
    from amlstack.engine import Engine, Outcome
    from amlstack.sandbox.server.endpoint import Endpoint
    from infra.settings import StackFile

KEPT_OF_AZURE_NATIVE: Final = frozenset({"location"})
"""Everything else in that namespace says where to sign in and how: on the sandbox its own variables do."""
LEFT_OUT: Final = frozenset({"amlstack:armEndpoint", "amlstack:config:armEndpoint"})
MADE_UP: Final = "made-up-on-the-sandbox"
"""Stands for each encrypted value, as only the real stack's passphrase or key opens it."""


@dataclass(frozen=True, slots=True)
class PulumiStack:
    """A stack and what each command of the engine on it needs.

    Attributes:
        name: The value of ``--stack``.
        env: The environment of each command.
        owner: Whose processes the engine's are.
        options: Further options of each command that runs the program.
        endpoint: The sandbox; None on Azure.
        backend: Folder of the state where it is ours; None for the user's own backend.
        made_up: Encrypted settings that have another value here.
    """

    name: str
    env: Mapping[str, str]
    owner: Path
    options: tuple[str, ...] = ()
    endpoint: Endpoint | None = None
    backend: Path | None = None
    made_up: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """For messages."""
        return f"the sandbox at {self.endpoint.url}" if self.endpoint else "Azure"

    def run(
        self,
        verb: str,
        *words: str,
        on_event: Callable[[Mapping[str, Any]], None],
        note: Callable[[str], None] = lambda _: None,
    ) -> Outcome:
        """Run a command of the engine.

        Args:
            verb: Of the command.
            *words: Its further words.
            on_event: Called with each event of the engine.
            note: Prints one line.

        Raises:
            BusyError: The engine found the stack locked.
            EngineInterruptedError: Ctrl-C.
        """
        command = [verb, "--non-interactive", "--stack", self.name, *self.options, *words]
        return lock.run_when_free(
            lambda: engine.run(command, self.env, on_event=on_event, owner=self.owner), self.name, note
        )

    def state(self) -> State:
        """The recorded state.

        Raises:
            EngineError: There is no such stack, or the backend is out of reach.
        """
        if self.backend is not None:
            return stack_state.read(self.backend, self.name)
        try:
            return stack_state.state_of(self.exported()["deployment"])
        except (KeyError, TypeError, AttributeError):
            raise engine.EngineError(self._unknown_form) from None

    def exported(self) -> dict[str, Any]:
        """The state in the user's backend as the engine exports it, secrets encrypted.

        Raises:
            EngineError: There is no such stack, or the backend is out of reach.
        """
        done = self._pulumi("stack", "export")
        if done.returncode:
            raise engine.EngineError(_without_stack(self.name, done.stderr.strip()))
        try:
            return dict(json.loads(done.stdout))
        except (ValueError, TypeError):
            raise engine.EngineError(self._unknown_form) from None

    @property
    def _unknown_form(self) -> str:
        return f"the state of `{self.name}` has a form that is not known here"

    def outputs(self) -> Mapping[str, Any]:
        """The stack's outputs, secrets hidden.

        Raises:
            EngineError: The backend is out of reach.
        """
        if (recorded := self.state().outputs()) is not None:
            return recorded
        done = self._pulumi("stack", "output", "--json")
        if done.returncode:
            raise engine.EngineError(done.stderr.strip())
        outputs: dict[str, Any] = json.loads(done.stdout)
        return outputs

    def unprotect(self) -> None:
        """Lift the protection of all resources.

        Raises:
            EngineError: The engine refused.
        """
        done = self._pulumi("state", "unprotect", "--all", "--yes")
        if done.returncode:
            raise engine.EngineError(f"the protection could not be lifted: {done.stderr.strip()}")

    def _pulumi(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["pulumi", *words, "--stack", self.name, "--non-interactive"]
        return subprocess.run(
            command, cwd=paths.PROJECT, env=dict(self.env), capture_output=True, text=True, check=False
        )


def reach(stack: str, settings: StackSettings, pulumi: Engine, *, sandbox: bool) -> PulumiStack:
    """The stack as it was asked for: on this machine's sandbox, which is started, or on Azure.

    Raises:
        SandboxError: The sandbox does not start.
        EngineError: The engine refused to make the stack there.
    """
    return on_sandbox(settings, pulumi, daemon.up()) if sandbox else on_azure(stack, pulumi)


def on_sandbox(
    settings: StackSettings, pulumi: Engine, endpoint: Endpoint, note: Callable[[str], None] = lambda _: None
) -> PulumiStack:
    """Any stack's settings on this machine's sandbox; the stack `sandbox` is at home there.

    Raises:
        EngineError: The engine refused to make the stack there.
    """
    if settings.name == engine.STACK:
        return sandbox_stack(pulumi, endpoint, note)
    here = StackFolder.on_sandbox(settings.name, endpoint.home)
    env = _env_on_sandbox(pulumi, endpoint, here.backend, note)
    made_up = here.prepare(settings.file, env)
    options = ("--config-file", str(here.config))
    return PulumiStack(settings.name, env, endpoint.home, options, endpoint, here.backend, made_up)


def sandbox_stack(pulumi: Engine, endpoint: Endpoint, note: Callable[[str], None] = lambda _: None) -> PulumiStack:
    """The sandbox's own stack, made where there is none.

    Raises:
        EngineError: The engine refused to make it.
    """
    backend = stack_state.backend_of(engine.STACK, endpoint.home)
    env = _env_on_sandbox(pulumi, endpoint, backend, note)
    engine.select(env)
    return PulumiStack(engine.STACK, env, endpoint.home, endpoint=endpoint, backend=backend)


def _env_on_sandbox(pulumi: Engine, endpoint: Endpoint, backend: Path, note: Callable[[str], None]) -> dict[str, str]:
    """The environment of the engine on a backend of the sandbox, which no dead engine keeps locked."""
    env = engine.environ(pulumi, endpoint.environ(), backend)
    if removed := engine.clear_stale_lock(backend):
        note(f"removed {removed} lock{'s' if removed > 1 else ''} of an engine that was killed")
    return env


def on_azure(stack: str, pulumi: Engine) -> PulumiStack:
    """A stack of the user's own."""
    return PulumiStack(stack, engine.users_own(pulumi), lock_file(stack, sandbox=False).parent)


def without_secrets(settings: StackSettings, stack: str, pulumi: Engine, folder: Path) -> PulumiStack:
    """The stack of a preview that opens nothing: a copy of settings and state with made-up values for all secrets.

    It needs neither passphrase nor key, and where to sign in says the environment alone.

    Args:
        settings: The settings.
        stack: The stack's name in the user's backend.
        pulumi: The engine.
        folder: A folder for the copy, which the caller removes.

    Raises:
        EngineError: There is no such stack, or the backend is out of reach.
    """
    real = on_azure(stack, pulumi)
    exported = real.exported()
    here = StackFolder(folder, settings.name)
    here.backend.mkdir(parents=True)
    own = {
        "PULUMI_BACKEND_URL": f"file://{here.backend}?metadata=skip",
        "PULUMI_CONFIG_PASSPHRASE": engine.PASSPHRASE,
        "PULUMI_CONFIG_PASSPHRASE_FILE": "",
    }
    env = {**real.env, **own}
    made_up = here.prepare(settings.file, env)
    here.restore(exported, env)
    options = ("--config-file", str(here.config))
    return PulumiStack(settings.name, env, real.owner, options, backend=here.backend, made_up=made_up)


def lock_file(stack: str, *, sandbox: bool) -> Path:
    """The file by which commands on a stack wait for each other on this machine.

    Raises:
        ForeignHomeError: The sandbox's home holds files of others.
    """
    if not sandbox:
        return paths.cache() / "turns" / hashlib.sha256(str(paths.PROJECT / stack).encode()).hexdigest()[:16]
    home.claim(paths.home())
    name = stack.rpartition("/")[2]
    return paths.home() / "pulumi" / "turn" if name == engine.STACK else StackFolder.on_sandbox(name).lock


def _without_stack(stack: str, words: str) -> str:
    if "no stack named" in words:
        return f"there is no stack `{stack}` in the backend yet: `pulumi stack init {stack}` makes it"
    if "PULUMI_ACCESS_TOKEN" in words or "pulumi login" in words:
        return f"{words}\nPulumi needs a backend for the state: `pulumi login URL`; docs/azure.md says which"
    return words


@dataclass(frozen=True, slots=True)
class StackFolder:
    """The folder of a stack of the user's own on the sandbox: its settings without what belongs to Azure, its state.

    The engine gets a copy of ``Pulumi.<stack>.yaml``. What it would write into the settings file goes there, and the
    state of the real stack is out of its reach.

    Attributes:
        folder: Of this stack alone.
        stack: Its name.
    """

    folder: Path
    stack: str

    @classmethod
    def on_sandbox(cls, stack: str, home: Path | None = None) -> StackFolder:
        """The folder of a stack in a sandbox's home."""
        return cls(stack_state.backend_of(stack, home).parent, stack)

    @property
    def backend(self) -> Path:
        """Its state."""
        return self.folder / "state"

    @property
    def config(self) -> Path:
        """The copy of its settings that the engine reads."""
        return self.folder / f"Pulumi.{self.stack}.yaml"

    @property
    def lock(self) -> Path:
        """The file that a command on the stack locks."""
        return self.folder / "turn"

    def prepare(self, file: StackFile, env: Mapping[str, str]) -> tuple[str, ...]:
        """Writes the copy, and makes the stack when there is none.

        Args:
            file: The settings as they were read.
            env: The environment of the engine on this backend.

        Returns:
            The keys whose encrypted value is made up here.

        Raises:
            EngineError: The engine refused to make the stack.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        manifest = {"name": stack_settings.project_name(), "runtime": "python"}
        write_whole(self.folder / "Pulumi.yaml", yaml.safe_dump(manifest))
        secret: list[str] = []
        config = {key: _opened(value, str(key), secret) for key, value in file.config.items() if _is_ours(str(key))}
        content = {"config": config, "encryptionsalt": engine.SALT}
        write_whole(self.config, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
        if self.stack not in stack_state.files(self.backend):
            self._run("stack", "init", self.stack, "--no-select", env=env)
        for path in secret:
            words = ("config", "set", "--secret", "--path", path, MADE_UP, "--stack", self.stack)
            self._run(*words, "--config-file", str(self.config), env=env)
        return tuple(secret)

    def restore(self, exported: Mapping[str, Any], env: Mapping[str, str]) -> None:
        """Gives the stack another one's state, with something made up for each encrypted value.

        Args:
            exported: What `pulumi stack export` printed of the other.
            env: The environment of the engine on this backend.

        Raises:
            EngineError: The engine refused the state.
        """
        # The engine encrypts what is made up, and takes the way from the state itself.
        own = {"secrets_providers": {"type": "passphrase", "state": {"salt": engine.SALT}}}
        file = self.folder / "state.json"
        write_whole(file, json.dumps({**exported, "deployment": {**_closed(exported["deployment"]), **own}}))
        self._run("stack", "import", "--stack", self.stack, "--file", str(file), env=env)

    def _run(self, *words: str, env: Mapping[str, str]) -> None:
        command = ["pulumi", *words, "--non-interactive"]
        done = subprocess.run(command, cwd=self.folder, env=dict(env), capture_output=True, text=True, check=False)
        if done.returncode:
            message = f"`pulumi {' '.join(words[:2])}` failed on the copy of `{self.stack}`: {done.stderr.strip()}"
            raise engine.EngineError(message)


def _is_ours(key: str) -> bool:
    namespace, _, name = key.partition(":")
    if key in LEFT_OUT:
        return False
    return namespace != "azure-native" or name.removeprefix("config:") in KEPT_OF_AZURE_NATIVE


def _opened(value: Any, path: str, secret: list[str]) -> Any:
    """A value with something made up for what is encrypted, whose paths are added to ``secret``."""
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            secret.append(path)
            return MADE_UP
        return {key: _opened(item, f"{path}{_member(str(key))}", secret) for key, item in value.items()}
    if isinstance(value, list):
        return [_opened(item, f"{path}[{index}]", secret) for index, item in enumerate(value)]
    return value


def _closed(value: Any) -> Any:
    """Values of a state with something made up for what is encrypted, which stays a secret."""
    if isinstance(value, dict):
        if value.get(pulumi_wire.SIGNATURE) == pulumi_wire.SECRET:
            return {pulumi_wire.SIGNATURE: pulumi_wire.SECRET, "plaintext": json.dumps(MADE_UP)}
        return {key: _closed(item) for key, item in value.items()}
    return [_closed(item) for item in value] if isinstance(value, list) else value


def _member(name: str) -> str:
    """A part of a property path in the engine's grammar."""
    return f".{name}" if name.replace("_", "").replace("-", "").isalnum() else f'["{name}"]'
