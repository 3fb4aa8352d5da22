"""Runs the real engine on small programs: one Stack per test, with a folder, a file backend and settings of its own."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from amlstack import engine as engine_of_ours
from amlstack.base.paths import PROJECT
from amlstack.base.pulumi_wire import SIGNATURE
from tests.support.engine_result import Result, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Event = Mapping[str, Any]

PROGRAMS = PROJECT / "tests" / "programs"
ANALYZER = PROJECT / "policies" / "analyzer"
"""The policy pack as an executable; the engine built from Go modules takes no other form."""
PROVIDER = PROJECT / "amlstack" / "provider"
STAND_IN = PROJECT / "amlstack" / "sandbox" / "bin"
PASSPHRASE = "only-for-tests"
LIMIT = 900.0
"""Seconds that one engine command may take before the test fails with its output."""
_BEGUN: dict[str, tuple[bytes, str]] = {}
"""State and salt of a stack that begins, by its whole name."""
LISTING = ("-m", "pip", "list", "-v", "--format", "json")
"""By these words the language host asks which packages bring plugins, once for every command that runs a program."""


class Running:
    """An engine command under way. Its events arrive through a named pipe, the moment the engine writes them."""

    def __init__(self, command: Sequence[str], cwd: Path, env: Mapping[str, str], *, events: bool = True) -> None:
        self.command = tuple(command)
        self._scratch = tempfile.TemporaryDirectory(prefix="engine-events-")
        pipe = Path(self._scratch.name) / "events"
        os.mkfifo(pipe)
        # Both directions: neither side blocks on opening, and the end is a line of our own, whatever happens to it.
        self._log = os.open(pipe, os.O_RDWR)
        self._events: list[Event] = []
        self._changed = threading.Condition()
        self._ended = False
        more = ("--event-log", str(pipe)) if events else ()
        self.process = subprocess.Popen(
            [*command, *more],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._text: list[str] = []
        assert self.process.stdout is not None
        self._readers = [
            threading.Thread(target=self._follow_events, daemon=True),
            threading.Thread(target=self._text.extend, args=(self.process.stdout,), daemon=True),
        ]
        self._waiter = threading.Thread(target=self._end, daemon=True)
        for thread in (*self._readers, self._waiter):
            thread.start()

    def wait_for(self, condition: Callable[[Event], bool], limit: float = LIMIT) -> Event:
        """The first event, past or to come, that satisfies ``condition``; fails if the command ends without it."""
        seen = 0

        def found() -> bool:
            nonlocal seen
            while seen < len(self._events) and not condition(self._events[seen]):
                seen += 1
            return seen < len(self._events) or self._ended

        with self._changed:
            self._changed.wait_for(found, limit)
            if seen < len(self._events):
                return self._events[seen]
        self.kill()
        raise AssertionError(f"no such event in {' '.join(self.command)}:\n{''.join(self._text)}")

    def wait_until_starts(self, name: str, limit: float = LIMIT) -> Step:
        """Waits until the engine begins to work on the resource of that name."""
        event = self.wait_for(lambda event: _on(event.get("resourcePreEvent"), name), limit)
        return Step.of(event["resourcePreEvent"])

    def wait_until_done(self, name: str, limit: float = LIMIT) -> Step:
        """Waits until the engine has finished with the resource of that name; a component ends by register_outputs."""
        event = self.wait_for(lambda event: _on(event.get("resOutputsEvent"), name), limit)
        return Step.of(event["resOutputsEvent"])

    def kill(self, *, plugins: bool = True) -> Result:
        """SIGKILL for the engine, and with ``plugins`` for every process it started, as a machine's end would."""
        # The engine gives its plugins process groups of their own; the session is what they have in common.
        _signal(self.process.pid, signal.SIGKILL)
        while plugins and (victims := processes_of_session(self.process.pid)):
            for pid in victims:
                _kill_and_wait(pid)
        return self.result()

    def interrupt(self) -> None:
        """Send the signal of Ctrl-C: the engine ends after the operations in flight."""
        _signal(self.process.pid, signal.SIGINT)

    def result(self, limit: float = LIMIT) -> Result:
        """Waits for the end."""
        self._waiter.join(limit)
        if self._waiter.is_alive():
            self.kill()
            raise AssertionError(f"{' '.join(self.command)} still runs after {limit} s:\n{''.join(self._text)}")
        return Result(self.command, self.process.returncode, "".join(self._text), tuple(self._events))

    def _follow_events(self) -> None:
        with os.fdopen(os.dup(self._log), encoding="utf-8", errors="replace") as log:
            for line in log:
                if line == "end\n":
                    return
                # A killed engine may leave half a line before our own.
                with contextlib.suppress(json.JSONDecodeError), self._changed:
                    self._events.append(json.loads(line))
                    self._changed.notify_all()

    def _end(self) -> None:
        self.process.wait()
        os.write(self._log, b"\nend\n")
        for thread in self._readers:
            thread.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        os.close(self._log)
        self._scratch.cleanup()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class Stack:
    """One Pulumi stack in a folder of its own.

    ``program`` is a folder below tests/programs, any folder, or the text of a program. The folder is copied, and
    Pulumi.yaml is written unless it has one. Use ``Stack.of_project`` for the stack that users run.
    """

    def __init__(
        self,
        program: str | Path,
        folder: Path,
        engine: Iterable[Path],
        *,
        name: str = "test",
        env: Mapping[str, str] | None = None,
        path: Iterable[Path] = (),
    ) -> None:
        self.name = name
        self.folder = folder / "program"
        self.backend = folder / "backend"
        self.backend.mkdir(parents=True)
        self._started: list[Running] = []
        self._lay_out(program)
        self.project: str = yaml.safe_load((self.folder / "Pulumi.yaml").read_text("utf-8"))["name"]
        front = [Path(sys.executable).parent, *path, *engine]
        # Nothing of the person who runs the tests reaches the engine: no Azure login, no Pulumi account.
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PULUMI_", "AZURE_", "ARM_", "AMLSTACK_"))}
        kept = {k: v for k, v in os.environ.items() if k == "AMLSTACK_CACHE"}
        self.env: dict[str, str] = {
            **clean,
            **kept,
            **engine_of_ours.QUICK,
            **(env or {}),
            "PATH": os.pathsep.join([*map(str, front), os.environ.get("PATH", os.defpath)]),
            "PULUMI_BACKEND_URL": f"{self.backend.as_uri()}?metadata=skip",  # as amlstack.engine has it, and why
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PULUMI_HOME": str(folder / "pulumi-home"),
            "PULUMI_PYTHON_CMD": str(answering_python(folder)),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            # A provider that a test attaches is not on PATH; the engine would try to download the published one.
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DEBUG_COMMANDS": "1",  # the flag --event-log is behind it
            "NO_COLOR": "1",
        }
        engine_of_ours.keep_no_logs(folder / "pulumi-home")
        self._begin(folder / "pulumi-home" / "workspaces")

    def _begin(self, selected: Path) -> None:
        """`pulumi stack init`, once for all stacks of a name: to derive a key from the passphrase takes long."""
        state, name = self._state, f"organization/{self.project}/{self.name}"
        if name not in _BEGUN:
            self.pulumi("stack", "init", self.name).ok()
            _BEGUN[name] = state.read_bytes(), yaml.safe_load(self.settings.read_text("utf-8"))["encryptionsalt"]
            return
        state.parent.mkdir(parents=True)
        state.with_name(f"{state.name}.bak").write_bytes(_BEGUN[name][0])
        state.write_bytes(_BEGUN[name][0])
        (self.backend / ".pulumi" / "meta.yaml").write_text("version: 1\n", "utf-8")
        given = (yaml.safe_load(self.settings.read_text("utf-8")) if self.settings.exists() else None) or {}
        self.settings.write_text(yaml.safe_dump({"encryptionsalt": _BEGUN[name][1], **given}, sort_keys=False), "utf-8")
        selected.mkdir(parents=True)
        manifest = hashlib.sha1(str(self.folder / "Pulumi.yaml").encode(), usedforsecurity=False).hexdigest()
        text = json.dumps({"stacks": {self.env["PULUMI_BACKEND_URL"]: name}})
        (selected / f"{self.project}-{manifest}-workspace.json").write_text(text, "utf-8")

    @property
    def _state(self) -> Path:
        return self.backend / ".pulumi" / "stacks" / self.project / f"{self.name}.json"

    @classmethod
    def of_project(cls, folder: Path, engine: Iterable[Path], **more: Any) -> Stack:
        """The project's own program: a folder of links to the clone, with stack settings of the test's own."""
        mirror = folder / "mirror"
        mirror.mkdir(parents=True)
        for entry in PROJECT.iterdir():
            if not entry.name.startswith((".", "Pulumi.")):
                (mirror / entry.name).symlink_to(entry)
        shutil.copy(PROJECT / "Pulumi.yaml", mirror)
        return cls(mirror, folder, engine, **more)

    def _lay_out(self, program: str | Path) -> None:
        if isinstance(program, str) and "\n" in program:
            self.folder.mkdir(parents=True)
            (self.folder / "__main__.py").write_text(program, "utf-8")
        else:
            shutil.copytree(PROGRAMS / program, self.folder, symlinks=True)
        manifest = self.folder / "Pulumi.yaml"
        if not manifest.exists():
            plugins = {"providers": [{"name": "amlstack", "path": str(PROVIDER)}]}
            project = {"name": "scenario", "runtime": "python", "plugins": plugins}
            manifest.write_text(yaml.safe_dump(project), "utf-8")

    @property
    def settings(self) -> Path:
        """The stack's settings file."""
        return self.folder / f"Pulumi.{self.name}.yaml"

    def set(self, key: str, value: object, *, path: bool = True) -> Stack:
        """Sets one setting, ``amlstack:clusters[0].nodes.max`` say, to any JSON value; None removes it."""
        content = yaml.safe_load(self.settings.read_text("utf-8")) if self.settings.exists() else None
        content = content or {}
        words = _path(key) if path else [key]
        if ":" not in str(words[0]):
            words[0] = f"{self.project}:{words[0]}"
        _put(content.setdefault("config", {}), words, value)
        self.settings.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
        return self

    def write(self, file: str, text: str) -> Path:
        """Replaces or adds a file of the program."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def pulumi(self, *words: str) -> Result:
        """Any ``pulumi`` command without events."""
        return self._start(words, events=False).result()

    def preview(self, *words: str, policy_packs: Iterable[Path] = ()) -> Result:
        return self._start(["preview", "--diff", *_packs(policy_packs), *words]).result()

    def up(self, *words: str, policy_packs: Iterable[Path] = (), preview: bool = False) -> Result:
        """``pulumi up``; with ``preview`` as people run it, the preview first and the update only after a clean one."""
        return self.start_up(*words, policy_packs=policy_packs, preview=preview).result()

    def start_up(self, *words: str, policy_packs: Iterable[Path] = (), preview: bool = False) -> Running:
        """``up`` in the background: wait for an event, then kill or interrupt it."""
        skip = () if preview else ("--skip-preview",)
        return self._start(["up", "--yes", *skip, *_packs(policy_packs), *words])

    def refresh(self, *words: str) -> Result:
        return self._start(["refresh", "--yes", "--skip-preview", *words]).result()

    def destroy(self, *words: str) -> Result:
        return self._start(["destroy", "--yes", "--skip-preview", *words]).result()

    def unlock(self) -> Stack:
        """Removes the lock that a killed engine left on the backend, as ``pulumi cancel`` does for people."""
        self.pulumi("cancel", "--yes", self.name).ok()
        return self

    def state(self) -> dict[str, Any]:
        """The deployment as `pulumi stack export` has it: ``resources``, ``pending_operations``."""
        saved: dict[str, Any] = json.loads(self._state.read_text("utf-8"))["checkpoint"]["latest"]
        return saved

    def resources(self, type_: str = "") -> dict[str, dict[str, Any]]:
        """Logical name → state of every resource whose type ends so, the engine's own left out."""
        found = [one for one in self.state().get("resources", ()) if not one["type"].startswith("pulumi:")]
        return {one["urn"].rsplit("::", 1)[-1]: one for one in found if one["type"].endswith(type_)}

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs, secrets in clear: only for these is the engine asked."""
        found: dict[str, Any] = next(
            (
                one.get("outputs", {})
                for one in self.state().get("resources", ())
                if one["type"] == "pulumi:pulumi:Stack"
            ),
            {},
        )
        if SIGNATURE not in json.dumps(found):
            return found
        answer = self.pulumi("stack", "output", "--json", "--show-secrets").ok()
        values: dict[str, Any] = json.loads(answer.output)
        return values

    def _start(self, words: Sequence[str], *, events: bool = True) -> Running:
        command = ["pulumi", *words, "--non-interactive", "--color", "never"]
        if words[0] not in {"stack", "cancel"}:
            command += ["--stack", self.name]
        self._started.append(Running(command, self.folder, self.env, events=events))
        return self._started[-1]

    def close(self) -> None:
        """Ends what a failed test left running."""
        for running in self._started:
            if running.process.poll() is None:
                running.kill()


@functools.cache
def _listing() -> str:
    command = [sys.executable, *LISTING]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def answering_python(folder: Path) -> Path:
    """This interpreter, which has pip's answer at hand: one and the same for all stacks, half a second of work each."""
    python = folder / "python"
    # No shell script: a shell would correct PWD, which says by what name a person knows the folder.
    python.write_text(
        f"#!{sys.executable} -IS\n"
        "import os, sys\n"
        f"if sys.argv[1:] == {list(LISTING)!r}:\n"
        f"    sys.exit(print({_listing()!r}))\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])\n",
        "utf-8",
    )
    python.chmod(0o755)
    return python


def _packs(packs: Iterable[Path]) -> list[str]:
    # Absolute: with `main:` in Pulumi.yaml the program's folder is the engine's working directory.
    return [word for pack in packs for word in ("--policy-pack", str(Path(pack).absolute()))]


def _on(event: Event | None, name: str) -> bool:
    return event is not None and str(event["metadata"]["urn"]).endswith(f"::{name}")


def _path(key: str) -> list[str | int]:
    return [int(word[1:-1]) if word[0] == "[" else word for word in re.findall(r"\[\d+\]|[^.\[\]]+", key)]


def _put(at: Any, words: Sequence[str | int], value: object) -> None:
    *parents, last = words
    for word, following in zip(parents, words[1:], strict=True):
        empty: list[object] | dict[str, object] = [] if isinstance(following, int) else {}
        if isinstance(at, list) and word == len(at):
            at.append(empty)
        elif isinstance(at, dict):
            at.setdefault(word, empty)
        at = at[word]
    if value is None:
        at.pop(last)
    elif isinstance(at, list) and last == len(at):
        at.append(value)
    else:
        at[last] = value


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _kill_and_wait(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(process):
        _signal(pid, signal.SIGKILL)
        select.select([process], [], [], LIMIT)


def processes_of_session(leader: int) -> list[int]:
    """The live processes of the session that ``leader`` opened; ones that only wait to be reaped are not."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(words[3]) == leader and words[0] not in "ZX":
                found.append(int(entry.name))
    return found
