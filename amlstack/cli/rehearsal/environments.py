"""The environments of a rehearsal: what stands in for each, as the sandbox is handed it beside the body."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.cli.rehearsal.declared_inputs import within
from jobs.model.component import NO_ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import jobs
    from amlstack.sandbox import images
    from amlstack.sandbox.images import Chosen, EnvironmentAnswer, OwnStandIn


@dataclass(frozen=True, slots=True)
class Environments:
    """What one plan's environments come to.

    Attributes:
        by_step: What the sandbox is handed, by step; of a job that is no pipeline under the empty name.
        lines: What a reader should know before the start, a sentence each.
    """

    by_step: Mapping[str, Chosen] = field(default_factory=dict)
    lines: tuple[str, ...] = ()


def resolve(plan: jobs.Planned, own: Mapping[str, OwnStandIn], given: Collection[str] = ()) -> Environments:
    """Looks up the environment of every part of a plan; builds nothing, asks no network.

    What cannot be had is left out here: it is refused before anything starts (`feasibility`).

    Args:
        plan: Of a job, a sweep or a pipeline.
        own: What the user says of environments.
        given: Steps that are not run.
    """
    from amlstack.sandbox import images

    by_step: dict[str, Chosen] = {}
    lines: dict[str, None] = {}
    for place, part in plan.parts.items():
        step = plan.step(place)
        wanted = declared(part)
        if wanted is None or within(step, given):
            continue
        chosen = images.Chosen(wanted, images.own_of(wanted, own))
        if chosen.own is None and _of_a_workspace(wanted):
            continue  # the sandbox's workspace may have it, and says so where it has not
        answer = images.answer(wanted, own)
        if answer.state != "unavailable":
            by_step[step] = chosen
            lines |= dict.fromkeys(_lines(answer))
    return Environments(by_step, tuple(lines))


def declared(part: jobs.Plan) -> images.Declared | None:
    """The environment of one command as it is declared; None for a job that has none, or one that cannot be read."""
    import jobs
    from amlstack.sandbox import images
    from jobs.wire.environments import conda_text

    value = part.enriched.environment
    if isinstance(value, jobs.Environment):
        if value.build is not None and "://" not in value.build.path:
            context = (part.base / value.build.path).absolute()
            return images.Declared(context=context, dockerfile=value.build.dockerfile_path or images.DOCKERFILE)
        try:
            conda = conda_text(value, part.base) or ""
        except OSError:
            return None
        folder = (part.base / value.conda_file).absolute().parent if isinstance(value.conda_file, str) else None
        return images.Declared(image=value.image or "", conda=conda, folder=folder)
    if not value or value == NO_ENVIRONMENT:
        return None
    return images.Declared(reference=value)


def _of_a_workspace(wanted: images.Declared) -> bool:
    """Whether it names what is registered in a workspace."""
    return wanted.reference.startswith(("azureml:", "/subscriptions/")) and not wanted.reference.startswith(
        ("azureml://registries/", "azureml:AzureML-", "azureml:azureml-")
    )


def _lines(answer: EnvironmentAnswer) -> Iterator[str]:
    if answer.state == "build" and answer.standin is not None:
        size = f", up to {answer.download_mb} MB" if answer.download_mb else ""
        yield f"environment: {answer.standin.summary} is built first, once{size}"
    for each in answer.absent:
        if each.why:
            yield f"environment: without `{each.what}`: {each.why}; {each.consequence}"
