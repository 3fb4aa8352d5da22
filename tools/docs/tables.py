"""The parts of docs that are made from the code: ``python -m tools.docs`` writes them, ``--check`` verifies them.

A page is written by hand. Tables stand in it between ``<!-- table: NAME -->`` and ``<!-- end -->``, and are filled.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from amlstack.base.models import described, reached
from amlstack.base.paths import PROJECT
from amlstack.cli.commands.catalogue import printed
from amlstack.migrate.constructs import STATES, constructs
from amlstack.resources import base, classes
from amlstack.sandbox.protocol import allowances
from infra import roles
from infra.network import plan
from infra.properties import CLUSTER_SETTINGS, UNKNOWN, WORKSPACE_SETTINGS, replaced_by
from infra.settings.model import cluster, stack
from infra.settings.model.stack import stack_file_schema
from jobs.azureml.schema import job_files
from jobs.launchers import TYPED, Custom, Shape
from jobs.model.job import Job, SweepLimits
from jobs.values import Build, Code, Environment, Identity, Input, Limits, Output, QueueSettings, Service
from jobs.wire.command import DISTRIBUTIONS
from policies.config import ALL
from tools.docs import reference, witnesses

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from policies import checks

IN_TEXT: Final = ("ClusterDefaults", "ClusterDefaultsNodes", "ClusterDefaultsSsh", "FabricCheck", "SecretVariable")
"""Parts of the settings that the page explains in its text."""
SETTINGS: Final[tuple[type[BaseModel], ...]] = (
    *(one for one in reached([stack.Settings]) if one.__name__ not in IN_TEXT),
    stack.Include,
)
EXAMPLE = Shape(nodes=2, gpus=8)
"""The nodes and GPUs of the examples in the table of launchers."""


def launcher_table() -> str:
    """Every launcher with what it becomes on two nodes of eight GPUs, as a Markdown table."""
    rows = ["| launcher | Azure ML starts | the command becomes | reserved variables |", "| --- | --- | --- | --- |"]
    for kind in TYPED:
        shape = Shape(nodes=1, gpus=8) if kind.__name__ == "SingleNode" else EXAMPLE
        lowered = kind().lower("python train.py", shape)
        reserved = ", ".join(f"`{name}`" for name in sorted(kind.RESERVED))
        command = f"`{lowered.command}`" if lowered.command != "python train.py" else "stays"
        rows.append(f"| `{kind.__name__}` | {_started(lowered.distribution)} | {command} | {reserved} |")
    return "\n".join(rows)


def launcher_sections() -> str:
    """Every launcher with its fields, as Markdown."""
    return "\n\n".join([*map(_model_section, TYPED), _model_section(Custom)])


def job_table() -> str:
    """Every field of `Job`, as a Markdown table."""
    return _fields(Job, first=Job.__annotations__)  # what only jobs have


def part_sections() -> str:
    """Every part of a job that is a model of its own, with its fields."""
    parts = (Input, Output, Code, Environment, Build, Limits, Identity, Service, QueueSettings, SweepLimits)
    return "\n\n".join(_model_section(part) for part in parts)


def _model_section(kind: type[BaseModel]) -> str:
    text = inspect.cleandoc(kind.__doc__ or "").replace("``", "`")
    return f"### {kind.__name__}\n\n{text}\n\n{_fields(kind)}"


def _fields(model: type[BaseModel], first: Collection[str] = ()) -> str:
    rows = ["| field | default | meaning |", "| --- | --- | --- |"]
    meanings = described(model)
    for name, field in sorted(model.model_fields.items(), key=lambda item: item[0] not in first):
        if name == "type" and field.annotation is not None and len(get_args(field.annotation)) == 1:
            continue
        words = ", ".join(f"`{word}`" for word in _choices(field.annotation))
        meaning = f"{meanings[name]} {words}{'.' if words else ''}".strip().replace("|", "\\|")
        rows.append(f"| `{name}` | {_default_of_job(field)} | {meaning} |")
    return "\n".join(rows)


def _choices(annotation: Any) -> list[str]:
    """The words of which a field takes one."""
    inside = get_args(annotation)
    if get_origin(annotation) is Literal:
        return [str(word) for word in inside]
    return [word for each in inside for word in _choices(each)]


def _default_of_job(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None:
        return ""
    return f"`{type(value).__name__}()`" if isinstance(value, BaseModel) else f"`{value!r}`"


def _started(distribution: Any) -> str:
    if distribution is None:
        return "the command once"
    result = distribution.model_dump(exclude_none=True, exclude={"type"})
    counts = ", ".join(f"`{key}` {value}" for key, value in result.items())
    return f"{DISTRIBUTIONS[distribution.type]}, {counts}"


def settings_table(model: type[BaseModel]) -> str:
    """Every key of a part of the settings, as a Markdown table."""
    meanings = described(model)
    rows = (
        f"| `{field.alias or name}` | {_kind(field.annotation)} | {_default_of_setting(field)} | {meanings[name]} |"
        for name, field in model.model_fields.items()
    )
    return "\n".join(["| key | value | default | meaning |", "| --- | --- | --- | --- |", *rows])


def _default_of_setting(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, cluster.ClusterIdentity):
        return f"`{value.kind}`"
    if isinstance(value, BaseModel):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


_WORDS: dict[Any, str] = {str: "text", int: "number", bool: "true, false", dict: "names to texts", tuple: "list"}


def _kind(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in inner)
    if hasattr(annotation, "__metadata__"):
        return _kind(inner[0])
    if origin is Union or str(origin) == "<class 'types.UnionType'>":
        return ", ".join(dict.fromkeys(_kind(part) for part in inner if part is not type(None)))
    return _WORDS.get(origin or annotation, "object")


MODEL_TABLES: Final[dict[str, dict[str, Callable[[], str]]]] = {
    "reference/launchers.md": {
        "launchers": launcher_table,
        "job": job_table,
        "parts": part_sections,
        "launcher-fields": launcher_sections,
    },
    "reference/settings.md": {model.__name__: partial(settings_table, model) for model in SETTINGS},
}
"""Page → the name of each table of it → what makes its text."""


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
    rules = (plan.NODE_MANAGEMENT, *plan.OUTBOUND, plan.NO_INTERNET)
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
    zones = plan.ZONES["public"]
    return _table(
        "endpoint | sub-resource | zones (public cloud) | why",
        (
            (f"`{name}`", f"`{link.group}`", ", ".join(f"`{zone}`" for zone in zones[name]), link.why)
            for name, link in plan.LINKS.items()
        ),
    )


def cluster_edits() -> str:
    """The effect of an edit of each setting of a cluster."""
    careful = set(replaced_by())
    rows = [
        (f"`{'.'.join(row.path)}`", f"`{row.wire}`", _operation(replaces=row.wire in careful), row.note)
        for row in CLUSTER_SETTINGS
    ]
    gone = ("`name`, or the entry removed", "`computeName`", "another cluster, or none; the old one is deleted", "")
    return _table("key of `clusters[]` | property | an edit | note", [*rows, gone])


def workspace_edits() -> str:
    """The effect of an edit of each property of the workspace."""
    rows = []
    for row in WORKSPACE_SETTINGS:
        settings = ", ".join(f"`{name}`" for name in row.settings)
        # The group of a stack is kept by its state: other settings are a finding before the engine compares anything.
        refused = row.refused or row.settings == ("resource_group",)
        rows.append((f"`{row.wire}`", settings, "refused" if refused else _operation(replaces=row.replaces), row.note))
    unknown = ", ".join(f"`{name}`" for name in UNKNOWN)
    more = f"Unknown: {unknown}. Azure takes them when a workspace is made; an update is planned, and "
    more += "[not proven](unproven.md#workspace-properties)."
    return f"{_table('property | settings | an edit | note', rows)}\n\n{more}"


def _operation(*, replaces: bool) -> str:
    return "replaced" if replaces else "updated in place"


def properties() -> str:
    """The properties that the sandbox takes beyond azure-native's classes; those known alike share a row."""
    found = [(row.owner, row.name, row.source, row.versions) for row in allowances.PROPERTIES]
    found += [(row.beside, f"{row.tag}: {row.value}", row.source, row.versions) for row in allowances.VARIANTS]
    alike: dict[tuple[str, str], list[str]] = {}
    for owner, name, source, versions in found:
        said = "all" if versions is None else ", ".join(sorted(versions))
        alike.setdefault((source, said), []).append(f"{owner.removesuffix('Args')} `{name}`")
    return _table(
        "class and property | known from | api-versions",
        ((", ".join(names), source, versions) for (source, versions), names in alike.items()),
    )


def rules() -> str:
    """Every rule: a table, and a section for each."""
    rows = ((f"[{rule.code}](#{rule.code})", rule.title, _rule_level(rule)) for rule in ALL)
    return _table("code | what must hold | by default", rows) + "\n" + "".join(_rule_section(rule) for rule in ALL)


def _rule_level(rule: checks.Rule) -> str:
    unset = rule.settings and all(setting.default is None for setting in rule.settings) and rule.level == "mandatory"
    return f"{rule.level}{', once configured' if unset else ''}{', remediable' if rule.words.fix else ''}"


def _rule_section(rule: checks.Rule) -> str:
    parts = [
        f"\n### {rule.code}\n",
        rule.title,
        f"\n**What it does.** {rule.words.what}",
        f"\n**Why.** {rule.words.why}",
        f"\n**Example.**\n\n```yaml\n{rule.words.example}```",
        f"\n**Instead.**\n\n```yaml\n{rule.words.instead}```",
    ]
    if rule.words.sample:
        parts.append(f"\nBoth with this configuration: `{json.dumps({rule.code: dict(rule.words.sample)})}`.")
    if rule.words.fix:
        parts.append(f"\n**Remediation.** {rule.words.fix}")
    options = [rule.words.options] if rule.words.options else []
    options += (f"- `{one.name}` ({one.kind}): {one.help} {_value(one)}" for one in rule.settings)
    if options:
        parts.append("\n**Options.** " + ("" if rule.words.options else "\n\n") + "\n".join(options))
    return "\n".join(parts) + "\n"


def _value(setting: checks.Setting) -> str:
    return "Unset by default." if setting.default is None else f"Default: {setting.default}."


def constructs_of_v1() -> str:
    """The rows of `amlstack migrate`, one for each construct of SDK v1."""
    rows = [f"| `{each.name}` | {STATES[each.state]} | {each.becomes} | {each.how} |" for each in constructs().values()]
    return "\n".join(["| SDK v1 | state | v2 | next step |", "| --- | --- | --- | --- |", *rows])


TABLES: Final[dict[str, dict[str, Callable[[], str]]]] = {
    "reference/edits.md": {"cluster": cluster_edits, "workspace": workspace_edits},
    "explanation/identities.md": {
        "workspace": lambda: _roles(roles.WORKSPACE),
        "datastore-accounts": lambda: _roles([roles.APPROVER]),
        "clusters": lambda: _roles(roles.CLUSTER),
        "cluster-telemetry": lambda: _roles(roles.CLUSTER_TELEMETRY),
        "encryption": lambda: _roles([roles.ENCRYPTION]),
    },
    "reference/networks.md": {"node-security": node_security, "private-endpoints": private_endpoints},
    "reference/findings.md": {"findings": reference.findings},
    "reference/policies.md": {"rules": rules},
    "reference/provider.md": {"resources": reference.resources},
    "reference/sandbox.md": {"known": witnesses.counts, "properties": properties},
    "reference/sdk-v1.md": {"constructs": constructs_of_v1},
    "reference/verbs.md": {"verbs": reference.verbs},
}
"""Page → the name of each table of it → what makes its text."""

_MARKED = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n)(?:.*?\n)??(<!-- end -->)", re.DOTALL)


def filled(name: str, made: Mapping[str, Callable[[], str]]) -> str:
    """The text of a page with its tables as they are now.

    Raises:
        ValueError: The page lacks a table, or has one that nothing makes.
    """
    text = (PROJECT / "docs" / name).read_text("utf-8")
    marked = [found["name"] for found in _MARKED.finditer(text)]
    if sorted(marked) != sorted(made):
        raise ValueError(f"docs/{name} has the tables {sorted(marked)}, made are {sorted(made)}")
    return _MARKED.sub(lambda found: f"{found[1]}{made[found['name']]().strip()}\n{found[3]}", text)


PAGES: dict[str, Callable[[], str]] = {
    **{name: partial(filled, name, made) for name, made in {**TABLES, **MODEL_TABLES}.items()},
    "reference/sandbox.md": lambda: witnesses.filled(filled("reference/sandbox.md", TABLES["reference/sandbox.md"])),
    "schema/job.schema.json": lambda: f"{printed(job_files(), 'definitions')}\n",
    "schema/stack.schema.json": lambda: f"{printed(stack_file_schema(), '$defs')}\n",
    "../amlstack/resources/classes.pyi": typed_resources,
}
"""File, from docs on → what renders its whole content."""
