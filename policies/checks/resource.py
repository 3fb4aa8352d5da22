"""Rules on every Azure resource: where it lies, how it is tagged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.base.pulumi_wire import UNKNOWN
from policies.checks.examples import cluster
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REGION_RULE = Rule(
    code="region-approved",
    title="Resources lie in approved regions.",
    what=(
        "Refuses a resource whose location is not among the approved regions; written names and codes (`West "
        "Europe`, `westeurope`) are the same. Silent until regions are configured."
    ),
    why=(
        "Data may have to stay where the law wants it, quota for InfiniBand sizes exists in few regions, and "
        "traffic between regions is slow and paid for."
    ),
    example=cluster(top="location: southindia"),
    instead=cluster(top="location: westeurope"),
    settings=(Setting("regions", "array", "Approved regions."),),
    sample={"regions": ["westeurope", "northeurope"]},
)


def check_region(location: str, *, regions: Sequence[str] | None, where: str = "location") -> Finding | None:
    """Judge where a resource lies.

    Args:
        location: Its region, as a name or a code; `global` is none.
        regions: Approved regions; None or none at all for no bound.
        where: Path of the location in the declaration.
    """
    if not regions or _code(location) in {"global", *map(_code, regions)}:
        return None
    return Finding(
        REGION_RULE.code,
        where,
        seen=f"The location is {location!r}",
        rule="Resources lie in an approved region",
        remedy=f"Approved: {', '.join(regions)}",
    )


def _code(region: str) -> str:
    return "".join(region.lower().split())


REQUIRED_TAGS_RULE = Rule(
    code="tags-required",
    title="Resources carry the required tags.",
    what=(
        "Refuses an Azure resource with a location that lacks one of the required tags or leaves it empty. Silent "
        "until tags are configured."
    ),
    why=("Without an owner and a cost centre in its tags, a forgotten cluster has no team to ask, and stays."),
    example=cluster(top="tags: {team: vision}"),
    instead=cluster(top='tags: {team: vision, cost-center: "4711"}'),
    settings=(
        Setting("required", "array", "Names of the tags that must be there, with a value."),
        Setting("values", "object", "What remediation writes where one is missing, by tag."),
    ),
    sample={"required": ["team", "cost-center"], "values": {"cost-center": "4711"}},
    fix="Writes the tags that `values` gives, where they are missing.",
)


def written_tags(tags: Mapping[str, object]) -> set[str]:
    """The tags that have a value, in lower case; one that is known only once something else exists has one."""
    return {name.lower() for name, value in tags.items() if value is UNKNOWN or str(value or "").strip()}


def check_required_tags(
    tags: Mapping[str, object],
    *,
    required: Sequence[str] | None,
    values: Mapping[str, str] | None = None,
    where: str = "tags",
) -> Finding | None:
    """Judge the tags of a resource; Azure takes their names in any letter case.

    Args:
        tags: Its tags.
        required: Names that must be there with a value; None or none at all for no bound.
        values: What the team writes where one is missing, for the remedy.
        where: Path of the tags in the declaration.
    """
    there = written_tags(tags)
    wanted = tuple(required or ())
    missing = [name for name in wanted if name.lower() not in there]
    if not missing:
        return None
    known = [f"{name}: {values[name]}" for name in missing if values and name in values]
    return Finding(
        REQUIRED_TAGS_RULE.code,
        where,
        seen=f"Missing: {', '.join(missing)}",
        rule=f"Resources carry {', '.join(wanted)}",
        remedy=f"Write {', '.join(known)}" if known else "Write them, with a value",
    )
