"""The place of a rehearsal: this machine, or a site with Slurm, of which nothing is imported before it is wanted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.base.findings import Finding, stated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import jobs
    from amlstack.cli.rehearsal.aspects import Aspect
    from amlstack.cli.rehearsal.scale import Extent
    from amlstack.cli.targets import Targets
    from amlstack.sandbox.slurm import SlurmProfile


def _place(text: str) -> str:
    if not re.fullmatch(r"machine|slurm(:[A-Za-z0-9][\w.-]*)?", text, re.ASCII):
        raise typer.BadParameter(f"It is `machine`, `slurm` or `slurm:PROFILE`, got `{text}`.")
    return text


_METAVAR = "slurm[:PROFILE]|machine"
On = Annotated[
    str | None,
    typer.Option(
        parser=_place,
        metavar=_METAVAR,
        help="Take nodes from Slurm, as the stack's `amlstack:slurm` describes PROFILE, or use this machine; unset: as "
        "`rehearse_on` of the job's cluster says.",
    ),
]
OnForAll = Annotated[
    str | None,
    typer.Option(
        "--on",
        parser=_place,
        metavar=_METAVAR,
        help="Take the nodes of all later jobs from Slurm, as the stack's `amlstack:slurm` describes PROFILE, or from "
        "this machine again; unset: as before.",
    ),
]


def profile_of(on: str, where: Targets) -> SlurmProfile | Finding | None:
    """The profile that a place names, or why there is none; None for this machine.

    Args:
        on: ``machine``, ``slurm`` or ``slurm:PROFILE``.
        where: The stack that was read, if any.
    """
    kind, _, name = on.partition(":")
    if kind == "machine":
        return None
    from amlstack.sandbox.slurm import SlurmProfile

    if not name:
        return SlurmProfile()
    if where.settings is None:
        return stated("slurm-profile-unknown/unread", "", name=name)
    if name not in where.settings.slurm:
        from infra.settings.reading import slurm_profile_unknown

        return slurm_profile_unknown(name, where.settings.slurm)
    values = where.settings.slurm[name].model_dump(exclude_none=True)
    return SlurmProfile.read(json.dumps({"name": name, **values}))


def site_of(plan: jobs.Planned, on: str | None, where: Targets) -> SlurmProfile | Finding | None:
    """The profile by which a job gets its nodes, or why it is not known; None for this machine.

    Args:
        plan: Of a job, or of a sweep or pipeline, whose children go where it goes.
        on: The place that was asked for; None where the clusters' settings say it, else the sandbox.
        where: The stack that was read, if any.
    """
    if on is None:
        names = {(part.target.cluster or "").lower() for part in plan.parts.values()}
        clusters = where.settings.clusters if where.settings is not None else ()
        said = {each.rehearse_on for each in clusters if each.name.lower() in names}
        if len(places := sorted({each or "machine" for each in said})) > 1:
            return stated("rehearsal-place", "compute", places=", ".join(f"`{each}`" for each in places))
        on = places[0] if said - {None} else None
    if on is not None:
        return profile_of(on, where)
    if not (paths.home() / homes.SITE).is_file():
        return None
    from amlstack.sandbox.slurm import profile_for

    try:
        return profile_for(paths.home(), None)
    except ValueError as error:
        return stated("slurm-profile-unknown/file", "", file=paths.home() / homes.SITE, why=error)


def words(site: SlurmProfile) -> str:
    """A profile in a line."""
    name = f"profile {site.name}: " if site.name else ""
    return (
        f"{name}{' '.join((*site.words(), *filter(None, [site.mpirun, site.container]))) or 'the defaults of the site'}"
    )


def has_gpus(site: SlurmProfile) -> bool:
    """True where a profile asks for GPUs."""
    return "gpu" in dict(site.options).get("gres", "")


def site_aspects(site: SlurmProfile, plan: jobs.Planned, parts: Sequence[Extent]) -> Iterator[Aspect]:
    """Yield the profile, what its nodes have to share with this machine, and what the site lacks.

    Args:
        site: The profile.
        plan: The plan.
        parts: What is started of it.
    """
    from amlstack.cli.rehearsal.aspects import Aspect

    yield Aspect("Slurm", "ready", words(site))
    shared = f"each node must see {paths.home()} (AMLSTACK_HOME) and {paths.cache()} (AMLSTACK_CACHE) by these paths"
    yield Aspect("Slurm", "note", shared)
    yield from obstacles(site, [(each.place, each.started[0], _limit(plan, each.place)) for each in parts])


def _limit(plan: jobs.Planned, place: str) -> float | None:
    """Seconds that a job of a part may run; None where it does not say."""
    trials, limits = plan.trials(place), plan.parts[place].job.limits
    if trials is not None:
        return trials.trial_timeout
    return limits.timeout if limits is not None else None


def obstacles(site: SlurmProfile, wanted: Sequence[tuple[str, int, float | None]]) -> Iterator[Aspect]:
    """Yield what stands in the way of allocations by a profile, each of a part's place, nodes and seconds."""
    from amlstack.cli.rehearsal.aspects import Aspect
    from amlstack.sandbox import slurm

    if not slurm.is_here():
        text = "this machine submits to no Slurm: sbatch, squeue, srun, scancel and sinfo are not all on PATH"
        yield Aspect("Slurm", "blocks", text, "Start it where they are, on a site's login node, or give --on machine.")
        return
    try:
        there = slurm.partitions()
    except slurm.SlurmError as error:
        yield Aspect("Slurm", "blocks", f"sinfo does not answer: {error}", "Try again once it does.")
        return
    what = f"`amlstack:slurm.{site.name}`" if site.name else "another profile, --on slurm:PROFILE,"
    remedy = f"{'Correct' if site.name else 'Give'} {what} or the job; `sinfo` lists what the site has."
    for place, nodes, timeout in wanted:
        for text in slurm.obstacles(site, there, nodes, timeout):
            yield Aspect("Slurm", "blocks", text, remedy, (place,))
