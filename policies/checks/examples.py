"""The good job and the good cluster of the rules' examples: an example says only what differs."""

from __future__ import annotations

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
