"""Plans: the base of all kinds, and the plan of a command job, of which the others consist.

A plan has a target (a cluster or a serverless size, as plain facts), the declaration as plain data, which makes it the
same run or another one, and a bound on the cost where the catalogue has a price.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, get_args

from pydantic import BaseModel

from amlstack.base.findings import Finding, errors
from amlstack.base.paths import is_dir, is_file
from amlstack.catalog import sizes
from jobs.values import Environment

if TYPE_CHECKING:
    from datetime import date

    from amlstack.catalog.sizes import Size
    from jobs.model.job import Job, SweepLimits

Find = Callable[["Job"], tuple["Target", Sequence[Finding]]]


class Target(NamedTuple):
    """The machines on which a job would run.

    Attributes:
        size: VM size by name; None when it is not known.
        cluster: Name of the cluster; None for serverless.
        max_nodes: Most nodes that the cluster scales to; None for no known bound.
        single_node_jobs: Whether the cluster takes jobs of one node only.
        region: Where its nodes are, as programs write it; None where it is not known.
        low_priority: Whether its nodes are of low priority.
    """

    size: str | None = None
    cluster: str | None = None
    max_nodes: int | None = None
    single_node_jobs: bool = False
    region: str | None = None
    low_priority: bool = False

    @property
    def facts(self) -> Size | None:
        """The catalogue's row of the size, when it has one."""
        return sizes.get(self.size) if self.size else None


NOT_IDENTITY = frozenset(
    # Changed later without a new run; how the resource behaves; and what stands beside the declaration by itself.
    {"display_name", "description", "tags", "wait", "after", "on_edit", "delete_history", "name", "rerun", "code"}
)


def declaration(job: Job, base: Path) -> dict[str, Any]:
    """The job as JSON-able data without what is default, derived, or free to change.

    A default that is left out stays out, so that a new version of this project with one more field makes no new run.
    A conda file counts with its content. The code's content is hashed elsewhere.

    Args:
        job: As it was declared, before the plan adds anything.
        base: Folder that relative paths start from.
    """
    result = {name: value for name, value in _given(job).items() if name not in NOT_IDENTITY}
    if job.code is not None and not job.code.local:
        result["code"] = job.code.path
    if isinstance(job.environment, Environment) and isinstance(job.environment.conda_file, str):
        path = base / job.environment.conda_file
        if is_file(path):
            result["environment"]["conda_file"] = path.read_text(encoding="utf-8-sig", errors="replace")
    return result


def written_fields(model: BaseModel, *, leave: Collection[str] = ()) -> dict[str, Any]:
    """A sweep's or pipeline's own part of the identity, without the fields that stand there in another form."""
    return {name: value for name, value in _given(model).items() if name not in NOT_IDENTITY and name not in leave}


def _given(model: BaseModel) -> dict[str, Any]:
    """A model's fields that differ from their defaults; of a union's branch its ``type`` stays, it says which one."""
    result = {}
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        discriminator = name == "type" and len(get_args(field.annotation)) == 1
        if discriminator or value != field.get_default(call_default_factory=True, validated_data={}):
            result[name] = _data(value)
    return result


def _data(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _given(value)
    if isinstance(value, dict):
        return {str(key): _data(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_data(inner) for inner in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


class Added(NamedTuple):
    """One value that is not the person's own.

    Attributes:
        what: Path in the job, e.g. ``environment_variables.NCCL_SOCKET_IFNAME``.
        value: The value that was put there.
        by: The launcher's type, or ``fabric``.
        why: The reason.
        instead_of: The person's value where one was rewritten (the command of a launcher).
    """

    what: str
    value: Any
    by: str
    why: str
    instead_of: Any = None


@dataclass(frozen=True, kw_only=True)
class BasePlan:
    """Base of all plans.

    Attributes:
        findings: What is wrong, placed in the file.
        base: Folder that relative paths start from.
    """

    timed: ClassVar[bool] = False
    """True for a schedule."""

    findings: tuple[Finding, ...]
    base: Path

    @property
    def runs(self) -> Self | None:
        """The plan of what is run: it itself."""
        return self

    @property
    def ok(self) -> bool:
        """True where nothing refuses it; warnings do not."""
        return not errors(self.findings)

    @property
    def parts(self) -> Mapping[str, Plan]:
        """The plans of its command jobs, by their place: `jobs.STEP`, `trial`; empty for a single job."""
        raise NotImplementedError

    @staticmethod
    def step(place: str) -> str:
        """Name of the step at a part's place; empty for a job, and for a sweep's trial."""
        return place.removeprefix("jobs.") if place.startswith("jobs.") else ""

    def placed(self, place: str, finding: Finding) -> Finding:
        """A finding on a field of the part at a place as one of the whole."""
        return finding.under(place) if place else finding

    def trials(self, place: str) -> SweepLimits | None:
        """The trials of the part at a place; None for a part that runs once."""
        del place
        return None


@dataclass(frozen=True)
class Plan(BasePlan):
    """A job resolved against a target.

    Attributes:
        job: As declared.
        enriched: In Azure ML's words, with all that was added; what `jobs.body` renders.
        target: What it was planned against.
        nodes: Number of nodes.
        processes_per_node: Ranks per node; None where only the running job knows.
        world_size: Ranks in total; None likewise.
        added: What is not the person's own, value by value.
        beside: Packages that travel with the code; they are no part of the run's identity.
    """

    job: Job
    enriched: Job
    target: Target
    nodes: int
    processes_per_node: int | None
    world_size: int | None
    added: tuple[Added, ...]
    beside: tuple[Path, ...] = ()

    @property
    def parts(self) -> dict[str, Plan]:
        """The plan itself: a single job is its one part."""
        return {"": self}

    @cached_property
    def declaration(self) -> dict[str, Any]:
        """The declaration as plain data, for the run's identity: without names, tags and anything derived."""
        return declaration(self.job, self.base)

    @cached_property
    def code(self) -> Path | None:
        """The folder to upload; None when the job has none or names code that is registered already."""
        if self.job.code is None or not self.job.code.local:
            return None
        folder = self.base / self.job.code.path
        includes = [self.base / name for name in self.job.code.includes]
        if not includes or not is_dir(folder):
            return folder
        from amlstack import snapshot  # noqa: PLC0415 - few jobs have such code
        from amlstack.base import paths  # noqa: PLC0415 - few jobs have such code

        return snapshot.staged(folder, includes, paths.cache() / "includes")


class Cost(NamedTuple):
    """A bound on a run's cost.

    Attributes:
        per_hour: US dollars per hour for all nodes.
        most: US dollars at most, when the job has a timeout; None without one.
        hours: Hours of that timeout; None without one.
        region: Region of the price.
        checked: When the price was looked up.
        source: Where, and of low-priority nodes whether it is their price or that of dedicated ones, a bound.
    """

    per_hour: float
    most: float | None
    hours: float | None
    region: str
    checked: date
    source: str

    def __str__(self) -> str:
        end = "until its trials' timeouts" if self.hours is None else f"in {self.hours:g} h until its timeout"
        until = "" if self.most is None else f", at most {self.most:,.2f} USD {end}"
        return f"{self.per_hour:,.2f} USD per hour{until} ({self.region}, {self.checked:%Y-%m}, {self.source})"


def costs(planned: BasePlan) -> dict[str, Cost]:
    """By place in a plan (``jobs.train``, ``trial``, empty for a job) what the part may cost; none without a price."""
    found: dict[str, Cost] = {}
    for place, part in planned.parts.items():
        if (price := _cost_of_job(part)) is not None:
            limits = planned.trials(place)
            found[place] = price if limits is None else _cost_of_trials(price, limits)
    return found


def _cost_of_job(plan: Plan) -> Cost | None:
    """The cost of one run of a job; None when the catalogue knows no price of its size."""
    size = plan.target.facts
    price = size.price_in(plan.target.region) if size is not None else None
    if price is None:
        return None
    low = plan.target.low_priority
    per_hour = price.hourly(low_priority=low) * plan.nodes
    which = f", {'dedicated nodes' if price.low_priority is None else 'low priority'}" if low else ""
    seconds = plan.job.limits.timeout if plan.job.limits else None
    hours = seconds / 3600 if seconds else None
    most = None if hours is None else per_hour * hours
    source = f"{price.source}{which}"
    return Cost(per_hour=per_hour, most=most, hours=hours, region=price.region, checked=price.checked, source=source)


def _cost_of_trials(price: Cost, limits: SweepLimits) -> Cost:
    """A bound on all trials: as many at a time as may be, until all of them or the sweep time out."""
    at_once = min(limits.max_concurrent_trials or limits.max_total_trials, limits.max_total_trials)
    bounds = []
    if limits.trial_timeout:
        bounds.append(limits.max_total_trials * limits.trial_timeout / 3600 * price.per_hour)
    if limits.timeout:
        bounds.append(at_once * limits.timeout / 3600 * price.per_hour)
    hours = limits.timeout / 3600 if limits.timeout else None
    most = min(bounds) if bounds else None
    return price._replace(per_hour=price.per_hour * at_once, most=most, hours=hours)
