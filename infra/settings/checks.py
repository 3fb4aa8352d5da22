"""Settings that do not fit an existing workspace, and settings that are too many for the engine.

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
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding, Level
from infra.settings.model.stack import LISTS
from infra.settings.repair import dotted, finding_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from infra.settings.model.stack import Settings
    from infra.settings.model.workspace import Workspace
    from infra.settings.repair import Found
    from infra.settings.stackfile import Loc, StackFile

PARTS: Final = ("storage", "key_vault", "registry", "insights", "logs")
"""Resources that a workspace stands on, as the settings call them."""

_EXISTING: Final = "setting-beside-existing"
_ADOPTED: Final = "setting-beside-adopted"


def check_existing(settings: Settings) -> Iterator[Found]:
    """Findings on the workspace's settings that do not go together."""
    spec, group = settings.workspace, settings.resource_group
    assigned = "An assignment would judge what others put into a resource group that is not this stack's"
    if group and group.name and group.existing:
        rule = "The stack makes a resource group by `name`, or puts its resources into one that exists"
        yield finding_at(
            ("resource_group",), _EXISTING, "`name` is set beside `existing`", rule, "Write one of the two"
        )
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
        seen = "`azurePolicy` reaches the resource group, and that is given by `existing`"
        remedy = "Leave it out; whoever owns the group assigns the rules"
        yield finding_at(("azurePolicy", "scope"), _EXISTING, seen, assigned, remedy)
    yield from _parts(spec)


def _place(settings: Settings) -> Iterator[Found]:
    existing = str(settings.workspace.existing)
    group = settings.resource_group.called if settings.resource_group else None
    if not existing.startswith("/"):
        if group is None:
            yield finding_at(
                ("workspace", "existing"),
                "setting-missing",
                f"`{existing}` is a name, and `resource_group` is missing",
                "A workspace that exists is found by its name in `resource_group`, or by its ARM id",
                "Set amlstack:resource_group, or write the id that `az ml workspace show --query id` prints",
            )
    elif group is not None and group.lower() != existing.split("/")[4].lower():
        seen = f"`{group}` is not the resource group of `workspace.existing`"
        rule = (
            "A stack on a workspace that exists makes no resource group; what it makes itself lies in the workspace's"
        )
        yield finding_at(("resource_group",), _EXISTING, seen, rule, "Leave it out")


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
