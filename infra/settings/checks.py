"""Settings that do not fit an existing workspace or are too many for the engine, and secrets in plain text.

Nothing of an existing workspace, or of an existing part of one, is changed.

The engine hands all configuration over in one environment string, `PULUMI_CONFIG=` and a JSON object of texts, those of
lists and objects JSON themselves (`constructConfig` in Pulumi's pulumi-language-python/main.go and analyzer_plugin.go).
Linux ends one string of a program's environment at 32 pages (MAX_ARG_STRLEN in linux/binfmts.h, execve(2)).
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding, Level, stated
from infra.settings.model.stack import LISTS, Settings
from infra.settings.repair import Found, dotted, finding_at, stated_at

if TYPE_CHECKING:
    from infra.settings.model.workspace import Workspace
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
    return stated("setting-secret", where)


def in_clear(values: Mapping[str, Any], secret: Collection[Loc]) -> Iterator[Found]:
    """The secrets of the stack that its configuration holds in clear text, each with a finding."""
    given = values.get("secrets")
    for name in given if isinstance(given, dict) else ():
        loc: Loc = ("secrets", name)
        if loc not in secret:
            yield stated_at(loc, "secret-in-clear", name=name)


def refusal(loc: Loc, where: str) -> Finding:
    """The finding on a setting that cannot be secret; it says nothing of the value."""
    tags = loc[-1:] == ("tags",)
    seen = "The setting is marked as a secret, and cannot be one"
    rule = "It decides names, ids or the plan, which everybody sees. Tags, descriptions and display names can be secret"
    part = "amlstack:clusters[0].tags.NAME"
    if loc == ("secrets",):
        return stated("setting-secret/refusal", where)
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


PARTS: Final = ("storage", "key_vault", "registry", "insights", "logs")
"""Resources that a workspace stands on, as the settings call them."""

_EXISTING: Final = "setting-beside-existing"
_ADOPTED: Final = "setting-beside-adopted"


def check_existing(settings: Settings) -> Iterator[Found]:
    """Findings on the workspace's settings that do not go together."""
    spec, group = settings.workspace, settings.resource_group
    assigned = "An assignment would judge what others put into a resource group that is not this stack's"
    if group and group.name and group.existing:
        yield stated_at(("resource_group",), "setting-beside-existing")
    if spec.existing:
        for key in sorted(spec.model_fields_set - {"existing"}):
            rule = "Nothing of a workspace that exists is changed"
            yield _beside(("workspace", key), "existing", rule, "Leave it out; whoever owns the workspace sets it")
        yield from _place(settings)
        if settings.azure_policy is not None:
            remedy = "Leave it out; the stack that owns the workspace assigns the rules"
            yield _beside(("azurePolicy",), "workspace.existing", assigned, remedy)
        return
    if not spec.name:
        rule = "A workspace is created under `name`, or one that exists is given by `existing`"
        yield finding_at(("workspace", "name"), "setting-missing", "`name` is missing", rule)
    in_group = settings.azure_policy is not None and settings.azure_policy.scope == "resourceGroup"
    if in_group and group and group.existing:
        yield stated_at(("azurePolicy", "scope"), "setting-beside-existing/check-existing", rule=assigned)
    yield from _parts(spec)


def _place(settings: Settings) -> Iterator[Found]:
    existing = str(settings.workspace.existing)
    group = settings.resource_group.called if settings.resource_group else None
    if not existing.startswith("/"):
        if group is None:
            yield stated_at(("workspace", "existing"), "setting-missing", existing=existing)
    elif group is not None and group.lower() != existing.split("/")[4].lower():
        yield stated_at(("resource_group",), "setting-beside-existing/place", group=group)


def _parts(spec: Workspace) -> Iterator[Found]:
    adopted = "Of the parts of an imported workspace the stack changes nothing"
    for part in PARTS:
        given = getattr(spec, part)
        if given.existing is not None:
            for key in sorted(given.model_fields_set - {"existing"}):
                rule = f"Nothing of a {part.replace('_', ' ')} that exists is changed"
                yield _beside(("workspace", part, key), "existing", rule)
        if spec.adopted:
            for key in sorted(given.model_fields_set - {"existing", "name", "absent"}):
                yield _beside(("workspace", part, key), "adopted", adopted, code=_ADOPTED)
    if spec.adopted and spec.public_network is not None and spec.public_network.allow:
        rule = f"Addresses are set on storage account, key vault and registry. {adopted}"
        remedy = "Write true or false, which is the workspace's own access"
        yield _beside(("workspace", "public_network", "allow"), "adopted", rule, remedy, code=_ADOPTED)
    if spec.insights.existing and spec.logs.model_fields_set:
        rule = "Log analytics is where application insights of this stack write, and those exist already"
        yield _beside(("workspace", "logs"), "insights.existing", rule)


def _beside(loc: Loc, other: str, rule: str, remedy: str = "Leave it out", *, code: str = _EXISTING) -> Found:
    return finding_at(loc, code, f"`{loc[-1]}` is set beside `{other}`", rule, remedy)


VARIABLE: Final = "PULUMI_CONFIG="
PAGES: Final = 32
_TAG_BYTES: Final = 16
"""Length that AES-GCM adds to a text."""


def limit() -> int:
    """Bytes of one string of the environment on this machine, its end included: 131,072 where a page has 4 KiB."""
    return PAGES * os.sysconf("SC_PAGE_SIZE")


def length(config: Mapping[str, Any]) -> int:
    """Bytes of the engine's string for what a stack file has under ``config``, its end included.

    An encrypted value counts as long as what it decrypts to, where that can be known, else nothing.
    """
    texts = {key: value if isinstance(value, str) else _go_json(value) for key, value in _clear(config).items()}
    return len(VARIABLE) + len(_go_json(texts).encode(errors="surrogatepass")) + 1


def check_size(file: StackFile) -> tuple[Finding, ...]:
    """The finding on a stack file whose settings do not fit; none where they do."""
    size, most = length(file.config), limit()
    if size <= most:
        return ()
    sizes = {key: len(_go_json(value)) for key, value in _clear(file.values).items() if key in LISTS}
    largest = max(sizes, key=lambda key: sizes[key], default="clusters")
    found = Finding(
        "settings-too-large",
        dotted((largest,)),
        f"The settings have {size:,} bytes as the engine hands them to the program",
        f"Linux starts no program with more than {most:,} (`argument list too long`)",
        f"Move entries of `amlstack:{largest}` to a file, a list by itself, and write `- include: FILE` in their place",
        Level.ERROR if sys.platform == "linux" else Level.WARNING,
    )
    return (found.at(file.name, *file.locate((largest,))),)


def _clear(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"secure"} and isinstance(value["secure"], str):
            return "-" * _decrypted(value["secure"])
        return {str(key): _clear(item) for key, item in value.items()}
    return [_clear(item) for item in value] if isinstance(value, list) else value


def _decrypted(text: str) -> int:
    """Bytes that an encrypted text of the form ``v1:NONCE:TEXT`` decrypts to."""
    version, _, last = text.partition(":")
    try:
        return max(0, len(base64.b64decode(last.rpartition(":")[2])) - _TAG_BYTES) if version == "v1" else 0
    except ValueError:
        return 0


def _go_json(value: Any) -> str:
    """JSON as Go's encoder writes it: no blanks, and what could end an HTML script as an escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    for character in "<>&\u2028\u2029":
        if character in text:
            text = text.replace(character, f"\\u{ord(character):04x}")
    return text
