"""A copy of the project as a newcomer has it, in which ``amlstack`` runs; only the caches are the user's own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from amlstack.base import paths
from amlstack.base.paths import PROJECT
from tests.support.harness import answering_python
from tests.support.running import FAULTS

if TYPE_CHECKING:
    import builtins
    from collections.abc import Iterator, Mapping

LIMIT = 900.0
"""Seconds that one command may take before the test fails with its output."""


@dataclass(frozen=True)
class Output:
    """The output of a command, both streams together, and its exit status."""

    code: int
    text: str


class Verb:
    """``amlstack VERB`` under way."""

    def __init__(self, words: tuple[str, ...], folder: Path, env: Mapping[str, str], python: Path) -> None:
        self.words = words
        self.process = subprocess.Popen(
            [str(python), "-m", "amlstack.cli.main", *words],
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._grown = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, words: str) -> str:
        """The first line, past or to come, that holds ``words``; fails if the command ends without it."""
        with self._grown:
            self._grown.wait_for(lambda: self._ended or any(words in line for line in self._lines), LIMIT)
            found = [line for line in self._lines if words in line]
        assert found, f"amlstack {' '.join(self.words)} never printed {words!r}:\n{''.join(self._lines)}"
        return found[0]

    def end(self) -> Output:
        """Waits for the end."""
        try:
            code = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"amlstack {' '.join(self.words)} does not end:\n{''.join(self._lines)}") from None
        self._reader.join(LIMIT)
        return Output(code, "".join(self._lines))

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                with self._grown:
                    self._lines.append(line)
                    self._grown.notify_all()
        with self._grown:
            self._ended = True
            self._grown.notify_all()


@dataclass
class Clone:
    """The copy. Its ``.venv`` is a link to this clone's, which finds the copy's modules first."""

    folder: Path
    python: Path
    started: list[Verb] = field(default_factory=list)

    @classmethod
    def made(cls, folder: Path) -> Clone:
        leave = {"tests", "docs"}
        for entry in PROJECT.iterdir():
            if entry.name.startswith(".") or entry.name in leave:
                continue
            # With their bytecode, whose sources keep their times: nothing is compiled again.
            (shutil.copytree if entry.is_dir() else shutil.copy2)(entry, folder / entry.name)
        (folder / ".venv").symlink_to(PROJECT / ".venv")
        beside = folder.with_name(f"{folder.name}-python")
        beside.mkdir()
        return cls(folder, answering_python(beside))

    @property
    def home(self) -> Path:
        return self.folder / ".amlstack"

    @property
    def environ(self) -> dict[str, str]:
        foreign = ("PULUMI_", "AZURE_", "ARM_", "AMLSTACK_", "XDG_")
        empty = self.folder.with_name(f"{self.folder.name}-home")
        empty.mkdir(exist_ok=True)
        return {
            **{k: v for k, v in os.environ.items() if not k.startswith(foreign)},
            "HOME": str(empty),
            "AMLSTACK_CACHE": str(paths.cache()),
            "MAKEFLAGS": "-o .venv/.synced",  # the environment is this clone's, which is as it should be
            FAULTS[0]: FAULTS[1],
            "PYTHONPATH": str(self.folder),
            "NO_COLOR": "1",
            "COLUMNS": "400",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PULUMI_PYTHON_CMD": str(self.python),
        }

    def start(self, *words: str) -> Verb:
        """``amlstack WORDS`` in the background."""
        self.started.append(Verb(words, self.folder, self.environ, self.folder / ".venv" / "bin" / "python"))
        return self.started[-1]

    def run(self, *words: str) -> Output:
        """``amlstack WORDS`` to its end."""
        return self.start(*words).end()

    def set(self, **settings: Any) -> None:
        """Changes settings of the sandbox stack."""
        file = self.folder / "Pulumi.sandbox.yaml"
        content = yaml.safe_load(file.read_text("utf-8"))
        content["config"] |= {f"amlstack:{key}": value for key, value in settings.items()}
        file.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")

    def files(self) -> builtins.set[str]:
        """All files, bytecode left out."""
        found = (path for path in self.folder.rglob("*") if "__pycache__" not in path.parts)
        return {str(path.relative_to(self.folder)) for path in found}

    def processes(self) -> dict[int, str]:
        """Live processes that this copy or something of it started: pid → command line."""
        return dict(self._processes())

    def _processes(self) -> Iterator[tuple[int, str]]:
        mark = str(self.folder).encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    words, variables = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
                except OSError:
                    continue
                if state not in "ZX" and (mark in words or mark in variables):
                    yield int(entry.name), words.replace(b"\0", b" ").decode(errors="replace").strip()

    def close(self) -> None:
        """Ends what a failed test left running."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for verb in self.started:
            verb.process.wait()
