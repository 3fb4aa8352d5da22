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
from infra.settings.includes import LISTS
from infra.settings.repair import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from infra.settings.model import Settings, Workspace
    from infra.settings.stackfile import Loc, StackFile

PARTS: Final = ("storage", "key_vault", "registry", "insights", "logs")
"""What a workspace stands on, as the settings call it."""

Found = tuple["Loc", Finding]


def check_existing(settings: Settings) -> Iterator[Found]:
    """Findings on the workspace's settings that do not go together."""
    spec, group = settings.workspace, settings.resource_group
    if group and group.name and group.existing:
        yield _finding(
            ("resource_group",),
            "setting-beside-existing",
            "`name` is set beside `existing`",
            "The stack makes a resource group by `name`, or puts its resources into one that exists",
            "Write one of the two",
        )
    if spec.existing:
        yield from _beside_existing(spec)
        yield from _place(settings)
        if settings.azure_policy is not None:
            yield _finding(
                ("azurePolicy",),
                "setting-beside-existing",
                "`azurePolicy` is set beside `workspace.existing`",
                "An assignment would judge what others put into a resource group that is not this stack's",
                "Leave it out; the stack that owns the workspace assigns the rules",
            )
        return
    if not spec.name:
        yield _finding(
            ("workspace", "name"),
            "setting-missing",
            "`name` is missing",
            "A workspace is created under `name`, or one that exists is given by `existing`",
        )
    if (
        settings.azure_policy is not None
        and settings.azure_policy.scope == "resourceGroup"
        and group
        and group.existing
    ):
        yield _finding(
            ("azurePolicy", "scope"),
            "setting-beside-existing",
            "`azurePolicy` reaches the resource group, and that is given by `existing`",
            "An assignment would judge what others put into a resource group that is not this stack's",
            "Leave it out; whoever owns the group assigns the rules",
        )
    yield from _parts(spec)


def _beside_existing(spec: Workspace) -> Iterator[Found]:
    for key in sorted(spec.model_fields_set - {"existing"}):
        yield _finding(
            ("workspace", key),
            "setting-beside-existing",
            f"`{key}` is set beside `existing`",
            "Nothing of a workspace that exists is changed",
            "Leave it out; whoever owns the workspace sets it",
        )


def _place(settings: Settings) -> Iterator[Found]:
    existing = str(settings.workspace.existing)
    group = settings.resource_group.called if settings.resource_group else None
    if not existing.startswith("/"):
        if group is None:
            yield _finding(
                ("workspace", "existing"),
                "setting-missing",
                f"`{existing}` is a name, and `resource_group` is missing",
                "A workspace that exists is found by its name in `resource_group`, or by its ARM id",
                "Set amlstack:resource_group, or write the id that `az ml workspace show --query id` prints",
            )
    elif group is not None and group.lower() != existing.split("/")[4].lower():
        yield _finding(
            ("resource_group",),
            "setting-beside-existing",
            f"`{group}` is not the resource group of `workspace.existing`",
            "A stack on a workspace that exists makes no resource group; what it makes itself lies in the workspace's",
            "Leave it out",
        )


def _parts(spec: Workspace) -> Iterator[Found]:
    for part in PARTS:
        given = getattr(spec, part)
        if given.existing is None:
            continue
        for key in sorted(given.model_fields_set - {"existing"}):
            yield _finding(
                ("workspace", part, key),
                "setting-beside-existing",
                f"`{key}` is set beside `existing`",
                f"Nothing of a {part.replace('_', ' ')} that exists is changed",
                "Leave it out",
            )
    if spec.adopted:
        yield from _beside_adopted(spec)
    if spec.insights.existing and spec.logs.model_fields_set:
        yield _finding(
            ("workspace", "logs"),
            "setting-beside-existing",
            "`logs` is set beside `insights.existing`",
            "Log analytics is where application insights of this stack write, and those exist already",
            "Leave it out",
        )


def _beside_adopted(spec: Workspace) -> Iterator[Found]:
    rule = "Of the parts of an imported workspace the stack changes nothing"
    for part in PARTS:
        for key in sorted(getattr(spec, part).model_fields_set - {"existing", "name", "absent"}):
            yield _finding(
                ("workspace", part, key),
                "setting-beside-adopted",
                f"`{key}` is set beside `adopted`",
                rule,
                "Leave it out",
            )
    if spec.public_network is not None and spec.public_network.allow:
        yield _finding(
            ("workspace", "public_network", "allow"),
            "setting-beside-adopted",
            "`allow` is set beside `adopted`",
            f"Addresses are set on storage account, key vault and registry. {rule}",
            "Write true or false, which is the workspace's own access",
        )


def _finding(loc: Loc, code: str, what: str, rule: str, remedy: str = "") -> Found:
    return loc, Finding(code, dotted(loc), what, rule, remedy)


VARIABLE: Final = "PULUMI_CONFIG="
PAGES: Final = 32
_TAG_BYTES: Final = 16
"""What AES-GCM adds to a text."""


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
