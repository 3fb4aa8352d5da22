"""A stack as the engine reaches it: on the sandbox, apart from everything real, or on Azure with the user's backend.

One command at a time works on a stack of this machine; the second one says who is at work, and changes nothing. The
engine locks a stack as well, and its lock holds for other machines too. But it looks for other locks, writes its own
and looks again: of two that begin together both may give up, so that here such a one begins again after a pause of
random length. And a preview takes no lock at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import yaml

from amlstack import engine
from amlstack.base import home, paths, pulumi_wire
from amlstack.base.files import write_whole
from amlstack.cli import stack_files
from amlstack.sandbox.server import daemon

if TYPE_CHECKING:
    from amlstack.cli.stack_files import StackSettings, State
    from amlstack.engine import Engine, Outcome
    from amlstack.sandbox.server.daemon import Endpoint
    from infra.settings import StackFile

BUSY: Final = 3
"""Exit status of a command that another one keeps from its stack: nothing was changed, and it may be run again."""

_LOCKED: Final = re.compile(
    r"stack is currently locked by|another update is currently in progress|\[409\] conflict", re.IGNORECASE
)
_HOLDER: Final = re.compile(r"created by (?P<who>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")
_ATTEMPTS: Final = 4
_PAUSE: Final = (0.5, 3.0)
"""Seconds, at random between the two: longer than the engine takes from its first look for locks to its second."""


class BusyError(Exception):
    """Another command works on the stack; the message is for the user."""


@contextlib.contextmanager
def hold(file: Path, stack: str, verb: str) -> Iterator[None]:
    """Locks a stack until the end of the context, or of this process however it ends.

    Args:
        file: The file that is locked; its folder is made.
        stack: The stack's name, for the message.
        verb: What this process does, e.g. ``amlstack up``.

    Raises:
        BusyError: Another process has locked it.
    """
    with contextlib.ExitStack() as opened:
        turn = opened.enter_context(_open(file))
        while not _is_taken(turn, file, stack):
            turn = opened.enter_context(_open(file))
        turn.truncate(0)
        turn.write(json.dumps({"pid": os.getpid(), "verb": verb, "since": time.strftime("%H:%M:%S")}))
        turn.flush()
        yield


def run_when_free(
    command: Callable[[], Outcome], stack: str, note: Callable[[str], None], pause: Callable[[float], None] = time.sleep
) -> Outcome:
    """Runs a command of the engine, again where another one took the stack's lock after this one had begun.

    Of two such commands both may have given up. The one that wins keeps its lock, which is older than the next attempt.

    Args:
        command: Runs the engine once.
        stack: The stack's name, for the message.
        note: Prints one line.
        pause: Waits so many seconds.

    Raises:
        BusyError: The engine found the stack locked; nothing was changed.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        began = time.time()
        outcome = command()
        if not (busy := engine_is_locked(outcome, stack)):
            return outcome
        if attempt == _ATTEMPTS or not _since(outcome) >= int(began):
            raise BusyError(busy)
        seconds = random.uniform(*_PAUSE)  # noqa: S311 - no secret
        note(f"another command took the lock of `{stack}` in the same moment: trying again in {seconds:.1f} s")
        pause(seconds)
    raise AssertionError  # the last attempt has returned or raised


def engine_is_locked(outcome: Outcome, stack: str) -> str:
    """The message where the engine found the stack locked, by a plain `pulumi` or on another machine; else empty."""
    words = _words(outcome)
    if not outcome.code or not _LOCKED.search(words):
        return ""
    found = _HOLDER.search(words)
    who = f" ({found['who']}, process {found['pid']}, since {found['since']})" if found else ""
    return (
        f"another `pulumi` command works on the stack `{stack}`{who}; nothing was changed here. Run this again when it "
        "has ended; `pulumi cancel` removes the lock of one that was killed"
    )


def _open(file: Path) -> TextIO:
    """The file of a lock; its folder may go between the two steps, with a `down` that ends."""
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            return file.open("a+", encoding="utf-8")


def _is_taken(turn: TextIO, file: Path, stack: str) -> bool:
    """Locks the file; False where the file that was opened is not the one that others open, as a `down` removed it.

    Raises:
        BusyError: Another process has locked it.
    """
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BusyError(_ours(_content(file), stack)) from None
    try:
        return os.path.samestat(os.fstat(turn.fileno()), file.stat())
    except FileNotFoundError:
        return False


def _words(outcome: Outcome) -> str:
    return "\n".join((*(text for _, _, text in outcome.diagnostics), outcome.output))


def _since(outcome: Outcome) -> float:
    """The time of the lock that the engine found, in seconds of Unix time; 0 where it is not known."""
    found = _HOLDER.search(_words(outcome))
    try:
        moment = datetime.fromisoformat(found["since"]) if found else None
    except ValueError:
        moment = None
    if moment is None:
        return 0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _ours(holder: dict[str, Any], stack: str) -> str:
    verb = holder.get("verb", "amlstack")
    known = "pid" in holder
    who = f" (process {holder['pid']}, since {holder['since']})" if known else ""
    return (
        f"another `{verb}` works on the stack `{stack}`{who}; nothing was changed here. "
        "Run this again when it has ended"
    )


def _content(file: Path) -> dict[str, Any]:
    """The owner of the lock; empty while that is being written."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


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
        return run_when_free(
            lambda: engine.run(command, self.env, on_event=on_event, owner=self.owner), self.name, note
        )

    def state(self) -> State:
        """The recorded state.

        Raises:
            EngineError: There is no such stack, or the backend is out of reach.
        """
        if self.backend is not None:
            return stack_files.read_state(self.backend, self.name)
        try:
            return stack_files.state_of(self.exported()["deployment"])
        except (KeyError, TypeError, AttributeError):
            raise engine.EngineError(self._unknown_form) from None

    def exported(self) -> dict[str, Any]:
        """The state in the user's backend as the engine exports it, secrets encrypted.

        Raises:
            EngineError: There is no such stack, or the backend is out of reach.
        """
        try:
            return dict(json.loads(self._pulumi("stack", "export")))
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
        outputs: dict[str, Any] = json.loads(self._pulumi("stack", "output", "--json"))
        return outputs

    def unprotect(self) -> None:
        """Lift the protection of all resources.

        Raises:
            EngineError: The engine refused.
        """
        self._pulumi("state", "unprotect", "--all", "--yes")

    def _pulumi(self, *words: str) -> str:
        return _pulumi(*words, stack=self.name, env=self.env, cwd=paths.PROJECT)


def _pulumi(*words: str, stack: str, env: Mapping[str, str], cwd: Path) -> str:
    """The output of a command of the engine on a stack.

    Raises:
        EngineError: It failed; the message says what helps where that is known.
    """
    command = ["pulumi", *words, "--stack", stack, "--non-interactive"]
    done = subprocess.run(command, cwd=cwd, env=dict(env), capture_output=True, text=True, check=False)
    if not done.returncode:
        return done.stdout
    error = done.stderr.strip()
    if "no stack named" in error:
        error = f"there is no stack `{stack}` in the backend yet: `pulumi stack init {stack}` makes it"
    elif "PULUMI_ACCESS_TOKEN" in error or "pulumi login" in error:
        error += "\nPulumi needs a backend for the state: `pulumi login URL`; docs/how-to/azure.md says which"
    else:
        error = f"`pulumi {' '.join(words[:2])}` failed for `{stack}`: {error}"
    raise engine.EngineError(error)


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
    backend = stack_files.backend_of(engine.STACK, endpoint.home)
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
        return cls(stack_files.backend_of(stack, home).parent, stack)

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
        manifest = {"name": stack_files.project_name(), "runtime": "python"}
        write_whole(self.folder / "Pulumi.yaml", yaml.safe_dump(manifest))
        secret: list[str] = []
        config = {key: _opened(value, str(key), secret) for key, value in file.config.items() if _is_ours(str(key))}
        content = {"config": config, "encryptionsalt": engine.SALT}
        write_whole(self.config, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
        if self.stack not in stack_files.state_files(self.backend):
            self._pulumi("stack", "init", "--no-select", env=env)
        for path in secret:
            words = ("config", "set", "--secret", "--path", path, MADE_UP, "--config-file", str(self.config))
            self._pulumi(*words, env=env)
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
        self._pulumi("stack", "import", "--file", str(file), env=env)

    def _pulumi(self, *words: str, env: Mapping[str, str]) -> None:
        _pulumi(*words, stack=self.stack, env=env, cwd=self.folder)


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
