"""The form of a rule, and the settings files that its examples show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_JOB = "no alias gives what a job says, and a job may name its size without any cluster"
NO_PRICE = (
    "Azure Policy knows no price: the price list of every region would stand in the definition and age there unseen"
)

Enforcement = Literal["mandatory", "advisory", "disabled"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that a team may set on a rule.

    Attributes:
        name: Its key in the pack's configuration.
        kind: JSON schema type: ``integer``, ``number``, ``array`` (of strings) or ``object`` (of strings); ``date``
            for a string that is a day such as ``2026-07-01``.
        help: What it means, as a sentence.
        default: Its value when it is not set; None leaves the rule silent on it.
    """

    name: str
    kind: Literal["integer", "number", "array", "object", "date"]
    help: str
    default: Any = None

    def schema(self) -> dict[str, Any]:
        """The setting as JSON schema."""
        inner: dict[str, Any] = {
            "array": {"items": {"type": "string"}},
            "object": {"additionalProperties": {"type": "string"}},
        }.get(self.kind, {"minimum": 0})
        default = {} if self.default is None else {"default": self.default}
        if self.kind == "date":
            return {"type": "string", "format": "date", "description": self.help, **default}
        return {"type": self.kind, "description": self.help, **inner, **default}


@dataclass(frozen=True, slots=True)
class Rule:
    """The metadata of one rule, kept in the module of its check.

    Attributes:
        code: Kebab-case name; every finding of the rule carries it, and it is the heading in docs/policies.md.
        title: The rule as one sentence of what must hold.
        what: What the rule does, in full.
        why: What goes wrong without it.
        example: A declaration that it refuses.
        instead: The same declaration, put right.
        options: What more there is to say on configuring it; may be empty.
        level: How the pack enforces it unless it is configured otherwise.
        settings: Values that a team may set.
        sample: Settings under which the example is refused; empty when the defaults do.
        fix: What remediation writes, as a sentence; empty where no answer is safe.
        not_exported: Why Azure Policy cannot express it; empty where it can, at least in part.
        mandatory_with: A setting that, once given, turns the rule's advice into an error; empty for none.
    """

    code: str
    title: str
    what: str
    why: str
    example: str
    instead: str
    options: str = ""
    level: Enforcement = "mandatory"
    settings: tuple[Setting, ...] = ()
    sample: Mapping[str, Any] = field(default_factory=dict)
    fix: str = ""
    not_exported: str = ""
    mandatory_with: str = ""

    def defaults(self) -> dict[str, Any]:
        """The settings' values when none is set."""
        return {setting.name: setting.default for setting in self.settings}


SIZE = "Standard_ND96isr_H100_v5"
_NETWORKS = "Microsoft.Network/virtualNetworks"
_JOB = {
    "jobType": "Command",
    "command": "python train.py",
    "environmentId": "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7",
    "environmentVariables": None,
    "queueSettings": None,
    "resources": f"{{instanceType: {SIZE}, instanceCount: 2, shmSize: 950g}}",
    "distribution": "{distributionType: PyTorch, processCountPerInstance: 8}",
    "outputs": None,
    "limits": "{jobLimitsType: Command, timeout: PT12H}",
}


def job(note: str = "", **changed: str | None) -> str:
    """A job resource as YAML.

    Args:
        note: Added to the comment on top.
        changed: Properties that differ, as YAML; None leaves one out.
    """
    lines = (f"    {key}: {value}\n" for key, value in (_JOB | changed).items() if value is not None)
    return f"# amlstack:jobs:Job{note}\nbody:\n  properties:\n{''.join(lines)}"


def cluster(
    note: str = "",
    *,
    size: str = SIZE,
    least: int = 0,
    most: int = 4,
    idle: str = "PT10M",
    top: str = "",
    compute: str = "",
    inner: str = "",
) -> str:
    """A cluster resource as YAML.

    Args:
        note: Added to the comment on top.
        size: Its size.
        least: Its fewest nodes.
        most: Its most nodes.
        idle: How long an idle node waits.
        top: A property of the resource.
        compute: A property of the compute.
        inner: A property of the cluster.
    """
    scale = f"{{minNodeCount: {least}, maxNodeCount: {most}, nodeIdleTimeBeforeScaleDown: {idle}}}"
    lines = (
        f"# azure-native:machinelearningservices:Compute{note}",
        top,
        "properties:",
        "  computeType: AmlCompute",
        f"  {compute}" if compute else "",
        "  properties:",
        f"    vmSize: {size}",
        f"    {inner}" if inner else "",
        f"    scaleSettings: {scale}",
    )
    return "".join(f"{line}\n" for line in lines if line)


def subnet(network: str) -> str:
    """The property of a cluster that puts it into a network."""
    return f"subnet: {{id: /subscriptions/S/resourceGroups/G/providers/{_NETWORKS}/{network}/subnets/nodes}}"
