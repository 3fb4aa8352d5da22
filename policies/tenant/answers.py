"""Which setting of a stack answers a policy: by the property, or the resource beside it, that the policy looks at."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


OF_ALL = "*"
"""In place of a type: what every resource has."""


@dataclass(frozen=True, slots=True)
class SettingAnswer:
    """What to do about a property.

    Attributes:
        setting: Path below ``amlstack:``, ``clusters[]`` for the cluster in question; empty where none changes it.
        say: What to write, or why nothing does, as a sentence.
    """

    setting: str
    say: str


def answer(field: str, kind: str) -> SettingAnswer | None:
    """The answer to a policy on a property, or on what is missing beside the resource; None where there is none.

    Args:
        field: ``Microsoft.X/type/property.path``, or a type that is looked for.
        kind: Type of the resource.
    """
    low, own = field.lower().replace("[*]", ""), f"{kind.lower()}/"
    table = {**_table().get(OF_ALL, {}), **_table().get(kind.lower(), {})}
    path = low.removeprefix(own)
    for name in (low, path, path.partition("[")[0]):
        while name:
            if name in table:
                return table[name]
            name = name.rpartition(".")[0]  # noqa: PLW2901
    return None


@cache
def _table() -> Mapping[str, Mapping[str, SettingAnswer]]:
    text = resources.files(__package__).joinpath("data", "answers.json").read_text("utf-8")
    data: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return {
        kind.lower(): {path.lower(): SettingAnswer(one.get("setting", ""), one["say"]) for path, one in rows.items()}
        for kind, rows in data.items()
    }


def settings() -> frozenset[str]:
    """Every setting that is named."""
    return frozenset(one.setting for rows in _table().values() for one in rows.values() if one.setting)
