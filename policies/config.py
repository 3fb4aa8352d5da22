"""The pack's configuration: how each rule is enforced, the values a team sets, the exceptions it granted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from policies import waivers
from policies.checks import RULES
from policies.pack_rules import EXCEPTION_EXPIRED, META

if TYPE_CHECKING:
    from policies.checks import Rule, Setting
    from policies.waivers import Waiver

Level = Literal["mandatory", "advisory", "disabled", "remediate"]

BUILT_IN = Path(__file__).resolve().parent / "pack-config.json"
"""What a platform team builds into its archive (`make pack CONFIG=…`); absent in this repository."""

ALL: tuple[Rule, ...] = (*RULES, *META)
CODES = frozenset(rule.code for rule in ALL)
_DEFAULTS = {rule.code: rule.defaults() for rule in ALL}
_SETTINGS = {rule.code: rule.settings for rule in ALL}
_LEVELS: dict[str, Level] = {rule.code: rule.level for rule in ALL}
_MANDATORY_WITH = {rule.code: rule.mandatory_with for rule in ALL if rule.mandatory_with}


@dataclass(frozen=True, slots=True)
class Config:
    """Levels and values by code of the rule; what is not given is the rule's default.

    Attributes:
        levels: Enforcement.
        values: Settings.
        exceptions: Exceptions from rules.
        everything: Whether rules on all Azure resources (tags, regions) have something to judge.
        asked: The rules on each kind of subject that have something to judge, gathered once (`evaluation.verdicts`).
    """

    levels: Mapping[str, Level] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    exceptions: tuple[Waiver, ...] = ()
    everything: bool = field(default=False, init=False, compare=False)
    asked: dict[str, tuple[Any, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _settings: dict[str, dict[str, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work out what every resource asks for."""
        silent = (("tags-required", "required"), ("region-approved", "regions"))
        everything = any(self.enabled(code) and self.settings(code)[setting] for code, setting in silent)
        object.__setattr__(self, "everything", everything)

    def level(self, code: str) -> Level:
        """The enforcement level of a rule."""
        level = self.levels.get(code) or _LEVELS[code]
        if level == "advisory" and code in _MANDATORY_WITH and self.values.get(code, {}).get(_MANDATORY_WITH[code]):
            return "mandatory"
        return level

    def enabled(self, code: str) -> bool:
        """True where a rule judges at all."""
        return self.level(code) != "disabled"

    def settings(self, code: str) -> dict[str, Any]:
        """The values of a rule's settings, defaults filled in; made once, as every resource asks for them."""
        if code not in self._settings:
            given = self.values.get(code, {})
            self._settings[code] = {
                name: default if given.get(name) is None else given[name] for name, default in _DEFAULTS[code].items()
            }
        return self._settings[code]


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
            raise ValueError(f"There is no rule {code!r}. {waivers.meant(code, CODES)}")
        if not isinstance(entry, str | Mapping):
            raise ValueError(f"{code}: write a level, or an object of settings.")  # noqa: TRY004 - a user's mistake
        options: dict[str, Any] = {"enforcementLevel": entry} if isinstance(entry, str) else dict(entry)
        level: Any = options.pop("enforcementLevel", None)
        if level is not None:
            if level not in {"mandatory", "advisory", "disabled", "remediate"}:
                raise ValueError(f"{code}: {level!r} is no level. Write mandatory, advisory, disabled or remediate.")
            levels[code] = level
        known = {"exceptions"} if code == EXCEPTION_EXPIRED.code else set(_DEFAULTS[code])
        if wrong := set(options) - known:
            there = f"It has {', '.join(sorted(known))}" if known else "It has none"
            raise ValueError(f"{code} has no setting {', '.join(sorted(wrong))}. {there}.")
        values[code] = {name: _whole(value) for name, value in options.items()}
        for setting in _SETTINGS[code]:
            _fits(code, setting, values[code].get(setting.name))
    granted = values.get(EXCEPTION_EXPIRED.code, {}).get("exceptions")
    return Config(levels, values, waivers.read(granted, CODES))


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
    if rule is EXCEPTION_EXPIRED:
        return {"exceptions": waivers.SCHEMA}
    return {setting.name: setting.schema() for setting in rule.settings}
