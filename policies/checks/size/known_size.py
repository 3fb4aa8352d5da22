"""A size must be one that the catalogue knows."""

from __future__ import annotations

from amlstack.base.findings import Finding
from amlstack.catalog import sizes
from amlstack.catalog.sizes import substitutes
from policies.checks.rule import Rule

RULE = Rule(
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


def check(name: str, where: str = "size") -> Finding | None:
    """Judge one name, in any letter case.

    Args:
        name: The size as it was written.
        where: Its path in the declaration.
    """
    if sizes.get(name) is not None:
        return None
    near = substitutes.near(name)
    return Finding(
        RULE.code,
        where,
        seen=f"The catalogue has no size {name!r}",
        rule="A size must be known, so that its fabric can be judged",
        remedy=f"Did you mean {_either(near)}?" if near else "`amlstack sizes` lists those that it knows",
    )


def _either(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
