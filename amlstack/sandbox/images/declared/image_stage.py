"""What the stages of a Dockerfile come to."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.base.paths import is_dir, is_file
from amlstack.sandbox.images.declared.pip_lines import PipLines

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class Dockerfile:
    """What a Dockerfile comes to.

    Attributes:
        image: What its last stage starts from, with its arguments put in; ``""`` where it has no FROM.
        packages: What its pip and conda commands install.
        python: The Python that a conda command asks for, in pip's words; ``""`` for none.
        own: A conda environment of its own is made: the image's packages are not seen in it.
        variables: What ENV sets.
        skipped: Commands that were not carried out, each once, in a few words.
    """

    image: str = ""
    packages: PipLines = field(default_factory=PipLines)
    python: str = ""
    own: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ImageStage:
    """The stage that is read: its result, where it works, and where files of the context were copied to."""

    found: Dockerfile
    context: Path
    work: str = "/"
    copies: dict[str, Path] = field(default_factory=dict)

    def file(self, path: str) -> Path | None:
        """The file of the context that a path of the image means."""
        inside = posixpath.normpath(posixpath.join(self.work, path))
        for target in sorted(self.copies, key=len, reverse=True):
            source = self.copies[target]
            if inside == target:
                return source
            below = inside.removeprefix(target.rstrip("/") + "/")
            if below != inside and is_dir(source) and (source / below).exists():
                return source / below
        named = self.context / posixpath.basename(path)
        return named if is_file(named) else None
