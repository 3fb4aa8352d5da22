"""An environment as it is declared, with the user's own stand-in for it: what a rehearsal hands to the sandbox."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.images.declared.environment import Declared, standin_of
from amlstack.sandbox.images.own import OwnStandIn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.images.standins import StandIn


@dataclass(frozen=True, slots=True)
class Chosen:
    """What stands in for one environment.

    Attributes:
        declared: The environment.
        own: What the user says that it holds; None: what it declares counts.
    """

    declared: Declared
    own: OwnStandIn | None = None

    @property
    def standin(self) -> StandIn:
        """What is built.

        Raises:
            UnknownImageError, CondaFileError, DeclaredError: There is none.
        """
        return self.own.standin if self.own is not None else standin_of(self.declared)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as JSON takes it."""
        return {
            "declared": {key: _plain(value) for key, value in asdict(self.declared).items()},
            "own": None if self.own is None else {key: _plain(value) for key, value in asdict(self.own).items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Chosen:
        """From what `as_dict` gave."""
        declared = {**data["declared"]}
        for key in ("folder", "context"):
            declared[key] = _path(declared[key])
        own = data["own"]
        if own is not None:
            files = {key: _path(own[key]) for key in ("requirements_file", "folder")}
            own = OwnStandIn(**{**own, **files, "requirements": tuple(own["requirements"])})
        return cls(Declared(**declared), own)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _path(value: str | None) -> Path | None:
    return None if value is None else Path(value)
