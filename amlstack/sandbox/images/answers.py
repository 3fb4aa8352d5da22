"""Whether an environment can be had on this machine, answered from files of this machine alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from amlstack.sandbox.images import builder, differences, own, references
from amlstack.sandbox.images.declared.conda import CondaFileError
from amlstack.sandbox.images.declared.environment import Declared, DeclaredError, standin_of
from amlstack.sandbox.images.resolving import UnknownImageError
from amlstack.sandbox.images.standins import with_openmpi

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.images.absent import Absent
    from amlstack.sandbox.images.own import OwnStandIn
    from amlstack.sandbox.images.standins import StandIn

State = Literal["ready", "build", "unavailable"]


@dataclass(frozen=True, slots=True)
class EnvironmentAnswer:
    """What a rehearsal will do about one environment.

    Attributes:
        state: ``ready``: it is built. ``build``: it is built at its first use. ``unavailable``: it cannot be had.
        standin: What is built; None where it cannot be had.
        differs: How it differs from the image, in one line; empty where nothing is known to differ.
        absent: What is declared, or in the image, and will not be there.
        download_mb: Megabytes that building it downloads at most, roughly; 0 when it is ready or nothing is known.
        why: Why it cannot be had, as a sentence; empty otherwise.
        remedy: What to do about that, with the lines for rehearsal.toml; empty otherwise.
    """

    state: State
    standin: StandIn | None = None
    differs: str = ""
    absent: tuple[Absent, ...] = field(default=())
    download_mb: int = 0
    why: str = ""
    remedy: str = ""


def answer(
    declared: Declared, given: Mapping[str, OwnStandIn] | None = None, *, openmpi: bool = False
) -> EnvironmentAnswer:
    """Whether an environment is there, must be built, or cannot be had. Takes milliseconds; asks no network.

    Args:
        declared: The environment.
        given: A user's own stand-ins, by what they stand in for.
        openmpi: Whether it gets an Open MPI of its own.
    """
    try:
        chosen = own.of(declared, given or {})
        standin = chosen.standin if chosen is not None else standin_of(declared)
    except (UnknownImageError, CondaFileError, DeclaredError) as error:
        remedy = "" if isinstance(error, CondaFileError) else lines_for(declared)
        return EnvironmentAnswer("unavailable", why=str(error), remedy=remedy)
    if openmpi:
        standin = with_openmpi(standin, declared.image)
    line = differences.line(standin)
    if builder.ready(standin) is not None:
        return EnvironmentAnswer("ready", standin, line, differences.absent(standin))
    return EnvironmentAnswer("build", standin, line, standin.absent, _download_mb(standin))


def _download_mb(standin: StandIn) -> int:
    """Of what is built, without the layers that are there."""
    base = standin.base
    there = base is not None and builder.ready(base) is not None
    return standin.download_mb - (base.download_mb if base is not None and there else 0)


def lines_for(declared: Declared) -> str:
    """What to write into rehearsal.toml for an environment that no stand-in is known for."""
    key = json.dumps(declared.named, ensure_ascii=False)
    found = references.read(declared.named)
    example = 'requirements = ["torch", "…"]' if "torch" in found.name else 'requirements = ["PACKAGE==VERSION", "…"]'
    return f"Write into rehearsal.toml what it holds: `[stand_in.{key}]`, below it `{example}`."
