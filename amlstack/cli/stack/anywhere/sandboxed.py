"""A stack of the user's own on the sandbox: its settings without what belongs to Azure, its state in a folder apart.

The engine gets a copy of ``Pulumi.<stack>.yaml``. What it would write into the settings file goes there, and the
state of the real stack is out of its reach: the backend is a folder of the sandbox's home.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from amlstack import engine
from amlstack.base import paths, pulumi_wire
from amlstack.base.files import write_whole
from amlstack.cli.stack.state import files_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from infra.settings import StackFile

KEPT_OF_AZURE_NATIVE: Final = frozenset({"location"})
"""Everything else in that namespace says where to sign in and how: on the sandbox its own variables do."""
LEFT_OUT: Final = frozenset({"amlstack:armEndpoint", "amlstack:config:armEndpoint"})
MADE_UP: Final = "made-up-on-the-sandbox"
"""Stands for each encrypted value, as only the real stack's passphrase or key opens it."""


@dataclass(frozen=True, slots=True)
class SandboxedStack:
    """Where a stack lives on the sandbox.

    Attributes:
        folder: Of this stack alone.
        stack: Its name.
    """

    folder: Path
    stack: str

    @classmethod
    def of(cls, stack: str, home: Path | None = None) -> SandboxedStack:
        """The folder of a stack in a sandbox's home."""
        return cls((paths.home() if home is None else home) / "stacks" / stack, stack)

    @property
    def backend(self) -> Path:
        """Its state."""
        return self.folder / "state"

    @property
    def config(self) -> Path:
        """The copy of its settings that the engine reads."""
        return self.folder / f"Pulumi.{self.stack}.yaml"

    @property
    def turn(self) -> Path:
        """Whose turn it is."""
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
        project = yaml.safe_load((paths.PROJECT / "Pulumi.yaml").read_text("utf-8"))
        manifest = {"name": project["name"], "runtime": "python"}
        write_whole(self.folder / "Pulumi.yaml", yaml.safe_dump(manifest))
        secret: list[str] = []
        config = {key: _opened(value, str(key), secret) for key, value in file.config.items() if _is_ours(str(key))}
        content = {"config": config, "encryptionsalt": engine.SALT}
        write_whole(self.config, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
        if self.stack not in files_in(self.backend):
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
            message = (
                f"`pulumi {' '.join(words[:2])}` failed on the sandbox's copy of `{self.stack}`: {done.stderr.strip()}"
            )
            raise engine.EngineError(message)


def names(home: Path) -> tuple[str, ...]:
    """The stacks that have a folder here."""
    folder = home / "stacks"
    return tuple(sorted(path.name for path in folder.iterdir() if path.is_dir())) if folder.is_dir() else ()


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


def lines(home: Path) -> Iterator[str]:
    """What goes with a home, for a question."""
    if found := names(home):
        yield f"the state of {len(found)} stack{'' if len(found) == 1 else 's'} on the sandbox: {', '.join(found)}"
