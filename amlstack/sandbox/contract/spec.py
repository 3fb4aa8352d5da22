"""``${{inputs.x}}``, ``${{outputs.x}}`` and optional ``$[[ … ]]`` groups in a command.

The size of a node's /dev/shm: the size that its container would have.

A job's body read into what the runner needs; what the sandbox cannot run is refused by name.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base import text as text_module
from amlstack.base.text import hint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.scale import RehearsalScale

DEFAULT = "2g"
"""Azure ML gives this to a container whose job does not say."""

_SIZE = re.compile(r"(\d+)\s*([bkmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(text: str) -> int | None:
    """Bytes of ``64g`` or ``512m``; None when it is no size."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2].lower()] or None if found else None


LAUNCHED = ("PyTorch", "Mpi", "TensorFlow")
"""The distributions that the sandbox launches."""


class RefusedError(Exception):
    """The job cannot run here; the message says what was seen, the rule and the remedy.

    Attributes:
        code: As the service would name it: ``UserError`` or ``SandboxUnsupported``.
    """

    def __init__(self, message: str, code: str = "UserError") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class JobPort:
    """An input or an output.

    Attributes:
        kind: ``literal``, ``uri_file``, ``uri_folder``, … (the wire's jobInputType or jobOutputType).
        value: The literal's text.
        uri: Where the data lie; None for an output that leaves it to the service.
        mode: ``ReadOnlyMount``, ``Download``, ``ReadWriteMount``, ``Upload``, …; None for the default.
    """

    kind: str
    value: str = ""
    uri: str | None = None
    mode: str | None = None

    @property
    def copied(self) -> bool:
        """True where the node gets (or gives) a copy instead of a mount."""
        return self.mode in ("Download", "Upload")


@dataclass(frozen=True, slots=True)
class Spec:
    """The request of a command job.

    Attributes:
        command: The shell command, its ``${{…}}`` unresolved.
        code: ARM id of the code version; None for none.
        environment: ARM id or registry id of the environment version.
        distribution: ``PyTorch``, ``Mpi``, ``TensorFlow``; None for none: every node runs the command once, without
            rank variables.
        processes: Processes per node that the service starts; of TensorFlow's tasks the most that a node has.
        nodes: Node count.
        workers, servers: Tasks of TensorFlow, in all; 0 otherwise.
        inputs: By name.
        outputs: By name.
        variables: The job's environment variables.
        timeout: Seconds that it may run; None for no limit.
        shm: Bytes of shared memory that each node's container has; None where it has the machine's own.
        experiment: Name of its experiment.
        declared: Nodes, and processes per node, as the body has them.
        scale: What a rehearsal scales them down to; None for nothing.
    """

    command: str
    code: str | None
    environment: str
    distribution: str | None
    processes: int
    nodes: int
    workers: int
    servers: int
    inputs: dict[str, JobPort]
    outputs: dict[str, JobPort]
    variables: dict[str, str]
    timeout: float | None
    shm: int | None
    experiment: str
    declared: tuple[int, int]
    scale: RehearsalScale | None = None

    @property
    def ranks(self) -> int:
        """Processes that the service starts in all."""
        return (self.workers + self.servers) or self.nodes * self.processes


def read(properties: Mapping[str, Any], scale: RehearsalScale | None = None) -> Spec:
    """Reads ``body["properties"]`` of a command job.

    Args:
        properties: The job's.
        scale: Nodes and processes of the result are no more than it allows.

    Raises:
        RefusedError: The sandbox does not run this kind of job.
    """
    kind = properties.get("jobType")
    if kind != "Command":
        raise RefusedError(f"The sandbox runs command jobs; this one is of the type {kind}.", "SandboxUnsupported")
    distribution = properties.get("distribution") or {}
    style = distribution.get("distributionType")
    if style not in (None, *LAUNCHED):
        message = f"The sandbox launches {', '.join(LAUNCHED)} jobs; the distribution of this one is {style}."
        raise RefusedError(message, "SandboxUnsupported")
    nodes = int((properties.get("resources") or {}).get("instanceCount") or 1)
    tensorflow = style == "TensorFlow"
    workers = int(distribution.get("workerCount") or nodes) if tensorflow else 0
    servers = int(distribution.get("parameterServerCount") or 0) if tensorflow else 0
    processes = int(distribution.get("processCountPerInstance") or 1)
    declared = (nodes, math.ceil(workers / nodes) + math.ceil(servers / nodes) if tensorflow else processes)
    if scale is not None:
        workers, servers = scale.workers(workers, nodes), min(servers, scale.nodes)
        nodes, processes = min(nodes, scale.nodes), min(processes, scale.ranks)
    limits = properties.get("limits") or {}
    return Spec(
        command=str(properties["command"]),
        code=properties.get("codeId"),
        environment=str(properties["environmentId"]),
        distribution=style,
        processes=math.ceil(workers / nodes) + math.ceil(servers / nodes) if tensorflow else processes,
        nodes=nodes,
        workers=workers,
        servers=servers,
        inputs={name: _port(port, "jobInputType") for name, port in (properties.get("inputs") or {}).items() if port},
        outputs={name: _port(port, "jobOutputType") for name, port in (properties.get("outputs") or {}).items()},
        variables={str(k): str(v) for k, v in (properties.get("environmentVariables") or {}).items()},
        timeout=seconds(limits["timeout"]) if limits.get("timeout") else None,
        shm=_shm(properties.get("resources") or {}),
        experiment=str(properties.get("experimentName") or "Default"),
        declared=declared,
        scale=scale,
    )


def seconds(duration: str) -> float:
    """Seconds of an ISO-8601 duration such as ``PT15M`` or ``P1DT30S``.

    Raises:
        RefusedError: It is none.
    """
    found = text_module.seconds(duration.strip().upper())
    if found is None:
        raise RefusedError(f"{duration!r} is no ISO-8601 duration such as PT15M.")
    return found


def _shm(resources: Mapping[str, Any]) -> int | None:
    if re.search(r"--ipc[= ]host\b", str(resources.get("dockerArgs") or "")):
        return None
    declared = str(resources.get("shmSize") or DEFAULT)
    found = size(declared)
    if found is None:
        raise RefusedError(f"The shared memory {declared!r} (resources.shmSize) is no size such as 64g.")
    return found


def _port(port: Mapping[str, Any] | None, key: str) -> JobPort:
    port = port or {}
    kind = str(port.get(key) or "uri_folder")
    value = port.get("value")
    return JobPort(kind, "" if value is None else str(value), port.get("uri"), port.get("mode"))


_REFERENCE = re.compile(r"\$\{\{\s*(?P<side>[\w-]+)\.(?P<name>[\w-]+)(?:\.path)?\s*\}\}")
_GROUP = re.compile(r"\$\[\[(?P<inside>.*?)\]\]", re.DOTALL)
_ANY = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)


def resolve(command: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    """The command as the shell gets it: values and paths put in as they are, unquoted, as the service does.

    Args:
        command: With references; an optional group stays only if everything it refers to is given.
        inputs: Literal values, and paths on the node.
        outputs: Paths on the node.

    Raises:
        RefusedError: A reference names nothing.
    """
    known = {"inputs": inputs, "outputs": outputs}

    def group(found: re.Match[str]) -> str:
        inside = found["inside"]
        given = (ref["name"] in known.get(ref["side"], {}) for ref in _REFERENCE.finditer(inside))
        return inside if all(given) else ""

    def value(found: re.Match[str]) -> str:
        side, name = found["side"], found["name"]
        if side not in known or name not in known[side]:
            raise RefusedError(_missing(found[0], side, name, known))
        return known[side][name]

    resolved = _REFERENCE.sub(value, _GROUP.sub(group, command))
    # Literals may hold anything, so what is left is looked for in the command alone.
    if odd := next((text for text in _ANY.findall(command) if not _REFERENCE.fullmatch(text)), None):
        message = f"The command refers to {odd}, which is neither ${{{{inputs.NAME}}}} nor ${{{{outputs.NAME}}}}."
        raise RefusedError(message)
    return resolved


def _missing(text: str, side: str, name: str, known: Mapping[str, Mapping[str, str]]) -> str:
    if side not in known:
        return f"The command refers to {text}; a job has only inputs and outputs."
    have = ", ".join(sorted(known[side])) or "none"
    return f"The command refers to {text}, but the job's {side} are: {have}.{hint(name, known[side])}"
