"""The Pulumi engine as this project runs it: its environment, a run of it, and the outcome."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amlstack import processes
from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.base.files import write_whole
from amlstack.processes import passed_on


class EngineError(Exception):
    """The engine could not be had, or did not do what it was asked; the message is for the user."""


class EngineInterruptedError(KeyboardInterrupt):
    """A command of the engine was interrupted (Ctrl-C), and has ended what was under way.

    Attributes:
        outcome: What it did until then.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("interrupted")
        self.outcome = outcome


@dataclass(slots=True)
class Outcome:
    """The result of one run of the engine.

    Attributes:
        code: The exit status of the command.
        ops: Operation (``create``, ``same``, ``update``, ``replace`` ...) of each URN, the last one seen.
        diagnostics: Messages of weight (error, warning, info#err) in the order they came, with their URN.
        policies: Results of policies in the last phase, as the engine reports them: refusals and advice.
        redescribed: URNs of the last phase that stay the same, and yet the state records something else of them.
        packs: Name → version of the policy packs that ran.
        output: The command's own text, for when nothing better explains a failure.
        phases: How many phases (preview, update) have begun.
        applied: Operation of each URN whose change has been made, and not only planned.
    """

    code: int = 0
    ops: dict[str, str] = field(default_factory=dict)
    diagnostics: list[tuple[str, str, str]] = field(default_factory=list)
    policies: list[Mapping[str, Any]] = field(default_factory=list)
    redescribed: set[str] = field(default_factory=set)
    packs: dict[str, str] = field(default_factory=dict)
    output: str = ""
    phases: int = 0
    applied: dict[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> dict[str, str]:
        """The operations that changed something."""
        return {urn: op for urn, op in self.ops.items() if op not in {"same", "read"}}

    @property
    def refusals(self) -> list[Mapping[str, Any]]:
        """The violations that policies refused."""
        return [result for result in self.policies if result["enforcementLevel"] == "mandatory"]

    @property
    def advice(self) -> list[Mapping[str, Any]]:
        """The violations on which policies only advise."""
        return [result for result in self.policies if result["enforcementLevel"] != "mandatory"]

    def take(self, event: Mapping[str, Any]) -> None:
        """Fold one engine event in. A prelude opens a phase (preview, update): the last one counts."""
        if "preludeEvent" in event:
            self.phases += 1
            self.ops.clear()
            self.policies.clear()
            self.redescribed.clear()
        if meta := (event.get("resourcePreEvent") or {}).get("metadata"):
            self.ops[meta["urn"]] = meta["op"]
        outputs = event.get("resOutputsEvent") or {}
        done = outputs.get("metadata")
        if done and done["op"] == "same" and done.get("old") != done.get("new"):
            self.redescribed.add(done["urn"])
        if done and not outputs.get("planning") and done["op"] not in {"same", "read"}:
            self.applied[done["urn"]] = done["op"]
        diagnostic = event.get("diagnosticEvent")
        if diagnostic and not diagnostic.get("ephemeral") and diagnostic["severity"] != "debug":
            message = (diagnostic["severity"], diagnostic.get("urn", ""), diagnostic["message"].strip())
            if message not in self.diagnostics:  # the preview and the update report the same
                self.diagnostics.append(message)
        if policy := event.get("policyEvent"):
            self.policies.append(policy)
        if summary := event.get("summaryEvent"):
            self.packs.update(summary.get("policyPacks") or summary.get("PolicyPacks") or {})


def mend(backend: Path) -> tuple[str, ...]:
    """Puts the last good copy in the place of each state that cannot be read; what was cut off is kept beside it.

    Args:
        backend: Folder of the backend. No engine may be at work in it.

    Returns:
        A sentence for each state that was mended.

    Raises:
        EngineError: A state cannot be read and has no good copy.
    """
    told = []
    root = backend / ".pulumi"
    for file in sorted((root / "stacks").glob("*/*.json")):
        if is_good(file):
            continue
        good = next(filter(is_good, _copies(root, file)), None)
        size = file.stat().st_size
        if good is None:
            raise EngineError(
                f"{file}, the state of the stack `{file.stem}`, cannot be read (it ends after {size:,} bytes), and no "
                f"copy of it can. Put a copy of yours in its place; or `amlstack down` removes the sandbox with all "
                "that it has, and the next `amlstack up` begins anew."
            )
        content = good.read_bytes()
        broken = file.with_name(f"{file.name}.broken")
        os.replace(file, broken)  # noqa: PTH105 - a rename needs no room
        write_whole(file, content, mode=0o600)
        day = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(good.stat().st_mtime))
        told.append(
            f"the state of the stack `{file.stem}` could not be read (it ended after {size:,} bytes): the engine's "
            f"copy of {day} is in its place, and what was there is {broken}. What was made since is found and adopted."
        )
    return tuple(told)


def is_good(file: Path) -> bool:
    """True where a file is a whole state."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and isinstance(content.get("checkpoint"), dict)


def _copies(root: Path, file: Path) -> Iterator[Path]:
    """Copies of a state, the latest first."""
    yield file.with_name(f"{file.name}.bak")
    kept = (root / "backups" / file.parent.name / file.stem).glob(f"{file.stem}.*.json")
    yield from sorted(kept, reverse=True)  # their names have the time in nanoseconds


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
        official: Whether it boots a policy pack from its folder, beside which a clone has its environment; the engine
            built from Go modules needs the launcher, and so does an installed package.
    """

    folders: tuple[Path, ...]
    version: str
    official: bool

    @property
    def pack(self) -> Path:
        """The folder for ``--policy-pack``: absolute, because ``main: infra/`` makes infra/ the working directory."""
        pack = paths.PACKAGE / "policies"
        return pack if self.official and (paths.PACKAGE / ".venv").is_dir() else pack / "analyzer"


def find(*, here: bool = False) -> Engine:
    """The engine: from PATH, the pinned release or a build, cached for the next time. Progress goes to stderr.

    Args:
        here: Only look on PATH and in the cache; the reason is then in the error and not on stderr.

    Raises:
        EngineError: None could be had; the finder has found why.
    """
    finder = [sys.executable, str(paths.shipped("tools/engine")), "--json", *(["--here"] if here else [])]
    done = subprocess.run(
        finder, stdout=subprocess.PIPE, stderr=subprocess.PIPE if here else None, text=True, check=False
    )
    if done.returncode:
        raise EngineError(
            (done.stderr or "").strip() or "no Pulumi engine could be had; the lines above give the reason"
        )
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
    """The folders that every engine has first on PATH: itself, and the Python that its language host starts."""
    return [*engine.folders, Path(sys.executable).parent]


def variables(engine: Engine, backend: Path | None = None) -> dict[str, str]:
    """The variables with which ``pulumi`` works on the sandbox's backend, beside what a client of the sandbox needs.

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
    front = [*_front(engine), paths.PACKAGE / "amlstack" / "sandbox" / "bin"]
    words = [*map(str, front), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    backend = backend or home / "pulumi"
    backend.mkdir(mode=0o700, parents=True, exist_ok=True)
    homes.close(home)
    for told in mend(backend):
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
    """True where the stack exists and is the default already, by the engine's own files: asking it takes longer."""
    project = hashlib.sha1(os.fsencode(paths.PROJECT / "Pulumi.yaml"), usedforsecurity=False).hexdigest()
    stacks = paths.home() / "pulumi" / ".pulumi" / "stacks"
    try:
        (noted,) = Path(env["PULUMI_HOME"], "workspaces").glob(f"*-{project}-workspace.json")
        selected = json.loads(noted.read_text())["stacks"][env["PULUMI_BACKEND_URL"]]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return str(selected).endswith(f"/{STACK}") and any(stacks.glob(f"*/{STACK}.json"))


def run(
    words: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: Path | None = None,
    on_event: Callable[[Mapping[str, Any]], None] | None = None,
    owner: Path | None = None,
) -> Outcome:
    """Run ``pulumi WORDS`` and follow its events until it ends.

    Ctrl-C is passed on to the engine once: it begins nothing more, its providers end what they wait for, and what is in
    flight is recorded. A second one ends it at once, and what was in flight is then pending in the state.

    Args:
        words: The command, without ``pulumi``; one that takes ``--event-log``.
        env: The environment of :func:`environ`.
        cwd: The folder of Pulumi.yaml; the project's by default.
        on_event: Called with each engine event as it happens.
        owner: Folder that processes of the command are marked with; the sandbox's home by default, whose end ends them.

    Raises:
        EngineInterruptedError: This process was asked to end, and the engine has ended.
    """
    outcome = Outcome()
    mark = processes.new_mark(owner or paths.home())
    with tempfile.TemporaryDirectory(prefix="amlstack-events-") as folder, passed_on() as interruption:
        pipe = Path(folder) / "events"
        os.mkfifo(pipe)
        # Opened for both directions: neither end then blocks on opening, nor sees an end before the engine is done.
        reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        process = subprocess.Popen(
            ["pulumi", *words, "--event-log", str(pipe)],
            cwd=cwd or paths.PROJECT,
            env={**env, processes.MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=private_umask(env),
            process_group=0,  # a terminal's Ctrl-C comes to it from here alone
        )
        interruption.attend(process)
        try:
            for event in _events(process, reader, outcome):
                outcome.take(event)
                if "preludeEvent" in event:
                    interruption.listens(now=True)
                elif "summaryEvent" in event:
                    # Between two phases and after the last one the engine would die of it, and leave its lock.
                    interruption.listens(now=False)
                if on_event:
                    on_event(event)
        except BaseException:
            process.terminate()
            raise
        finally:
            outcome.code = process.wait()
            processes.end_marked(processes.MARK, mark)
            os.close(reader)
            if process.stdout:
                process.stdout.close()
    if interruption.asked:
        raise EngineInterruptedError(outcome)
    return outcome


def _events(process: subprocess.Popen[bytes], reader: int, outcome: Outcome) -> Iterator[Mapping[str, Any]]:
    """Events as they are written, until the command's own output ends and the pipe is empty."""
    assert process.stdout is not None  # noqa: S101 - it was asked for
    text, pending = bytearray(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(reader, selectors.EVENT_READ)
        running = True
        while True:
            ready = {key.fd for key, _ in selector.select(None if running else 0)}
            if running and process.stdout.fileno() in ready:
                chunk = os.read(process.stdout.fileno(), 65536)
                text += chunk
                if not chunk:
                    running = False
                    selector.unregister(process.stdout)
            if reader in ready:
                *lines, pending = (pending + os.read(reader, 1 << 20)).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
            elif not running:
                break
    outcome.output = text.decode(errors="replace")


def clear_stale_lock(backend: Path | None = None) -> int:
    """End what no process follows any more and remove locks of engines that are gone; a living engine's lock stays.

    An engine whose `amlstack` was killed works on, holding the lock; whatever it was at, the next `up` goes on with.

    Args:
        backend: Folder of the state; the sandbox stack's own by default.

    Returns:
        How many locks were removed.
    """
    processes.end_abandoned(paths.home())
    removed = 0
    for lock in ((backend or paths.home() / "pulumi") / ".pulumi" / "locks").rglob("*.json"):
        try:
            holder = json.loads(lock.read_text())
            ours = holder.get("hostname") == socket.gethostname()
            alive = processes.started(int(holder["pid"])) is not None
        except (OSError, ValueError, KeyError):
            continue
        if ours and not alive:
            lock.unlink(missing_ok=True)
            removed += 1
    return removed


def end_leftovers() -> int:
    """End every process that engines on this home have left running.

    Returns:
        How many there were.
    """
    return processes.end_all(paths.home())
