"""Each type of the classic Azure provider, and of azurerm under it, that can name a size or a template is judged."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from policies.evaluation.type_tokens import CLASSIC_TEMPLATE, judged
from policies.resource_types import machines, reasons
from tests.support.policies import equal_programs
from tests.support.policies.pack_subjects import pack, seen

DATA = Path(equal_programs.__file__).with_name("classic_properties.json")
PROPERTIES: dict[str, list[str]] = json.loads(DATA.read_text(encoding="utf-8"))["properties"]
CLUSTERS = {"azure:machinelearning/computeCluster:ComputeCluster": "vmSize"}


def is_read(token: str, place: str) -> bool:
    if CLUSTERS.get(token) == place or CLASSIC_TEMPLATE.fullmatch(token):
        return True
    parts = place.split(".")
    for path in machines.CLASSIC.get(token, ()):
        plain = [name for name in path if name != machines.EACH]
        if plain == parts or [*path] == [*parts[:-2], machines.EACH, parts[-1]]:
            return True
        if plain[: len(parts)] == parts:  # the list around the sizes
            return True
    return False


@pytest.mark.parametrize("token", sorted(PROPERTIES))
def test_every_property_of_the_classic_provider_is_read_or_listed_with_the_reason(token: str) -> None:
    kind = token.removeprefix("azure:").replace("/", ":").split(":")
    left = [
        place
        for place in PROPERTIES[token]
        if not is_read(token, place)
        and not any(fnmatchcase(f"{kind[0]}:{kind[-1]} {place}", each) for each in reasons.TERRAFORM)
    ]

    assert left == []


def test_no_reason_and_no_judged_type_is_left_of_what_is_gone() -> None:
    kinds = {token: token.removeprefix("azure:").replace("/", ":").split(":") for token in PROPERTIES}
    places = [f"{kinds[token][0]}:{kinds[token][-1]} {place}" for token, each in PROPERTIES.items() for place in each]

    assert [one for one in reasons.TERRAFORM if not any(fnmatchcase(place, one) for place in places)] == []
    assert [token for token in machines.CLASSIC if token not in PROPERTIES] == []


RETIRED, CURRENT = "Standard_NC24rs_v3", "Standard_ND96isr_H100_v5"


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


@pytest.mark.parametrize("row", machines.TERRAFORM, ids=lambda row: row[1])
def test_a_type_bridged_anew_is_judged_as_the_classic_one_in_blocks_or_objects(row: Any) -> None:
    _, name, paths = row
    token = f"azurerm:index/{camel(name)[:1].lower()}{camel(name)[1:]}:{camel(name)}"

    assert judged(token)
    for path in paths or (("vmSize",),):
        for blocks in (False, True):
            value: Any = RETIRED
            for key in reversed(path):
                value = (
                    [value] if key == machines.EACH else {key: [value] if blocks and isinstance(value, dict) else value}
                )
            assert seen(pack({"size-closed": "disabled"}), token, value)[:1] == ["mandatory size-retired"]
