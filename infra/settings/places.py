"""Where each setting was written: in the stack file, or in a file that a list of the settings includes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from infra.settings import cluster_defaults
from infra.settings.problems import dotted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.base.findings import Finding
    from amlstack.base.yamltext import Text
    from infra.settings.stackfile import Loc, StackFile


@dataclass(frozen=True, slots=True)
class IncludedFile:
    """A file that holds entries of a list of the settings.

    Attributes:
        name: Its path from the project's folder on, as findings show it.
    """

    name: str
    _text: Text = field(repr=False)

    def located(self, loc: Loc, finding: Finding) -> Finding:
        """The finding with the place of what it is about, or of the closest thing around it."""
        return finding.at(self.name, *(self._text.spot(loc) or (None, None)))


@dataclass(frozen=True, slots=True)
class Places:
    """From a path in the settings, all files read, to where a person wrote what is there.

    Attributes:
        file: The stack file, where it is known.
        entries: Of each list that includes files: file and index of every entry; the stack file is None.
        defaults: Path of each value of a cluster that came from ``cluster_defaults`` → its path there.
    """

    file: StackFile | None = None
    entries: Mapping[str, tuple[tuple[IncludedFile | None, int], ...]] = field(default_factory=dict)
    defaults: dict[Loc, Loc] = field(default_factory=dict)

    def written(self, loc: Loc) -> tuple[IncludedFile | None, Loc]:
        """The included file, or None for the stack file, and the path in it."""
        if self.defaults and (source := cluster_defaults.origin(loc, self.defaults)) is not None:
            return None, source
        of_list = self.entries.get(str(loc[0]), ()) if len(loc) > 1 else ()
        if not isinstance(loc[1] if of_list else None, int) or int(loc[1]) >= len(of_list):
            return None, loc
        included, index = of_list[int(loc[1])]
        return included, ((loc[0], index, *loc[2:]) if included is None else (index, *loc[2:]))

    def where(self, loc: Loc) -> str:
        """The path as its file has it: ``amlstack:clusters[0].size``, in an included file ``[0].size``."""
        included, written = self.written(loc)
        return dotted(written) if included is None else dotted(("", *written)).partition(":")[2]

    def shown(self, loc: Loc) -> str:
        """The same for the middle of a sentence, with the included file."""
        included, _ = self.written(loc)
        return self.where(loc) if included is None else f"{included.name}{self.where(loc)}"

    def located(self, loc: Loc, finding: Finding) -> Finding:
        """The finding with the place of a setting."""
        if finding.where == dotted(loc):
            finding = replace(finding, where=self.where(loc))
        included, written = self.written(loc)
        if included is not None:
            return included.located(written, finding)
        return finding if self.file is None else finding.at(self.file.name, *self.file.locate(written))

    def together(self, loc: Loc) -> Loc | None:
        """The other way: of a path in the stack file that in the settings; None for an entry that includes files."""
        of_list = self.entries.get(str(loc[0])) if len(loc) > 1 else None
        if of_list is None:
            return loc
        return next(((loc[0], at, *loc[2:]) for at, each in enumerate(of_list) if each == (None, loc[1])), None)
