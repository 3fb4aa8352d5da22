"""No job trains over Ethernet because of a forgotten variable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="fabric-switched-off",
    title="Nothing in a job switches InfiniBand off.",
    what=(
        "Refuses variables that keep NCCL off InfiniBand (`NCCL_IB_DISABLE=1`, `NCCL_NET=Socket`, `NCCL_IB_HCA=^mlx5`) "
        "in a multi-node job on a size that has it, wherever they are written: among the job's variables, in its "
        "command line (`NAME=VALUE python …`, `export NAME=VALUE`, `-x NAME=VALUE`) or in its container arguments "
        "(`-e NAME=VALUE`). A multi-node job on a cluster that the stack does not declare is judged the same way, as "
        "such jobs belong on sizes with InfiniBand. `NCCL_P2P_DISABLE=1`, which switches NVLink off, is refused on "
        "one node too, where the size is known. A run of comparison asks for an exception."
    ),
    why=(
        "These variables come from a debugging session or from a cluster without InfiniBand, and stay. The job "
        "runs, over Ethernet, at a fraction of the bandwidth that the size is paid for."
    ),
    example=job(environmentVariables='{NCCL_IB_DISABLE: "1"}'),
    instead=job(environmentVariables="{NCCL_DEBUG: INFO}"),
    not_exported=NO_JOB,
)


ON = frozenset({"1", "true", "yes", "y", "on"})
INFINIBAND: Mapping[str, frozenset[str]] = {
    "NCCL_IB_DISABLE": ON,
    "NCCL_NET": frozenset({"socket"}),
    "NCCL_IB_HCA": frozenset({"^mlx5", "^mlx5_ib", "^mlx"}),
}
"""Variables, and the values of them in small letters, that take a multi-node job off InfiniBand."""

NVLINK: Mapping[str, frozenset[str]] = {"NCCL_P2P_DISABLE": ON}
"""The same for NVLink, on any number of nodes."""

HARMFUL: Mapping[str, frozenset[str]] = {**INFINIBAND, **NVLINK}
_ASSIGNED = re.compile(r"(?<![\w$])(?P<name>NCCL_\w+)=(?P<quote>[\"']?)(?P<value>[^\s\"';&|]*)(?P=quote)")


def check(
    variables: Mapping[str, object],
    size: Size | None,
    *,
    nodes: int,
    command: str = "",
    docker_args: str = "",
    where: tuple[str, str, str] = ("environment_variables", "command", "docker_args"),
) -> tuple[Finding, ...]:
    """Judge all places in which a job can set a variable.

    Args:
        variables: The job's environment variables.
        size: The size of its nodes as the catalogue knows it; None where it is not known, and then only what
            switches InfiniBand off counts. On a size without usable InfiniBand nothing is found.
        nodes: Number of nodes.
        command: Its command line.
        docker_args: Its container arguments.
        where: Paths of the three in the declaration.
    """
    if size is not None and not (size.gpus and size.fabric.usable):
        return ()
    counts = {*(INFINIBAND if nodes > 1 else ()), *(NVLINK if size is not None else ())}
    return tuple(
        Finding(
            RULE.code,
            f"{where[0]}.{name}" if place == 0 else where[place],
            seen=f"`{name}={value}` on {size.name if size else f'{nodes} nodes of a size that is not known here'}",
            rule=f"It keeps the job off {_lost(name, size)}",
            remedy="Leave it out, or keep it for one run of comparison",
        )
        for place, name, value in harmful(variables, command, docker_args)
        if name in counts
    )


def harmful(variables: Mapping[str, object], command: str, docker_args: str) -> tuple[tuple[int, str, str], ...]:
    """What takes some job on some size off its fabric: where it is written, the variable, its value.

    Args:
        variables: The job's environment variables; place 0.
        command: Its command line; place 1.
        docker_args: Its container arguments; place 2.
    """
    written = (
        *((0, name, str(value)) for name, value in variables.items()),
        *((1, name, value) for name, value in assigned(command)),
        *((2, name, value) for name, value in assigned(docker_args)),
    )
    return tuple(one for one in written if one[2].strip().lower() in HARMFUL.get(one[1], ()))


def _lost(name: str, size: Size | None) -> str:
    if size is None:
        return "InfiniBand, which work across nodes needs"
    return f"the {'NVLink' if name in NVLINK else 'InfiniBand'} that the size is paid for"


def assigned(text: str) -> tuple[tuple[str, str], ...]:
    """NCCL's variables that a command line sets: ``NAME=VALUE`` first, or after export, -x, -e."""
    return tuple((found["name"], found["value"]) for found in _ASSIGNED.finditer(text))
