"""Stand-ins of a user's own: for environments that are registered somewhere, or images that nothing here knows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from amlstack.base.paths import is_file
from amlstack.sandbox.images import references, resolving
from amlstack.sandbox.images.declared import environment
from amlstack.sandbox.images.declared.pip_lines import PipLines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.sandbox.images.standins import StandIn


@dataclass(frozen=True, slots=True)
class OwnStandIn:
    """What a user says an environment holds.

    Attributes:
        requirements: As pip takes them.
        python: Version of Python; empty for the project's own.
        requirements_file: A file with more of them.
        like: An environment or image whose stand-in it starts from; empty for none.
        folder: Where paths start from.
        origin: ``FILE:LINE`` where it was written.
    """

    requirements: tuple[str, ...] = ()
    python: str = ""
    requirements_file: Path | None = None
    like: str = ""
    folder: Path | None = None
    origin: str = ""

    @property
    def standin(self) -> StandIn:
        """The environment that is built.

        Raises:
            UnknownImageError: There is no stand-in for ``like``.
        """
        found = PipLines()
        if self.requirements_file is not None and is_file(self.requirements_file):
            text = self.requirements_file.read_text(encoding="utf-8-sig", errors="replace")
            found.read(text, self.requirements_file.parent)
        for line in self.requirements:
            found.read(line, self.folder)
        made = environment.of_lines("own", found, self.python)
        base = resolving.resolve(self.like) if self.like else None
        return replace(
            made,
            summary=f"{len(made.requirements)} packages by {self.origin}",
            base=base,
            python=self.python or (base.python if base is not None else ""),
            differs="; ".join([f"as {self.origin} says", *found.notes]),
            partial=False,
            absent=(*(base.absent if base is not None else ()), *made.absent),
            versions=(*(base.versions if base is not None else ()), *made.versions),
            download_mb=made.download_mb + (base.download_mb if base is not None else 0),
        )


def of(declared: environment.Declared, own: Mapping[str, OwnStandIn]) -> OwnStandIn | None:
    """A user's stand-in for an environment: by its reference or image as written, else by name in any version."""
    for written in (declared.reference, declared.image, str(declared.context or "")):
        if written and written in own:
            return own[written]
    wanted = declared.reference or ("" if declared.conda else declared.image)
    if not wanted:
        return None
    name = references.read(wanted)
    for key, value in own.items():
        named = references.read(key)
        if named.name == name.name and (not named.tag or named.tag == name.tag):
            return value
    return None
