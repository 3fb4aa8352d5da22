"""Settings that the stack's configuration marks as secret: which can be, and how no message shows them.

A secret setting is only passed on to a resource as it is. What decides names, ids or the plan is shown by these, and is
refused as a secret. The stack file holds secrets encrypted (``{secure: …}``); the engine hands them over in clear text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding
from infra.settings.repair import finding_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from infra.settings.repair import Found
    from infra.settings.stackfile import Loc, StackFile

REDACTED: Final = "[secret]"
"""Stands for a secret in messages, and for its value where only the stack file is read."""

_SHORTEST: Final = 3
"""A shorter text is recognised only between quotes: it is part of too many others."""

ANY: Final = "*"
PASSED_ON: Final[tuple[tuple[str, ...], ...]] = (
    ("tags", ANY),
    ("secrets", ANY),
    ("clusters", ANY, "tags", ANY),
    ("clusters", ANY, "description"),
    ("cluster_defaults", "tags", ANY),
    ("cluster_defaults", "description"),
    ("workspace", "display_name"),
    ("workspace", "description"),
    ("armEndpoint",),
)
"""The settings that can be secret."""


def can_be(loc: Loc) -> bool:
    """True where the setting at a place can be secret."""
    return any(
        len(form) == len(loc) and all(word in (ANY, str(part)) for word, part in zip(form, loc, strict=True))
        for form in PASSED_ON
    )


def encrypted(value: Any, loc: Loc = ()) -> tuple[Loc, ...]:
    """The places of what is encrypted in a value that stands at a path."""
    return tuple(_encrypted(value, loc, set()))


def of_engine(values: Mapping[str, Any], keys: Collection[str], file: StackFile | None) -> tuple[Loc, ...]:
    """The places of secrets in what the engine hands over.

    The engine only says which keys hold one. The file says where in them, if it is the one that the engine has read;
    else all of a key counts.
    """
    written = encrypted(file.values) if file is not None else ()
    found: list[Loc] = []
    for key in keys:
        inside = [loc for loc in written if loc[0] == key and _at(values, loc) is not None]
        if not inside and key in {"tags", "secrets"} and isinstance(values.get(key), dict):
            inside = [(key, name) for name in values[key]]
        found += inside or [(key,)] * (key in values)
    return tuple(found)


def texts(values: Mapping[str, Any], locs: Collection[Loc]) -> frozenset[str]:
    """The texts at these places."""
    return frozenset(text for loc in locs for text in _texts(_at(values, loc)) if text)


def not_decrypted(where: str) -> Finding:
    """The finding on an encrypted value of a file that the engine does not read."""
    return Finding(
        "setting-secret",
        where,
        "The value is encrypted",
        "The engine decrypts what is in the stack file, and no file that is included there",
        "Keep an entry with a secret in the stack file, beside the `include`",
    )


def in_clear(values: Mapping[str, Any], secret: Collection[Loc]) -> Iterator[Found]:
    """The secrets of the stack that its configuration holds in clear text, each with a finding."""
    given = values.get("secrets")
    for name in given if isinstance(given, dict) else ():
        loc: Loc = ("secrets", name)
        if loc not in secret:
            yield finding_at(
                loc,
                "secret-in-clear",
                f"The secret `{name}` is written in clear text",
                "Whoever reads the stack file reads it, and the history of the file keeps it",
                f"Change it, and set it by `pulumi config set --secret --path amlstack:secrets.{name}`",
            )


def refusal(loc: Loc, where: str) -> Finding:
    """The finding on a setting that cannot be secret; it says nothing of the value."""
    tags = loc[-1:] == ("tags",)
    seen = "The setting is marked as a secret, and cannot be one"
    rule = "It decides names, ids or the plan, which everybody sees. Tags, descriptions and display names can be secret"
    part = "amlstack:clusters[0].tags.NAME"
    if loc == ("secrets",):
        seen = "All secrets together are marked as one"
        rule = "Their names are shown in every plan; each value is a secret by itself"
        remedy = "Set each with `pulumi config set --secret --path amlstack:secrets.NAME`"
        return Finding("setting-secret", where, seen, rule, remedy)
    if tags:
        rule, part = "Tags' names are shown in every plan; their values can be secret", "amlstack:tags.NAME"
    remedy = "Set it without `--secret`; of a list or an object, mark the parts: `pulumi config set --secret --path"
    return Finding("setting-secret", where, seen, rule, f"{remedy} {part}`")


def hidden(finding: Finding, secret: Collection[str]) -> Finding:
    """The finding without secret texts."""
    seen, rule, remedy = (_hidden(text, secret) for text in (finding.seen, finding.rule, finding.remedy))
    return replace(finding, seen=seen, rule=rule, remedy=remedy)


def _hidden(text: str, secret: Collection[str]) -> str:
    for one in sorted(secret, key=len, reverse=True):
        if len(one) >= _SHORTEST:
            shown = (one, f"{one[:57]}…") if len(one) > 60 else (one,)  # as findings shorten what was given
            for form in shown:
                text = text.replace(form, REDACTED)
        else:
            for quote in "`'\"":
                text = text.replace(f"{quote}{one}{quote}", f"{quote}{REDACTED}{quote}")
    return text


def _encrypted(value: Any, loc: Loc, seen: set[int]) -> Iterator[Loc]:
    if isinstance(value, dict) and set(value) == {"secure"} and isinstance(value["secure"], str):
        yield loc
        return
    if isinstance(value, dict | list):
        # An alias in YAML may hold itself, or unfold without end: each value is looked at once.
        if id(value) in seen:
            return
        seen.add(id(value))
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, item in children:
        yield from _encrypted(item, (*loc, part), seen)


def _at(values: Any, loc: Loc) -> Any:
    for part in loc:
        names = values if isinstance(values, dict) else range(len(values)) if isinstance(values, list) else ()
        if part not in names:
            return None
        values = values[part]
    return values


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
