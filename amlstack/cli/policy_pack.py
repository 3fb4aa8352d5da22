"""A policy pack and its configuration that are given from outside: they win over what the stack's settings name.

`amlstack up` and `check` take them as the engine does, by options or by the engine's own variables. Who judges a branch
can so give rules and exceptions in which the branch has no say.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from amlstack.base.paths import PACKAGE, POLICY_CONFIG

if TYPE_CHECKING:
    from amlstack.engine import Engine

PACK_VARIABLE: Final = "PULUMI_OPTION_POLICY_PACK"
CONFIG_VARIABLE: Final = "PULUMI_OPTION_POLICY_PACK_CONFIG"
_MANIFEST: Final = "PulumiPolicy.yaml"

PolicyPack = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        envvar=PACK_VARIABLE,
        help="The policy pack that judges, with its own configuration; unset: this project's, and the stack's.",
    ),
]
PolicyConfig = Annotated[
    Path | None,
    typer.Option(
        "--policy-config",
        metavar="FILE",
        envvar=CONFIG_VARIABLE,
        help="Configuration of the rules, as the policy pack takes it; unset: the stack's (amlstack:policies).",
    ),
]


class NoPackError(Exception):
    """The given path is no policy pack or no file; the message is for the user."""


@dataclass(frozen=True, slots=True)
class GivenRules:
    """The rules given for a command.

    Attributes:
        pack: Folder of a policy pack, or its executable; None for this project's.
        config: Configuration of the rules; None for the pack's own where a pack was given, else for the stack's.
    """

    pack: Path | None = None
    config: Path | None = None

    @classmethod
    def taken(cls, pack: Path | None, config: Path | None) -> GivenRules:
        """Checks what was given, and has the declaration gate of this command and of its engine's program use it.

        Raises:
            NoPackError: It is no pack, or no file.
        """
        for name in (PACK_VARIABLE, CONFIG_VARIABLE):
            os.environ.pop(name, None)  # the engine would count them beside the options that it is given
        if (
            pack is not None
            and not _runs(pack)
            and not any((pack / part).is_file() for part in (_MANIFEST, "analyzer"))
        ):
            raise NoPackError(
                f"`--policy-pack` must be a policy pack: a folder with {_MANIFEST}, or its executable. Got `{pack}`"
            )
        if config is not None and not config.is_file():
            raise NoPackError(
                f"`--policy-config` must be a JSON file that configures the rules. There is no file `{config}`"
            )
        given = cls(None if pack is None else pack.absolute(), None if config is None else config.absolute())
        if given != cls():
            os.environ[POLICY_CONFIG] = str(given.config or "")
        return given

    def words(self, engine: Engine, own: Path | None) -> tuple[str, ...]:
        """The engine's options.

        Args:
            engine: The engine.
            own: The configuration that the stack's settings name; None for none.
        """
        # Of an installed package the engine starts the pack as a command, whoever named its folder.
        pack = engine.pack if self.pack is None or self.pack == PACKAGE / "policies" else self.pack
        if not engine.official and (pack / "analyzer").is_file():
            pack = pack / "analyzer"
        config = self.config or (own if self.pack is None else None)
        return ("--policy-pack", str(pack), *(("--policy-pack-config", str(config)) if config else ()))

    def judge_here(self) -> None:
        """Has this process judge by the rules of the pack, before anything imports those of this project.

        Raises:
            NoPackError: The pack is not one of this project's rules.
        """
        if self.pack is None:
            return
        folder = next((each for each in (self.pack, self.pack / "policies", self.pack.parent) if _rules_in(each)), None)
        if folder is None:
            raise NoPackError(
                f"`--policy-pack` must have amlstack's rules for `check`, as `make pack` packs them. Got `{self.pack}`"
            )
        for name in [each for each in sys.modules if each == "policies" or each.startswith("policies.")]:
            del sys.modules[name]
        spec = importlib.util.spec_from_file_location(
            "policies", folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None  # noqa: S101 - the file is there
        assert spec.loader is not None  # noqa: S101 - as for any Python file
        sys.modules["policies"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _rules_in(folder: Path) -> bool:
    return all((folder / name).is_file() for name in ("__init__.py", "gate.py"))
