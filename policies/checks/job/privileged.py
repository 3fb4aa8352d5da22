"""A container does not get the whole machine."""

from __future__ import annotations

from amlstack.base.findings import Finding
from policies.checks.examples import SIZE, job
from policies.checks.rule import NO_JOB, Rule

_RESOURCES = f"instanceType: {SIZE}, instanceCount: 2, shmSize: 950g"

RULE = Rule(
    code="container-privileged",
    title="A job's container is not privileged.",
    what="Flags a job whose arguments of `docker run` hold `--privileged`.",
    why=(
        "A privileged container may do on the node whatever root may, to the processes and mounts of Azure ML too. "
        "InfiniBand needs the locked memory of `--ulimit memlock=-1` and no more."
    ),
    example=job(resources=f"{{{_RESOURCES}, dockerArgs: --privileged}}"),
    instead=job(resources=f"{{{_RESOURCES}, dockerArgs: --ulimit memlock=-1}}"),
    level="advisory",
    not_exported=NO_JOB,
)


def check(docker_args: str, *, where: str = "docker_args") -> Finding | None:
    """Judge the arguments of a container.

    Args:
        docker_args: Arguments of `docker run`, as one text.
        where: Path of the arguments in the declaration.
    """
    if not {"--privileged", "--privileged=true"} & set(docker_args.split()):
        return None
    return Finding(
        RULE.code,
        where,
        seen="The container is started with `--privileged`",
        rule="A privileged container may do whatever root may on its node",
        remedy="Leave it out; for InfiniBand write --ulimit memlock=-1",
    )
