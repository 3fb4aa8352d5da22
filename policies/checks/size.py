"""Rules on VM sizes: the fabric, retirement, what the catalogue knows."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.catalog import sizes
from policies.checks.rule import Rule, Setting, cluster

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size

SINGLE_NODE_TAG = "amlstack:single_node_jobs"
"""Tag of a cluster resource (value ``"true"``): no job on it spans nodes. Azure ML has no property for that."""

FABRIC_RULE = Rule(
    code="sriov-fabric",
    title="Work across nodes needs a size whose InfiniBand is exposed by SR-IOV.",
    what=(
        "Refuses a size that has RDMA without SR-IOV, whatever the number of nodes. Refuses a GPU size without "
        "InfiniBand for more than one node, unless its cluster is declared for single-node jobs only; a multi-node job "
        "on such a cluster is then refused in its place, whatever the cluster's size. CPU sizes without RDMA are "
        "allowed. For a cluster the number of nodes is its maximum, for a job its instance count."
    ),
    why=(
        "NCCL, UCX and Open MPI reach InfiniBand through SR-IOV devices only. Without one they fall back to Ethernet "
        "and say so in one line of one log: the job runs, loses between one and two orders of magnitude of bandwidth, "
        "and every GPU is paid for while it waits."
    ),
    example="""\
clusters:
  - name: train
    size: Standard_NC96ads_A100_v4   # GPUs, no InfiniBand
    nodes: {min: 0, max: 4}
""",
    instead="""\
clusters:
  - name: train
    size: Standard_ND96amsr_A100_v4
    nodes: {min: 0, max: 4}
  - name: single
    size: Standard_NC96ads_A100_v4
    nodes: {min: 0, max: 4}
    single_node_jobs: true           # many jobs, each on one node
""",
    options=(
        "`single_node_jobs: true` on a cluster (as a resource: the tag `amlstack:single_node_jobs` with the value "
        '`"true"`) allows a GPU size without InfiniBand there.'
    ),
)


def check_fabric(
    size: Size, *, nodes: int, on: date, single_node_jobs: bool = False, where: str = "size"
) -> Finding | None:
    """Judge one size for a number of nodes.

    Args:
        size: The size as the catalogue knows it.
        nodes: Most nodes that one job can get: a cluster's maximum, a job's instance count.
        on: The day on which the remedy must be available.
        single_node_jobs: Whether the cluster says that no job on it spans nodes. Never set for a job.
        where: Path of the size in the declaration.
    """
    if size.fabric.rdma and not size.fabric.sriov:
        return Finding(
            FABRIC_RULE.code,
            where,
            seen=f"{size.name} has RDMA without SR-IOV",
            rule="NCCL, UCX and Open MPI reach InfiniBand through SR-IOV only and would train over Ethernet",
            remedy=_remedy(size, on),
        )
    if size.gpus and not size.fabric.usable and nodes > 1 and not single_node_jobs:
        return Finding(
            FABRIC_RULE.code,
            where,
            seen=f"{size.name} ({size.describe()}) with {nodes} nodes",
            rule="GPU jobs across nodes need InfiniBand with SR-IOV, else they train over Ethernet",
            remedy=_remedy(size, on, "or stay on one node (a cluster may say single_node_jobs: true)"),
        )
    return None


def check_fabric_job(nodes: int, *, cluster: str, single_node_jobs: bool, where: str = "nodes") -> Finding | None:
    """Hold a job to the promise of the cluster that it runs on.

    Args:
        nodes: The job's instance count.
        cluster: The cluster's name.
        single_node_jobs: Whether the cluster is declared for jobs of one node only.
        where: Path of the instance count in the declaration.
    """
    if not single_node_jobs or nodes < 2:
        return None
    return Finding(
        FABRIC_RULE.code,
        where,
        seen=f"The job wants {nodes} nodes of the cluster `{cluster}`, which is declared for single-node jobs only",
        rule="A cluster declared for single-node jobs is excused from having InfiniBand between its nodes",
        remedy="Run it on one node, or on a cluster with InfiniBand",
    )


def _remedy(size: Size, on: date, otherwise: str = "") -> str:
    nearest = sizes.nearest_compliant(size, on)
    if nearest is None:
        return otherwise.removeprefix("or ").capitalize()
    return ", ".join(part for part in (f"Use {nearest.name} ({nearest.describe()})", otherwise) if part)


KNOWN_SIZE_RULE = Rule(
    code="size-unknown",
    title="A size must be one that the catalogue knows.",
    what="Refuses a size that is not in the catalogue and names those that are spelled most like it.",
    why=(
        "The fabric, the GPUs and the retirement date of a size outside the catalogue are unknown, and a misspelled "
        "one would be noticed only while Azure creates the cluster."
    ),
    example="""\
clusters:
  - name: train
    size: Standard_ND96isr_H100   # the version is missing
""",
    instead="""\
clusters:
  - name: train
    size: Standard_ND96isr_H100_v5
""",
    options=(
        "None. A size that Azure has and the catalogue lacks is one more line, with its source, in "
        "`amlstack/catalog/data/sizes.json`."
    ),
)


def check_known_size(name: str, where: str = "size") -> Finding | None:
    """Judge one name, in any letter case.

    Args:
        name: The size as it was written.
        where: Its path in the declaration.
    """
    if sizes.get(name) is not None:
        return None
    near = sizes.near(name)
    return Finding(
        KNOWN_SIZE_RULE.code,
        where,
        seen=f"The catalogue has no size {name!r}",
        rule="A size must be known, so that its fabric can be judged",
        remedy=f"Did you mean {_either(near)}?" if near else "`amlstack sizes` lists those that it knows",
    )


def _either(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


RETIRED_SIZE_RULE = Rule(
    code="size-retired",
    title="A size must not be retired.",
    what="Refuses a size whose retirement date has come, and names a living one that is nearest to it.",
    why=(
        "Azure gives out no nodes of a retired size, so what names one never runs. Examples of distributed training "
        "still name Standard_NC24rs_v3, gone since 2025-09-30."
    ),
    example="""\
clusters:
  - name: train
    size: Standard_NC24rs_v3
""",
    instead="""\
clusters:
  - name: train
    size: Standard_ND40rs_v2
""",
)


def check_retired_size(size: Size, *, on: date, where: str = "size") -> Finding | None:
    """Judge one size on one day.

    Args:
        size: The size as the catalogue knows it.
        on: The day of the judgement, and on which the remedy must be available.
        where: Path of the size in the declaration.
    """
    if size.retired is None or on < size.retired:
        return None
    nearest = sizes.nearest_compliant(size, on)
    return Finding(
        RETIRED_SIZE_RULE.code,
        where,
        seen=f"{size.name} was retired on {size.retired.isoformat()}",
        rule="Azure gives out no nodes of a retired size",
        remedy=f"Use {nearest.name} ({nearest.describe()})" if nearest else "",
    )


RETIRING_SIZE_RULE = Rule(
    code="size-retiring",
    title="A size should not be about to retire.",
    what="Advises against a size whose announced retirement lies within so many days, and names a living one near it.",
    why=(
        "A cluster cannot change its size: it is replaced, quota for the new one takes weeks, and on the day of the "
        "retirement its nodes are taken away."
    ),
    example=cluster(size="Standard_HC44rs   # announced for 2027-05-31"),
    instead=cluster(size="Standard_HB120rs_v3"),
    level="advisory",
    settings=(Setting("days", "integer", "How many days ahead to look.", 180),),
    sample={"days": 400},
    not_exported="a condition cannot say how many days are left; export again and size-retired follows",
)


def check_retiring_size(size: Size, *, on: date, days: int, where: str = "size") -> Finding | None:
    """Judge one size on one day.

    Args:
        size: The size as the catalogue knows it.
        on: The day of the judgement.
        days: How many days ahead to look.
        where: Path of the size in the declaration.
    """
    if size.retired is None or not on < size.retired <= on + timedelta(days=days):
        return None
    nearest = sizes.nearest_compliant(size, size.retired)
    return Finding(
        RETIRING_SIZE_RULE.code,
        where,
        seen=f"{size.name} will be retired on {size.retired.isoformat()}, in {(size.retired - on).days} days",
        rule=f"A size should outlive the next {days} days",
        remedy=f"Plan for {nearest.name} ({nearest.describe()})" if nearest else "",
        level=Level.WARNING,
    )


CLOSED_SIZE_RULE = Rule(
    code="size-closed",
    title="A size should be one that new subscriptions still get.",
    what=(
        "Advises against a size of a series that Azure has closed: new subscriptions cannot deploy it, and no further "
        "quota is approved for old ones. Names an open size that is nearest to it. Once the rule is given the day on "
        "which the subscription was created, it refuses the size in one that was created after the closing, and makes "
        "a note of it in an older one. A retired size is the matter of `size-retired`, one that is about to retire "
        "that of `size-retiring`."
    ),
    why=(
        "Since July 2026 a cluster of such a size is created in an old subscription and refused in a new one, and it "
        "cannot grow beyond the quota of today: the deployment fails, or works for one team and not for the next."
    ),
    example=cluster(size="Standard_DS3_v2", most=1),
    instead=cluster(size="Standard_D4s_v5", most=1),
    level="advisory",
    settings=(
        Setting(
            "subscription_created", "date", "Day on which the subscription was created: without it the rule advises."
        ),
    ),
    mandatory_with="subscription_created",
    not_exported="no condition tells a new subscription from an old one",
)


def check_closed_size(
    size: Size, *, on: date, subscription_created: str | None = None, where: str = "size"
) -> Finding | None:
    """Judge one size on one day.

    Args:
        size: The size as the catalogue knows it.
        on: The day of the judgement.
        subscription_created: Day on which the subscription was created, ``2026-07-01``; None where nobody says.
        where: Path of the size in the declaration.
    """
    closed = size.lifecycle.closed_since if size.lifecycle else None
    if closed is None or on < closed or size.retired_on(on):
        return None
    nearest = sizes.nearest_open(size, on)
    seen = f"{size.name} is closed to new subscriptions since {closed:%Y-%m}"
    rule, level = "Azure deploys it within quota of old subscriptions alone, and approves no more", Level.ERROR
    if subscription_created is not None:
        created = date.fromisoformat(subscription_created)
        seen += f", and the subscription was created on {created}"
        if created < closed:
            rule, level = "An older subscription deploys it within the quota that it has, and gets no more", Level.INFO
    remedy = f"Use {nearest.name} ({nearest.describe()})" if nearest else ""
    return Finding(CLOSED_SIZE_RULE.code, where, seen=seen, rule=rule, remedy=remedy, level=level)
