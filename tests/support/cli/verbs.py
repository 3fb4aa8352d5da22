"""The command line as a person runs it, whose environment alone leads to a workspace."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LIMIT = 120.0
"""Seconds after which a verb that hangs fails its test."""


@dataclass(frozen=True)
class Ran:
    """The end of a verb."""

    code: int
    out: str
    err: str

    @property
    def printed(self) -> str:
        """Both outputs."""
        return self.out + self.err

    def ok(self) -> Ran:
        """The same, which must have ended well."""
        assert self.code == 0, self.printed
        return self

    @property
    def json(self) -> Any:
        """The output as a program reads it."""
        return json.loads(self.ok().out)


@dataclass(frozen=True)
class Verbs:
    """Runs verbs in a folder, with variables that name the endpoint; the home has no sandbox to be found in."""

    folder: Path
    environ: Mapping[str, str]
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a verb."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("AMLSTACK_", "AZURE", "ARM_"))
        }
        cache = {name: os.environ[name] for name in ("AMLSTACK_CACHE",) if name in os.environ}
        home = {"AMLSTACK_HOME": str(self.folder / "no-sandbox-here")}
        return {**kept, **cache, **self.environ, **home, **self.more}

    def __call__(self, *words: str) -> Ran:
        """A verb from its beginning to its end, in this process."""
        out, err, before = io.StringIO(), io.StringIO(), dict(os.environ)
        try:
            self._surroundings(self.variables)
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(words)
        finally:
            self._surroundings(before)
        return Ran(code, out.getvalue(), err.getvalue())

    def start(
        self, *words: str, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        """A verb under way, in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "amlstack.cli.main", *words],
            cwd=self.folder, env=self.variables, text=True,
            stdin=stdin, stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip

    @staticmethod
    def _surroundings(variables: Mapping[str, str]) -> None:
        os.environ.clear()
        os.environ.update(variables)


def ended(process: subprocess.Popen[str]) -> Ran:
    """The end of a verb that is under way."""
    out, err = process.communicate(timeout=LIMIT)
    return Ran(process.returncode, out, err)
