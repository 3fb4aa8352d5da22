"""Tables and stubs of docs, made from the code."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.paths import PROJECT
from amlstack.resources import base, classes
from amlstack.sandbox.protocol import allowances
from infra import roles, workspace_properties
from infra.compute import cluster
from infra.network import virtual_network
from policies.config import ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from policies import checks

_HEAD = '''"""Made from amlstack/provider/schema.json by `make docs`."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from amlstack.resources.base import OnEdit, ProviderResource, Wait
'''
_PLAIN = {"string": "str", "integer": "int", "boolean": "bool"}


def typed_resources() -> str:
    """The text of ``amlstack/resources/classes.pyi``."""
    schema = json.loads((PROJECT / "amlstack/provider/schema.json").read_text("utf-8"))["resources"]
    every = [one for one in vars(classes).values() if isinstance(one, type) and issubclass(one, base.ProviderResource)]
    found = [one for one in every if one is not base.ProviderResource]
    return "\n\n".join([_HEAD, *("\n".join(_class(one, schema[one.kind])) for one in found)])


def _class(kind: type[base.ProviderResource], declared: Mapping[str, Any]) -> Iterator[str]:
    inputs, outputs, required = declared["inputProperties"], declared["properties"], declared.get("requiredInputs", ())
    yield f"class {kind.__name__}(ProviderResource):"
    yield f'    """{kind.__doc__}'
    yield from ("", "    Args:", "        resource_name: Name in the stack.")
    yield from (f"        {_keyword(name)}: {_words(each)}" for name, each in inputs.items())
    yield from ("        opts: Pulumi's own options.", "", "    Attributes:")
    yield from (f"        {_python(name)}: {_words(each)}" for name, each in outputs.items())
    yield from ('    """', "")
    yield from (f"    {_python(name)}: pulumi.Output[{_type(each)}]" for name, each in outputs.items())
    yield from ("    def __init__(", "        self,", "        resource_name: str,", "        *,")
    for name in sorted(inputs, key=lambda each: each not in required):
        optional = "" if name in required else " | None = None"
        yield f"        {_keyword(name)}: pulumi.Input[{_type(inputs[name])}]{optional},"
    yield from ("        opts: pulumi.ResourceOptions | None = None,", "    ) -> None: ...", "")


def _python(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _keyword(name: str) -> str:
    return "content_hash" if name == "hash" else _python(name)


def _words(declared: Mapping[str, Any]) -> str:
    return str(declared.get("description") or _type(declared))


def _type(declared: Mapping[str, Any]) -> str:
    if "$ref" in declared:
        name = declared["$ref"].rpartition(":")[2]
        return name if name in {"OnEdit", "Wait"} else "Any"
    if declared["type"] == "object":
        return f"Mapping[str, {_type(declared['additionalProperties'])}]"
    if declared["type"] == "array":
        return f"Sequence[pulumi.Input[{_type(declared['items'])}]]"
    return _PLAIN[declared["type"]]


PARTS: Final = {
    "workspace": "the workspace",
    "storage": "the storage account",
    "key_vault": "the key vault",
    "registry": "the registry",
    "insights": "application insights",
}


def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; the head's cells are separated by `` | ``."""
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([f"| {head} |", f"|{' --- |' * (head.count(' | ') + 1)}", *lines])


def _roles(which: Iterable[roles.Role]) -> str:
    rows = ((role.name, f"`{role.definition}`", PARTS[role.part], role.why, role.source) for role in which)
    return _table("role | id | on | why | source", rows)


def node_security() -> str:
    """The security rules of the subnet of nodes."""
    rules = (virtual_network.NODE_MANAGEMENT, *virtual_network.OUTBOUND, virtual_network.NO_INTERNET)
    return _table(
        "rule | direction | service tag | protocol, ports | why",
        (
            (
                rule.name,
                "in" if rule.inbound else "out",
                f"`{rule.peer}`",
                f"{rule.protocol.upper().replace('*', 'any')} {', '.join(rule.ports).replace('*', 'any')}",
                rule.why,
            )
            for rule in rules
        ),
    )


def private_endpoints() -> str:
    """The private endpoints of a workspace, with the DNS zones of the public cloud."""
    zones = virtual_network.ZONES["public"]
    return _table(
        "endpoint | sub-resource | zones (public cloud) | why",
        (
            (f"`{name}`", f"`{link.group}`", ", ".join(f"`{zone}`" for zone in zones[name]), link.why)
            for name, link in virtual_network.LINKS.items()
        ),
    )


def cluster_edits() -> str:
    """The effect of an edit of each setting of a cluster."""
    careful = set(cluster.replaced_by())
    rows = [
        (f"`{'.'.join(row.path)}`", f"`{row.wire}`", _operation(replaces=row.wire in careful), row.note)
        for row in cluster.SETTINGS
    ]
    gone = ("`name`, or the entry removed", "`computeName`", "another cluster, or none; the old one is deleted", "")
    return _table("key of `clusters[]` | property | an edit | note", [*rows, gone])


def workspace_edits() -> str:
    """The effect of an edit of each property of the workspace."""
    rows = []
    for row in workspace_properties.PROPERTIES:
        settings = ", ".join(f"`{name}`" for name in row.settings)
        # The group of a stack is kept by its state: other settings are a finding before the engine compares anything.
        refused = row.refused or row.settings == ("resource_group",)
        rows.append((f"`{row.wire}`", settings, "refused" if refused else _operation(replaces=row.replaces), row.note))
    unknown = ", ".join(f"`{name}`" for name in workspace_properties.UNKNOWN)
    more = f"Unknown: {unknown}. Azure takes them when a workspace is made and documents no update; one is planned."
    return f"{_table('property | settings | an edit | note', rows)}\n\n{more}"


def _operation(*, replaces: bool) -> str:
    return "replaced" if replaces else "updated in place"


def properties() -> str:
    """The properties that the sandbox takes beyond azure-native's classes."""
    found = [(row.owner, row.name, row.source, row.versions) for row in allowances.PROPERTIES]
    found += [(row.beside, f"{row.tag}: {row.value}", row.source, row.versions) for row in allowances.VARIANTS]
    return _table(
        "class | property | known from | api-versions",
        (
            (
                owner.removesuffix("Args"),
                f"`{name}`",
                source,
                "all" if versions is None else ", ".join(sorted(versions)),
            )
            for owner, name, source, versions in found
        ),
    )


def rules() -> str:
    """Every rule: a table, and a section for each."""
    rows = ((f"[{rule.code}](#{rule.code})", rule.title, _default(rule)) for rule in ALL)
    return _table("code | what must hold | by default", rows) + "\n" + "".join(_section(rule) for rule in ALL)


def _default(rule: checks.Rule) -> str:
    unset = rule.settings and all(setting.default is None for setting in rule.settings) and rule.level == "mandatory"
    return f"{rule.level}{', once configured' if unset else ''}{', remediable' if rule.fix else ''}"


def _section(rule: checks.Rule) -> str:
    parts = [
        f"\n### {rule.code}\n",
        rule.title,
        f"\n**What it does.** {rule.what}",
        f"\n**Why.** {rule.why}",
        f"\n**Example.**\n\n```yaml\n{rule.example}```",
        f"\n**Instead.**\n\n```yaml\n{rule.instead}```",
    ]
    if rule.sample:
        parts.append(f"\nBoth with this configuration: `{json.dumps({rule.code: dict(rule.sample)})}`.")
    if rule.fix:
        parts.append(f"\n**Remediation.** {rule.fix}")
    options = [rule.options] if rule.options else []
    options += (f"- `{one.name}` ({one.kind}): {one.help} {_value(one)}" for one in rule.settings)
    if options:
        parts.append("\n**Options.** " + ("" if rule.options else "\n\n") + "\n".join(options))
    return "\n".join(parts) + "\n"


def _value(setting: checks.Setting) -> str:
    return "Unset by default." if setting.default is None else f"Default: {setting.default}."


TABLES: Final[dict[str, dict[str, Callable[[], str]]]] = {
    "edits.md": {"cluster": cluster_edits, "workspace": workspace_edits},
    "identities.md": {
        "workspace": lambda: _roles(roles.WORKSPACE),
        "datastore-accounts": lambda: _roles([roles.APPROVER]),
        "clusters": lambda: _roles(roles.CLUSTER),
        "cluster-telemetry": lambda: _roles(roles.CLUSTER_TELEMETRY),
        "encryption": lambda: _roles([roles.ENCRYPTION]),
    },
    "networks.md": {"node-security": node_security, "private-endpoints": private_endpoints},
    "policies.md": {"rules": rules},
    "sandbox.md": {"properties": properties},
}
"""Page → the name of each table of it → what makes its text."""
