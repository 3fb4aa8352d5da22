"""A team's repository with amlstack from a wheel, in an environment of its own and with an empty HOME."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from amlstack.base import paths


class Team:
    """A repository that `amlstack init` of an installed wheel has made, and an environment with that wheel."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "team"
        tools = Path(sys.executable).parent
        self.env = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("AMLSTACK_", "XDG_", "VIRTUAL_ENV"))
            },
            "HOME": str(folder / "home"),
            "AMLSTACK_CACHE": str(paths.cache()),
            "UV_CACHE_DIR": self.said([str(tools / "uv"), "cache", "dir"], dict(os.environ), paths.PACKAGE).strip(),
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        }
        (folder / "home").mkdir()
        self.said(["uv", "build", "--wheel", "--quiet", "--out-dir", str(folder), str(paths.PACKAGE)], self.env, folder)
        (self.wheel,) = folder.glob("*.whl")
        words = ["uvx", "--from", str(self.wheel), "amlstack", "init", "team", "--yes", "--size", "Standard_HB120rs_v3"]
        self.made = self.said(words, self.env, folder)
        self.said(["make", "venv"], self.env, self.root)

    def amlstack(self, *words: str, cwd: Path | None = None) -> str:
        return self.said([str(self.root / ".venv/bin/amlstack"), *words], self.env, cwd or self.root)

    @staticmethod
    def said(words: list[str], env: dict[str, str], cwd: Path) -> str:
        done = subprocess.run(
            words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr
