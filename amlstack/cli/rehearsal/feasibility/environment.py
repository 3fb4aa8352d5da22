"""The environments of a rehearsal: built already, to be built, or not to be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jobs
from amlstack.cli.rehearsal import environments, unregistered
from amlstack.cli.rehearsal.feasibility import devices, imports
from amlstack.cli.rehearsal.feasibility.aspect import Aspect
from amlstack.cli.rehearsal.workspace import rehearsal_workspace
from amlstack.sandbox import images
from jobs.model.component import NO_ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.cli.rehearsal.feasibility.stored import Stored
    from amlstack.cli.targets import Targets
    from amlstack.sandbox.images import Declared, EnvironmentAnswer, OwnStandIn


def aspects(
    place: str, part: jobs.Plan, stored: Stored, where: Targets, own: Mapping[str, OwnStandIn]
) -> Iterator[tuple[Aspect, EnvironmentAnswer | None]]:
    """What becomes of one part's environment, with the answer where it is known what the environment is.

    Args:
        place: The part's place.
        part: The part.
        stored: What the sandbox's workspace holds.
        where: The stack that was read, if any.
        own: The user's stand-ins.
    """
    from amlstack.sandbox.runner.mpi import mpirun

    wanted = part.enriched.environment
    if wanted == NO_ENVIRONMENT:
        return
    declared = _declared(part, stored)
    if declared is None and isinstance(wanted, str) and own:
        found = images.answer(images.Declared(wanted), own)
        declared = images.Declared(wanted) if found.state != "unavailable" else None
    if declared is None:
        text, remedy = unregistered.words(str(wanted), where)
        yield Aspect("environment", "blocks", text, remedy, (place,)), None
        return
    brought = devices.starts_by_mpi(part) and mpirun.is_brought(declared.image)
    answer = images.answer(declared, own, openmpi=brought)
    yield _of(place, answer), answer
    for each in answer.absent:
        if each.why:  # what the image has besides is in the line of what differs
            text = f"without {each.what}: {each.why}; {each.consequence}"
            yield Aspect("environment", "note", text, "", (place,)), None
    for aspect in imports.aspects(place, part, answer, declared.named):
        yield aspect, None


def _declared(part: jobs.Plan, stored: Stored) -> Declared | None:
    """What the environment is; None for one that is registered where this machine cannot look."""
    wanted = part.enriched.environment
    if isinstance(wanted, str):
        reference = jobs.Refs(rehearsal_workspace()).environment_id(wanted) or wanted
        if not reference.startswith("/"):
            return images.Declared(reference)
        version = stored.properties(reference)
        if version is None:
            return None
        return images.Declared(image=str(version.get("image") or ""), conda=str(version.get("condaFile") or ""))
    return environments.declared(part) or images.Declared(image=wanted.image or "")  # the plan has a finding


def _of(place: str, answer: EnvironmentAnswer) -> Aspect:
    standin = answer.standin
    if standin is None:
        return Aspect("environment", "blocks", answer.why, answer.remedy, (place,))
    differs = f"; {answer.differs}" if answer.differs else ""
    if answer.state == "ready":
        return Aspect("environment", "ready", f"{standin.summary}{differs}", "", (place,))
    try:
        images.check_programs(standin)
    except images.ImageBuildError as error:
        return Aspect("environment", "blocks", str(error), "", (place,))
    load = f", downloads up to {answer.download_mb:,} MB" if answer.download_mb else ""
    return Aspect("environment", "later", f"is built once{load}: {standin.summary}{differs}", "", (place,))
