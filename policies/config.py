"""The pack's configuration: the enforcement of each rule, the values that a team sets, the exceptions it granted."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from amlstack.base.findings import Finding
from policies.checks import META, OURS, RULES, Rule, Setting

WAIVER_FIELDS = ("rule", "resource", "owner", "reason", "expires")

WAIVERS_SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "Exceptions from rules.",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": list(WAIVER_FIELDS),
        "properties": {field: {"type": "string", "minLength": 1} for field in WAIVER_FIELDS},
    },
}


class Waiver(NamedTuple):
    """One exception.

    Attributes:
        rule: Code of the rule.
        resource: Pattern (``*``, ``?``) over a resource's name or its URN.
        owner: Who answers for it.
        reason: Why it was granted.
        expires: Last day on which it counts.
    """

    rule: str
    resource: str
    owner: str
    reason: str
    expires: date

    def covers(self, code: str, name: str, urn: str) -> bool:
        """True where it speaks about this rule on this resource, expired or not."""
        return self.rule == code and (fnmatchcase(name, self.resource) or fnmatchcase(urn, self.resource))

    def counts_on(self, on: date) -> bool:
        """True where it has not expired yet."""
        return on <= self.expires

    def finding(self) -> Finding:
        """That it has expired."""
        where = f"exceptions[{self.rule} on {self.resource}]"
        seen = f"The exception of {self.owner} from {self.rule} expired on {self.expires.isoformat()}"
        rule = "An exception ends on the day that was agreed"
        return Finding("exception-expired", where, seen=seen, rule=rule, remedy="Remove it, or renew it with a new day")


def read_waivers(entries: Any, codes: frozenset[str]) -> tuple[Waiver, ...]:
    """The exceptions of the configuration.

    Args:
        entries: The entries under ``exceptions``.
        codes: Codes of the rules that there are.

    Raises:
        ValueError: An entry lacks a field, names no rule, or has no ISO date; the message is for its writer.
    """
    if entries is not None and not isinstance(entries, list | tuple):
        raise ValueError(f"exceptions is a list, not {entries!r}.")
    return tuple(_waiver(index, entry, codes) for index, entry in enumerate(entries or ()))


def meant_rules(code: str, codes: Collection[str]) -> str:
    """The rules that an unknown code may stand for, as a sentence; else where they are listed."""
    words = code.lower().replace("_", "-")
    close = difflib.get_close_matches(words, sorted(codes), n=3, cutoff=0.6)
    best = [one for one in close if difflib.SequenceMatcher(None, one, words).ratio() > 0.85] or close
    return f"Did you mean {' or '.join(f'`{one}`' for one in best)}?" if best else "`amlstack policy list` lists them."


def _waiver(index: int, entry: Any, codes: frozenset[str]) -> Waiver:
    where = f"exceptions[{index}]"
    given = (
        {field: str(entry.get(field) or "").strip() for field in WAIVER_FIELDS} if isinstance(entry, Mapping) else {}
    )
    missing = [field for field in WAIVER_FIELDS if not given.get(field)]
    if missing:
        raise ValueError(f"{where} lacks {', '.join(missing)}. An exception has {', '.join(WAIVER_FIELDS)}.")
    if given["rule"] not in codes:
        raise ValueError(f"{where}: there is no rule {given['rule']!r}. {meant_rules(given['rule'], codes)}")
    try:
        expires = date.fromisoformat(given["expires"])
    except ValueError:
        raise ValueError(f"{where}: {given['expires']!r} is no day. Write it like 2026-12-31.") from None
    return Waiver(given["rule"], given["resource"], given["owner"], given["reason"], expires)


Level = Literal["mandatory", "advisory", "disabled", "remediate"]

BUILT_IN = Path(__file__).resolve().parent / "pack-config.json"
"""Configuration that a platform team builds into its archive (`make pack CONFIG=…`); absent in this repository."""

ALL: tuple[Rule, ...] = (*RULES, *(OURS[code] for code in META))
CODES = frozenset(rule.code for rule in ALL)
_RULES = {rule.code: rule for rule in ALL}
_DEFAULTS = {rule.code: rule.defaults() for rule in ALL}


@dataclass(frozen=True)
class Config:
    """Levels and values by code of the rule; what is not given is the rule's default.

    Attributes:
        levels: Enforcement.
        values: Settings.
        exceptions: Exceptions from rules.
        asked: The rules on each kind of subject that have something to judge, gathered once (`evaluation.verdicts`).
    """

    levels: Mapping[str, Level] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    exceptions: tuple[Waiver, ...] = ()
    asked: dict[str, tuple[Any, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def everything(self) -> bool:
        """True where rules on all Azure resources (tags, regions) have something to judge."""
        silent = (("tags-required", "required"), ("region-approved", "regions"))
        return any(self.enabled(code) and self.settings(code)[setting] for code, setting in silent)

    def level(self, code: str) -> Level:
        """The enforcement level of a rule."""
        level = self.levels.get(code) or _RULES[code].level
        if level == "advisory" and self.values.get(code, {}).get(_RULES[code].mandatory_with):
            return "mandatory"
        return level

    def enabled(self, code: str) -> bool:
        """True where a rule judges at all."""
        return self.level(code) != "disabled"

    def settings(self, code: str) -> dict[str, Any]:
        """The values of a rule's settings, defaults filled in."""
        given = self.values.get(code, {})
        return {name: default if given.get(name) is None else given[name] for name, default in _DEFAULTS[code].items()}


def read(given: Mapping[str, Any]) -> Config:
    """The configuration as Pulumi's ``--policy-pack-config`` has it: code → level, or → level and values.

    Args:
        given: ``{"node-ceiling": {"enforcementLevel": "mandatory", "nodes": 16}, "ssh-closed": "disabled"}``.

    Raises:
        ValueError: A code or setting that there is none of, a level that is none; the message is for its writer.
    """
    levels: dict[str, Level] = {}
    values: dict[str, Mapping[str, Any]] = {}
    for code, entry in given.items():
        if code not in CODES:
            raise ValueError(f"There is no rule {code!r}. {meant_rules(code, CODES)}")
        if not isinstance(entry, str | Mapping):
            raise ValueError(f"{code}: write a level, or an object of settings.")  # noqa: TRY004 - a user's mistake
        options: dict[str, Any] = {"enforcementLevel": entry} if isinstance(entry, str) else dict(entry)
        level: Any = options.pop("enforcementLevel", None)
        if level is not None:
            if level not in {"mandatory", "advisory", "disabled", "remediate"}:
                raise ValueError(f"{code}: {level!r} is no level. Write mandatory, advisory, disabled or remediate.")
            levels[code] = level
        known = {"exceptions"} if code == "exception-expired" else set(_DEFAULTS[code])
        if wrong := set(options) - known:
            there = f"It has {', '.join(sorted(known))}" if known else "It has none"
            raise ValueError(f"{code} has no setting {', '.join(sorted(wrong))}. {there}.")
        values[code] = {name: _whole(value) for name, value in options.items()}
        for setting in _RULES[code].settings:
            _fits(code, setting, values[code].get(setting.name))
    granted = values.get("exception-expired", {}).get("exceptions")
    return Config(levels, values, read_waivers(granted, CODES))


_WORDS = {
    "integer": "a whole number, 0 or more",
    "number": "a number, 0 or more",
    "array": "a list of texts",
    "object": "an object of texts",
    "date": "a day such as 2026-07-01",
}


def _fits(code: str, setting: Setting, value: Any) -> None:
    """Hold a value to its setting's kind, as the engine does by the schema."""
    match setting.kind:
        case "integer":
            fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        case "number":
            fits = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        case "array":
            fits = isinstance(value, list) and all(isinstance(one, str) for one in value)
        case "date":
            fits = isinstance(value, str) and _is_day(value)
        case _:
            fits = isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())
    if value is not None and not fits:
        raise ValueError(f"{code}: {setting.name} is {_WORDS[setting.kind]}, not {json.dumps(value, default=str)}.")


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _whole(value: Any) -> Any:
    """Whole numbers as such: on the wire all are floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def load(path: Path) -> dict[str, Any]:
    """The configuration that lies beside the pack, when one does: what a platform team built into its archive.

    Raises:
        ValueError: It is no JSON object.
    """
    if not path.is_file():
        return {}
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path.name} is no JSON: {error}.") from None
    if not isinstance(given, dict):
        raise ValueError(f"{path.name} must be an object of rules.")  # noqa: TRY004 - a user's mistake
    return given


def over(built_in: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration on top of the one built in, merged as the engine merges them: setting by setting."""

    def entry(value: Any) -> dict[str, Any]:
        return {"enforcementLevel": value} if isinstance(value, str) else dict(value)

    return {**built_in, **{code: {**entry(built_in.get(code, {})), **entry(value)} for code, value in given.items()}}


def schema(rule: Rule) -> dict[str, dict[str, Any]]:
    """The settings of a rule as JSON schema properties."""
    if rule.code == "exception-expired":
        return {"exceptions": WAIVERS_SCHEMA}
    return {setting.name: setting.schema() for setting in rule.settings}
