"""Rules on jobs: their environment, their limits and processes, and the words of their commands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from amlstack.base import credentials
from amlstack.base.findings import Finding, stated
from amlstack.base.pulumi_wire import SecretText
from amlstack.catalog.images import Image, runs_on, version

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size


_REGISTRY = re.compile(r"azureml://registries/(?P<name>[^/]+)/", re.IGNORECASE)
_CURATED = re.compile(r"(?:azureml:)?AzureML-", re.IGNORECASE)


def check_environment_source(
    environment: str, *, registries: Sequence[str] | None, where: str = "environment"
) -> Finding | None:
    """Judge where a job's environment comes from.

    Args:
        environment: Its id or reference.
        registries: Approved Azure ML registries; None or none at all for no bound.
        where: Its path in the declaration.
    """
    found = _REGISTRY.match(environment)
    source = found["name"] if found else "azureml" if _CURATED.match(environment) else None
    return _unless_approved("The environment", "an Azure ML registry", source, registries, where)


def check_environment_source_image(image: str, *, images: Sequence[str] | None, where: str = "image") -> Finding | None:
    """Judge where an environment's image comes from.

    Args:
        image: The image's reference.
        images: Approved container registries, e.g. ``mcr.microsoft.com``; None or none at all for no bound.
        where: Its path in the declaration.
    """
    host, slash, _ = image.partition("/")
    # As Docker reads it: the first part is a host only when it looks like one.
    is_host = bool(slash) and ("." in host or ":" in host or host == "localhost")
    return _unless_approved("The image", "a container registry", host if is_host else "docker.io", images, where)


def _unless_approved(
    what: str, kind: str, source: str | None, approved: Sequence[str] | None, where: str
) -> Finding | None:
    if not approved or source is None or source.lower() in {name.lower() for name in approved}:
        return None
    return stated("environment-approved", where, what=what, source=source, kind=kind, approved=", ".join(approved))


_PINNED = re.compile(r"(/versions/[^/]+|:[^:/@]+)$")


def check_environment_pin(environment: str, *, where: str = "environment") -> Finding | None:
    """Judge the reference of an environment.

    Args:
        environment: Its id or reference: ``…/versions/7``, ``azureml:NAME:7``, ``azureml:NAME@latest``.
        where: Its path in the declaration.
    """
    if "@" not in environment and _PINNED.search(environment.removeprefix("azureml:")):
        return None
    return stated("environment-pinned", where, environment=environment)


def check_environment_pin_image(image: str, *, where: str = "image") -> Finding | None:
    """Judge the reference of an image.

    Args:
        image: The image's reference.
        where: Its path in the declaration.
    """
    # The text after the colon of a digest is no `latest` either.
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag and tag.lower() != "latest":
        return None
    return stated("environment-pinned/check-environment-pin-image", where, image=image)


_OPENIB = re.compile(r"btl(?:\s+|=)[\"']?[\w,^]*openib|btl_openib_\w+")
_VARIABLE = "OMPI_MCA_btl"


def check_image_runs(
    image: Image,
    size: Size | None,
    *,
    command: str = "",
    variables: Mapping[str, object] | None = None,
    where: str = "environment",
) -> tuple[Finding, ...]:
    """Judge an image on a size.

    Args:
        image: What is known of it.
        size: The size of the nodes; None where it is not known.
        command: The job's command line.
        variables: Its environment variables.
        where: Path of the environment in the declaration.
    """
    found = []
    if size is not None and (seen := _unfit(image, size)):
        remedy = "Name an environment of your own whose image is built for them, or another size"
        found.append(
            Finding(
                "image-cannot-run-here", where, seen=seen, rule="A job's image must run on its nodes", remedy=remedy
            )
        )
    set_by = [f"{name}={value}" for name, value in (variables or {}).items() if _old_transport(name, value)]
    words = [found[0] for found in _OPENIB.finditer(command)] + set_by
    if words and (image.open_mpi or "").startswith("5"):
        found.append(stated("image-cannot-run-here", where, words=words[0], image=image))
    return tuple(found)


def _unfit(image: Image, size: Size) -> str:
    """The mismatch between the image and the size; empty for none."""
    if image.architectures and size.architecture not in image.architectures:
        return f"{image.name} is built for {', '.join(image.architectures)}, and {size.name} is {size.architecture}"
    if size.gpu is None:
        return ""
    chip = f"{size.name} has {size.gpu.model} GPUs"
    if image.vendor not in (None, size.gpu.vendor):
        platform = "CUDA" if image.vendor == "NVIDIA" else "ROCm"
        return f"{image.name} is built for {platform}, and {chip} of {size.gpu.vendor}"
    capability = size.gpu.compute_capability
    if capability is None:
        return ""
    if image.least is not None and version(capability) < version(image.least):
        return f"{image.name} supports compute capability {image.least} and later, and {chip} ({capability})"
    if image.cuda is None:
        return ""
    if image.build is not None and runs_on(image.build, image.cuda, capability) is False:
        built = f"PyTorch {image.build} for CUDA {image.cuda}"
        return f"{image.name} has {built}, which is built without compute capability {capability}, and {chip}"
    if image.torch is not None and not size.gpu.builds_for(image.cuda):
        need = f"compute capability {size.gpu.compute_capability}: CUDA {size.gpu.cuda_from}"
        until = f" to {size.gpu.cuda_until}" if size.gpu.cuda_until else " or later"
        return f"{image.name} has PyTorch {image.torch} for CUDA {image.cuda}, and {chip} ({need}{until})"
    return ""


def _old_transport(name: str, value: object) -> bool:
    return name.startswith(f"{_VARIABLE}_openib_") or (name == _VARIABLE and "openib" in str(value))


def check_processes(processes: int, size: Size, *, nodes: int, where: str = "launcher") -> Finding | None:
    """Judge the number of processes per node.

    Args:
        processes: Ranks on each node.
        size: The size of the nodes as the catalogue knows it; a CPU size is never judged.
        nodes: Number of nodes, to recognise a total.
        where: Path of the number in the declaration.
    """
    if not size.gpus or processes <= size.gpus:
        return None
    is_total = processes == nodes * size.gpus
    total = f". {processes} is {nodes} nodes of {size.gpus}: a total" if is_total else ""
    return stated("processes-beyond-gpus", where, processes=processes, size=size, total=total)


SOME_GPUS = "CUDA_VISIBLE_DEVICES"
"""The variable by which a job chooses GPUs of its nodes."""


def check_gpus_idle(
    processes: int, size: Size, variables: Collection[str], *, where: str = "distribution"
) -> Finding | None:
    """Judge the number of processes per node.

    Args:
        processes: Processes that Azure ML starts on each node.
        size: The size of the nodes as the catalogue knows it.
        variables: Names of the job's variables.
        where: Path of the number in the declaration.
    """
    if not 1 < processes < size.gpus or SOME_GPUS in variables:
        return None
    return stated("gpus-idle", where, processes=processes, size=size)


AZURE_DEFAULT = "2g"
"""The shared memory that Azure ML gives a container that asks for none."""

_FORM = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[bkmgt]?)b?", re.IGNORECASE)
_GIB = {"": 2**-30, "b": 2**-30, "k": 2**-20, "m": 2**-10, "g": 1.0, "t": 2.0**10}


def check_shared_memory(
    shm_size: str | None, size: Size, *, docker_args: str = "", gib_per_gpu: float, where: str = "shm_size"
) -> Finding | None:
    """Judge the shared memory of a job's container.

    Args:
        shm_size: As Azure ML takes it, e.g. ``64g``; None when the job asks for none.
        size: The size of the nodes as the catalogue knows it; a CPU size is never judged.
        docker_args: The job's container arguments.
        gib_per_gpu: GiB that each GPU's loaders need.
        where: Path of the value in the declaration.
    """
    given = gib(shm_size or AZURE_DEFAULT)
    least = gib_per_gpu * size.gpus
    if size.memory_gib is not None:
        least = min(least, size.memory_gib / 2)
    if given is None or given >= least or "--ipc=host" in docker_args or "--shm-size" in docker_args:
        return None
    advice = size.shm_size() or f"{least:g}g"
    return Finding(
        "shared-memory",
        where,
        seen=f"The container has {shm_size or AZURE_DEFAULT} of shared memory{'' if shm_size else ', the default'}, "
        f"for {size.gpus} GPUs",
        rule=f"DataLoader workers want {gib_per_gpu:g} GiB per GPU, else they die with `Bus error`",
        remedy=f"Write {advice}",
    )


def gib(text: str) -> float | None:
    """GiB of a size as Docker writes it; None for what is none."""
    found = _FORM.fullmatch(text.strip())
    return float(found["number"]) * _GIB[found["unit"].lower()] if found else None


MOUNTED = frozenset({"readwritemount", "rw_mount", "mount", "direct"})


def check_spot_checkpoint(
    modes: Collection[str | None], *, preemptible: bool, nodes: int, where: str = "outputs"
) -> Finding | None:
    """Judge the outputs of a job whose nodes may be taken away.

    Args:
        modes: Mode of each of its outputs; None is Azure ML's own default, a mount.
        preemptible: Whether its nodes are low-priority.
        nodes: Number of nodes.
        where: Path of the outputs in the declaration.
    """
    if not preemptible or nodes <= 1 or any(mode is None or mode.lower() in MOUNTED for mode in modes):
        return None
    return stated("spot-checkpoint", where, nodes=nodes)


JOB_TIMEOUT_REMEDY = "Write limits.timeout, such as PT12H"


def check_job_timeout(
    timeout: int | None, *, hours: float | None = None, where: str = "limits.timeout"
) -> Finding | None:
    """Judge when a job ends at the latest.

    Args:
        timeout: Seconds after which Azure ML ends it; None or 0 for never.
        hours: Most hours; None for no bound.
        where: Path of the timeout in the declaration.
    """
    if not timeout:
        seen = "The job has no timeout"
    elif hours is not None and timeout > hours * 3600:
        seen = f"The timeout is {timeout / 3600:g} hours"
    else:
        return None
    remedy = f"Write {hours:g} hours or less" if hours is not None else JOB_TIMEOUT_REMEDY
    return Finding("job-timeout", where, seen=seen, rule="Only a timeout ends a job that hangs", remedy=remedy)


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
            "fabric-switched-off",
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
    return stated("restart-without-checkpoint", where, reason=reason)


NEBULA_GONE_REMEDY = (
    "Save with torch.distributed.checkpoint (async_save) to a mounted output, in DeepSpeed without `nebula`"
)
_NAMED = re.compile(r"(?<![\w-])(?:nebulaml|torch_nebula)(?![\w-])")
_IMPORTED = re.compile(r"^[ \t]*(?:import|from)[ \t]+(?P<name>nebulaml|torch_nebula)\b", re.MULTILINE)
_ENABLED = r"\"nebula\"\s*:\s*\{[^{}]*\"enabled\"\s*:\s*true\b"


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
        return _finding(f"`{name}` has `nebula` enabled", where) if re.search(_ENABLED, text) else None
    found = _IMPORTED.search(text)
    return None if found is None else _finding(f"`{name}` imports `{found['name']}`", where)


def _finding(seen: str, where: str) -> Finding:
    rule = "Nebula is deprecated, and the current images of Azure ML come without it"
    return Finding("nebula-gone", where, seen=seen, rule=rule, remedy=NEBULA_GONE_REMEDY)


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
    return tuple(stated("secret-in-job", ".".join(path), seen=seen) for path, seen in found)


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
