"""pydantic's errors in settings as findings: what was seen, the rule, the remedy, near misses by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args, get_origin

from amlstack.base.findings import Finding
from amlstack.base.models import errors as model_errors
from amlstack.base.models import models_in
from amlstack.base.models.errors import listed
from amlstack.base.near_misses import did_you_mean, near
from infra.settings import patterns
from infra.settings.model import CURATED_TAG, CUSTOM_TAG, CuratedEnvironment, CustomEnvironment, Settings
from infra.settings.model.base import SettingsModel
from infra.settings.stackfile import NAMESPACE, Loc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

_NAMES = ("tags", "secrets", "environment_variables")
"""Keys of mappings whose own keys are names that a person chooses."""


def dotted(loc: Loc) -> str:
    """``amlstack:clusters[0].nodes.max`` of ``("clusters", 0, "nodes", "max")``."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return f"{NAMESPACE}:{text}"


def describe(error: ErrorDetails) -> Finding:
    """One of pydantic's errors as a finding, its place not yet in a file."""
    loc = plain(error["loc"])
    kind, seen = error["type"], error.get("input")
    where = dotted(loc)
    if kind == "extra_forbidden":
        if why := _refused(error["loc"]):
            return _refused_key(loc, why)
        return _unknown_key(loc, _keys_beside(error["loc"]), _further_down(error["loc"]))
    if kind == "missing":
        return Finding("setting-missing", where, f"`{loc[-1]}` is missing", _meaning(error["loc"]))
    if kind == "value_error":
        what, _, rule = str((error.get("ctx") or {}).get("error", "")).partition("|")
        return Finding("setting-value", where, what, rule)
    if kind == "string_pattern_mismatch":
        # What was meant as a public key may be the private one.
        shown = f"{str(seen)[:11]}…" if loc[-1] == "public_key" else seen
        return Finding(
            "setting-value", where, f"{_key(loc)} cannot be `{shown}`", patterns.meaning(loc), _idle_remedy(loc, seen)
        )
    rule = model_errors.must(error)
    if not rule:
        return Finding("setting-value", where, f"{_key(loc)} cannot be `{_shown(seen)}`", error["msg"])
    what = f"{_key(loc)} must {rule}, got `{_shown(seen)}`"
    if kind == "literal_error":
        return Finding("setting-value", where, what, "", _meant(_shown(seen), model_errors.allowed(error)))
    why = "Quote it if YAML reads it as something else" if kind == "string_type" else ""
    return Finding("setting-value", where, what, why, _idle_remedy(loc, seen))


def _key(loc: Loc) -> str:
    """The key that a value belongs to, as a message names it: an entry of a list with the list's key."""
    return f"`{loc[-2]}[{loc[-1]}]`" if len(loc) > 1 and isinstance(loc[-1], int) else f"`{loc[-1]}`"


def meant(loc: Loc) -> tuple[str, ...]:
    """The key that an unknown key was probably meant to be, with those around it that are not there; empty for none.

    Args:
        loc: pydantic's own path of the unknown key.
    """
    if _refused(loc):
        return ()
    return _further_down(loc) or near(str(loc[-1]), _keys_beside(loc))[:1]


def _is_collection(annotation: Any) -> bool:
    """Whether a field has several values, or may have."""
    return get_origin(annotation) in (tuple, list, dict) or any(map(_is_collection, get_args(annotation)))


def _unknown_key(loc: Loc, names: tuple[str, ...], further_down: tuple[str, ...]) -> Finding:
    remedy = f"Write it as `{'.'.join(further_down)}`." if further_down else _meant(str(loc[-1]), names)
    rule = f"The keys here are {listed(names)}"
    return Finding("setting-unknown", dotted(loc), f"Unknown key `{loc[-1]}`", rule, remedy)


def _further_down(loc: Loc) -> tuple[str, ...]:
    """The key of an inner mapping that an unknown key is, or whose words it has: `nodes.max` for `max_nodes`.

    Empty where there is none, or several; ``loc`` is pydantic's own path.
    """
    key = str(loc[-1]).lower()
    found = [
        (outer, inner)
        for outer, field in _model_at(loc).model_fields.items()
        for model in models_in(field.annotation)
        if not _is_collection(field.annotation)
        for inner in model.model_fields
        if key == inner or sorted(key.split("_")) == sorted([outer, *inner.split("_")])
    ]
    return found[0] if len(found) == 1 else ()


def _refused_key(loc: Loc, why: str) -> Finding:
    """What other tools have here and these settings have not; a reason that says what to write is the remedy."""
    what = f"`{loc[-1]}` is no key here"
    if why.startswith("Write "):
        return Finding("setting-unknown", dotted(loc), what, "", why)
    return Finding("setting-refused", dotted(loc), f"`{loc[-1]}` cannot be declared", why)


def plain(loc: Loc) -> Loc:
    """A path without what pydantic adds to it: tags of unions, ``[key]``."""
    if len(loc) > 2 and loc[-1] == "[key]" and loc[-3] in _NAMES:
        loc = loc[:-1]
    return tuple(part for part in loc if part not in _TAGGED)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list | tuple):  # of any size, and perhaps holding itself
        return "{…}" if isinstance(value, dict) else "[…]"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _meant(word: str, known: Iterable[str]) -> str:
    """Near misses only: the rule lists all that is known already."""
    close = near(word, known)
    return did_you_mean(word, close) if close else ""


def _idle_remedy(loc: Loc, seen: Any) -> str:
    """Seconds and shorthands are what people write for a duration: the same as ISO 8601."""
    if loc[-2:] != ("nodes", "idle") or not isinstance(seen, str | int):
        return ""
    text = str(seen).strip().lower()
    if text.isdigit():
        return f"For {text} seconds write PT{text}S"
    number, unit = text[:-1], text[-1:]
    return f"Write PT{number}{unit.upper()}" if number.isdigit() and unit in "hms" else ""


def _keys_beside(loc: Loc) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in _model_at(loc).model_fields.items())


def _meaning(loc: Loc) -> str:
    field = _model_at(loc).model_fields.get(str(loc[-1]))
    return (field and field.description) or "it has no default"


def _refused(loc: Loc) -> str:
    """Why a key of pydantic's own path is refused, where that has a reason of its own."""
    model = _model_at(loc)
    return model.refused.get(str(loc[-1]), "") if issubclass(model, SettingsModel) else ""


def _model_at(loc: Loc) -> type[BaseModel]:
    """The model that holds the last key of pydantic's own path, tags of unions included."""
    model: type[BaseModel] = Settings
    for part in loc[:-1]:
        if part in _TAGGED:
            model = _TAGGED[part]
        elif isinstance(part, str):
            known = {field.alias or name: field for name, field in model.model_fields.items()}
            model = next(iter(models_in(known[part].annotation)), model) if part in known else model
    return model


_TAGGED: dict[str | int, type[BaseModel]] = {CURATED_TAG: CuratedEnvironment, CUSTOM_TAG: CustomEnvironment}
