"""Rules on the command and the variables of a job: switches, restarts, secrets."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from amlstack.base import credentials
from amlstack.base.findings import Finding
from amlstack.base.pulumi_wire import SecretText
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.catalog.sizes import Size

FABRIC_OFF_RULE = Rule("fabric-switched-off", "Nothing in a job switches InfiniBand off.")


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


def check_fabric_off(
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
            FABRIC_OFF_RULE.code,
            f"{where[0]}.{name}" if place == 0 else where[place],
            seen=f"`{name}={value}` on {size.name if size else f'{nodes} nodes of a size that is not known here'}",
            rule=f"It keeps the job off {_lost(name, size)}",
            remedy="Leave it out, or keep it for one run of comparison",
        )
        for place, name, value in harmful(variables, command, docker_args)
        if name in counts
    )


def harmful(variables: Mapping[str, object], command: str, docker_args: str) -> tuple[tuple[int, str, str], ...]:
    """The variables that take some job on some size off its fabric: each with its place, name and value.

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


RESTART_CHECKPOINT_RULE = Rule(
    "restart-without-checkpoint",
    "A job that will be started again says where its checkpoint is.",
    level="advisory",
    settings=(Setting("hours", "number", "From how many hours of its timeout on a low-priority job is long.", 6),),
)

_RESTARTS = re.compile(r"--max[-_]restarts(?:\s+|=)[\"']?(?P<number>\d+)")
SPEAKS = re.compile(r"ckpt|check_?-?point|snapshot|resume|restore|last_?state|load_?state", re.IGNORECASE)
"""Words by which a command, a name or a script shows that it knows where a run was."""


def restarts(command: str) -> int:
    """The number of restarts that a command asks its launcher for."""
    asked = _RESTARTS.search(command)
    return int(asked["number"]) if asked else 0


def check_restart_checkpoint(
    command: str,
    *,
    names: Iterable[str] = (),
    outputs: int = 0,
    preemptible: bool = False,
    nodes: int = 1,
    timeout: int | None = None,
    hours: float = 6,
    where: str = "command",
) -> Finding | None:
    """Judge what a job says about being started again.

    Args:
        command: Its command line.
        names: Names of its variables and inputs, and values of variables.
        outputs: How many outputs it declares.
        preemptible: Whether its nodes are of low priority.
        nodes: Number of nodes.
        timeout: Seconds of its own timeout; None without one.
        hours: From how many hours of it a job on a low-priority node is long.
        where: Path of the command in the declaration.
    """
    asked = restarts(command)
    preempted = preemptible and nodes == 1 and (timeout or 0) >= hours * 3600
    if not (asked or preempted) or outputs or any(SPEAKS.search(text) for text in (command, *names)):
        return None
    on_spot = f"may run {(timeout or 0) / 3600:g} h on low-priority nodes"
    reason = f"asks for {asked} restarts" if asked else on_spot
    return Finding(
        RESTART_CHECKPOINT_RULE.code,
        where,
        seen=f"The job {reason}, and nothing in it names a checkpoint or an output",
        rule="What is started again begins anew unless it finds a checkpoint",
        remedy="Write checkpoints to a mounted output, and pass its path to the script: --resume ${{outputs.NAME}}",
    )


NEBULA_GONE_RULE = Rule(
    "nebula-gone", "Nothing rests on Nebula, which is deprecated and no longer in the images.", level="advisory"
)

NEBULA_GONE_REMEDY = (
    "Save with torch.distributed.checkpoint (async_save) to a mounted output, in DeepSpeed without `nebula`"
)
_NAMED = re.compile(r"(?<![\w-])(?:nebulaml|torch_nebula)(?![\w-])")
_IMPORTED = re.compile(r"^[ \t]*(?:import|from)[ \t]+(?P<name>nebulaml|torch_nebula)\b", re.MULTILINE)
_ENABLED = re.compile(r"\"nebula\"\s*:\s*\{[^{}]*\"enabled\"\s*:\s*true\b")


def check_nebula_gone(text: str, *, what: str = "The command", where: str = "command") -> Finding | None:
    """Judge a text in which packages are named.

    Args:
        text: A command line, or a conda file.
        what: What it is, in words.
        where: Its path in the declaration.
    """
    found = _NAMED.search(text)
    return None if found is None else _finding(f"{what} names `{found[0]}`", where)


def check_nebula_gone_file(text: str, *, name: str, where: str = "command") -> Finding | None:
    """Judge a file of the code.

    Args:
        text: Its content.
        name: Its name in the code folder; one that ends in ``.json`` is a configuration, another one a script.
        where: Path of what names it in the declaration.
    """
    if name.endswith(".json"):
        return _finding(f"`{name}` has `nebula` enabled", where) if _ENABLED.search(text) else None
    found = _IMPORTED.search(text)
    return None if found is None else _finding(f"`{name}` imports `{found['name']}`", where)


def _finding(seen: str, where: str) -> Finding:
    rule = "Nebula is deprecated, and the current images of Azure ML come without it"
    return Finding(NEBULA_GONE_RULE.code, where, seen=seen, rule=rule, remedy=NEBULA_GONE_REMEDY)


SECRET_RULE = Rule("secret-in-job", "A job's text holds no secret.", level="advisory")

_VALUES = frozenset({"value", "uri", "path", "default"})
"""Keys under which the wire keeps what an input is: the input's own name is one level up."""

_HOLDERS = frozenset({"environmentVariables", "environment_variables"})


def check_secret(job: Any, *, where: str) -> tuple[Finding, ...]:
    """Judge all texts in a job.

    Args:
        job: Its properties, any JSON; other values in it than JSON's are not looked at.
        where: Their path in the declaration.
    """
    found: list[tuple[tuple[str, ...], str]] = []
    _look(job, (where,), "", found)
    return tuple(
        Finding(
            SECRET_RULE.code,
            ".".join(path),
            seen=seen,
            rule="Everybody who can read the workspace reads a job's text, and its record is kept",
            remedy="Put it into a key vault, and read it in the job with the job's identity; or name a secret of the "
            "stack, {secret: NAME}, which keeps it out of files, state and previews, but not out of the record",
        )
        for path, seen in found
    )


def _look(value: Any, path: tuple[str, ...], name: str, found: list[tuple[tuple[str, ...], str]]) -> None:
    """Add place and reason of each text that looks like a secret; ``name`` is what people call the value.

    A list is filled, and nothing yielded through the levels: this goes through every value of every job.
    """
    if isinstance(value, str):
        if not isinstance(value, SecretText):  # encrypted wherever this project keeps it; docs/how-to/secrets.md
            found += [(path, seen) for seen in _seen(name, value)]
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in _VALUES:
                _look(inner, path, name, found)
            elif key in _HOLDERS and isinstance(inner, dict):
                named = {one: each for one, each in inner.items() if not _names_a_secret(each)}
                _look(named, (*path, str(key)), str(key), found)
            else:
                _look(inner, (*path, str(key)), str(key), found)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _look(inner, (*path, str(number)), name, found)


def _names_a_secret(value: Any) -> bool:
    """True where a variable names a secret of the stack, `{secret: NAME}`, instead of having a value."""
    return isinstance(value, dict) and value.keys() == {"secret"}


@lru_cache(maxsize=1024)  # jobs have the same few texts under the same few names
def _seen(name: str, text: str) -> tuple[str, ...]:
    if what := credentials.form(text):
        return (f"`{name}` holds what looks like {what}",)
    if credentials.named(name, text):
        return (f"`{name}` is named like a secret, and has a value",)
    return tuple(f"`{each}` is named like a secret, and is set here" for each in credentials.assigned(text))


def may_be_secret(name: str) -> bool:
    """True where a value of that name that is not known yet may be a secret."""
    return credentials.named(name, "0123456789abcdefghij")
