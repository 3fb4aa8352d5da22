"""The words of a proof: what it will make and cost, and the page of what it has found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from amlstack.base import paths
from amlstack.catalog import sizes
from amlstack.prove.walk import STEPS, chosen

if TYPE_CHECKING:
    from datetime import date

    from amlstack.catalog.sizes import Size
    from amlstack.prove.comparison import DifferingFact
    from amlstack.prove.proof import Proof

NODE_HOURS: Final = 2.0
"""Two nodes for an hour: the most that the walk may take."""
REST: Final = 1.0
"""US dollars for what has no price in the catalogue: a registry for an hour (Premium is 1.67 a day), storage, logs."""
MOST: Final = 5.0
_LEAST: Final = 4, 14
"""vCPUs and GiB of memory that the image and two ranks need."""


def cheapest(region: str, on: date) -> Size | None:
    """The cheapest size of x64 CPUs without InfiniBand that Azure ML lists and that stays for a year."""
    fitting = [
        size
        for size in sizes.all_sizes()
        if not size.gpus and size.fabric.infiniband is None and size.azureml_supported and size.architecture == "x64"
        and (size.vcpus or 0) >= _LEAST[0] and (size.memory_gib or 0) >= _LEAST[1]
        and not size.retired_on(on.replace(year=on.year + 1)) and size.price_per_hour is not None
    ]  # fmt: skip
    return min(fitting, key=lambda size: (price(size, region), size.name), default=None)


def price(size: Size, region: str) -> float:
    """US dollars of an hour of one node; infinite where no price is known."""
    known = size.node_price(region, low_priority=False)
    return known.usd if known else float("inf")


def estimate(size: Size, region: str) -> float:
    """US dollars that a walk costs at most."""
    return NODE_HOURS * price(size, region) + REST


def announcement(proof: Proof, size: Size, only: tuple[str, ...]) -> Iterator[str]:
    """The resources that will be made, shown before the question."""
    yield f"proof {proof.id} in {proof.location}; its folder is {proof.folder}"
    yield f"resource groups, with all that is in them, tagged amlstack-prove={proof.id}:"
    yield from (f"  {group}" for group in proof.groups)
    yield f"steps: {', '.join(chosen(only))}"
    known = size.node_price(proof.location, low_priority=False)
    basis = f"{known.usd:.3f} USD an hour ({known.basis})" if known else "no known price"
    yield f"nodes: at most two of {size.name}, {size.describe()}, {basis}"
    yield f"cost: {estimate(size, proof.location):.2f} USD at most, for less than an hour; nothing afterwards"
    yield "`amlstack prove --cleanup` removes all of it, also after a kill"


def page(proof: Proof, alike: int, differences: list[DifferingFact], exchanges: int, left: list[str]) -> str:
    """The page, as Markdown."""
    lines = [
        f"# Proof {proof.id}: {proof.location}, {proof.size}", "",
        f"{exchanges:,} exchanges; {alike:,} facts alike, {len(differences):,} differ from the sandbox.", "",
        "## Steps", "", "| step | result | seconds | seen |", "| --- | --- | --- | --- |",
    ]  # fmt: skip
    for name, row in proof.steps.items():
        if name in STEPS:
            lines.append(f"| {name} | {row['status']} | {row['seconds']} | {_cell(row['seen'])} |")
    lines += ["", "## Different", ""]
    if differences:
        lines += ["| step | request | aspect | Azure | sandbox |", "| --- | --- | --- | --- | --- |"]
        lines += [
            f"| {one.step} | `{_cell(one.request)}` | {_cell(one.aspect)} | {_cell(one.azure)} | {_cell(one.sandbox)} |"
            for one in sorted(differences)
        ]
    else:
        lines.append("Nothing.")
    lines += ["", "`facts.jsonl` beside this page has each as a fact.", "", "## Open questions", ""]
    lines += list(_questions(proof)) or ["docs/reference/unproven.md names no question that these steps answer."]
    lines += ["", "## Left behind", "", *([f"- {each}" for each in left] or ["Nothing: each group answers 404."]), ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", str(text)).replace("|", "\\|")[:400]


def _questions(proof: Proof) -> Iterator[str]:
    """Rows of docs/reference/unproven.md that name a step of this proof (``prove --only STEP``) which passed."""
    file = paths.PACKAGE / "docs/reference/unproven.md"
    for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
        named = re.findall(r"prove --only ((?:[a-z]+ ?)+)", line)
        steps = {word for some in named for word in some.split()} & set(STEPS)
        if steps and all(proof.steps.get(step, {}).get("status") == "ok" for step in steps):
            yield "- " + re.sub(r"<a id=[^>]+></a>", "", line.strip("| "))
