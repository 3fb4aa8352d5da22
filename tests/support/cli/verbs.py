"""The command line as a person runs it: a process of its own, whose environment alone leads to a workspace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
        process = self.start(*words)
        out, err = process.communicate(timeout=LIMIT)
        return Ran(process.returncode, out, err)

    def start(self, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """A verb under way."""
        return subprocess.Popen(
            [sys.executable, "-m", "amlstack.cli.main", *words],
            cwd=self.folder, env=self.variables, text=True,
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
