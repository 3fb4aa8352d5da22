"""The start of a job's ranks, out of SDK v1's configurations: nodes, and processes on each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amlstack.migrate.data import shown, text
from amlstack.migrate.values import Made, Unread

if TYPE_CHECKING:
    from collections.abc import Callable

    Told = Callable[..., None]

ESTIMATORS: Final = frozenset(("Estimator", "PyTorch", "TensorFlow", "SKLearn", "Chainer"))
TYPES: Final = {
    "MpiConfiguration": "mpi", "Mpi": "mpi", "PyTorchConfiguration": "pytorch", "Nccl": "pytorch", "Gloo": "pytorch",
    "TensorflowConfiguration": "tensorflow", "ParameterServer": "tensorflow",
}  # fmt: skip
_BACKENDS: Final = {"mpi": "Mpi", "ps": "ParameterServer", "nccl": "Nccl", "gloo": "Gloo"}
"""The meaning of an estimator's `distributed_backend`."""
_COMMUNICATORS: Final = {"openmpi": "Mpi", "intelmpi": "Mpi", "mpi": "Mpi", "nccl": "Nccl", "gloo": "Gloo",
                         "parameterserver": "ParameterServer"}  # fmt: skip
"""The meaning of a run configuration's `communicator`."""


def distribution(of: Made, made: Made, told: Told) -> tuple[dict[str, Any] | None, Any]:
    """The distribution of a job, and its number of nodes.

    Args:
        of: The object that is submitted, with its run configuration.
        made: The object alone.
        told: Notes what a person should know.
    """
    nodes, given = of.get("node_count"), _given(of, made)
    if given is None:
        if nodes not in (None, 1):
            told(made, "node_count", "hand", f"{text(nodes)} nodes without a distribution: each runs the same command",
                 "Write a `distribution`, or one node.")  # fmt: skip
        return None, None if nodes in (None, 1) else shown(nodes)
    if not isinstance(given, Made):
        return {"type": text(given)}, shown(nodes) if nodes is not None else text(given)
    kind = TYPES.get(given.kind)
    if kind is None:
        told(given, given.kind, "hand", "v2 has no distribution of this kind", "Start the processes in the command.")
        return {"type": str(Unread(given.kind, given.file, given.line))}, shown(1 if nodes is None else nodes)
    given.fields["_used"] = True
    if isinstance(part := of.get(kind), Made):  # `run_config.mpi.process_count_per_node = 4`
        given = given.copy(**{name: value for name, value in part.fields.items() if name != "node_count"})
    if made.kind in ESTIMATORS:
        _said_twice(of, given, told)
        nodes = 1 if nodes is None else nodes
    if nodes is None:
        nodes = given.get("node_count", "worker_count") if given.kind.endswith("Configuration") else 1
        nodes = 1 if nodes is None else nodes
    if kind == "tensorflow":
        counts = {name: given.get(name) for name in ("worker_count", "parameter_server_count")}
        return {"type": kind, **{name: 1 if count is None else shown(count) for name, count in counts.items()}}, shown(
            nodes
        )
    if kind == "mpi":
        each = given.get("process_count_per_node")
        return {"type": kind, "process_count_per_instance": 1 if each is None else shown(each)}, shown(nodes)
    backend = text(given.get("communication_backend") or ("gloo" if given.kind == "Gloo" else "nccl")).lower()
    if backend != "nccl":
        told(given, "communication_backend", "hand", f"v2 has no field for `{backend}`",
             f'The code says it: `init_process_group(backend="{backend}")`.')  # fmt: skip
    return {"type": kind, "process_count_per_instance": _per_node(given, nodes, told)}, shown(nodes)


def _given(of: Made, made: Made) -> Any:
    """The configuration that counts."""
    given = of.get("distributed_job_config", "distributed_training")
    names = ("process_count_per_node", "worker_count", "parameter_server_count")
    fields = {name: of.get(name) for name in names if of.get(name) is not None}
    backend = of.get("distributed_backend")
    if given is None and made.kind in ESTIMATORS and backend is not None:
        if not isinstance(backend, str):
            return backend
        return Made(_BACKENDS.get(backend.lower(), backend), fields, of.file, of.line)
    if given is None and made.kind == "MpiStep":
        return Made("Mpi", fields, of.file, of.line)
    if given is not None or (communicator := of.get("communicator")) is None:
        return given
    word = text(communicator).lower()
    part = TYPES.get(_COMMUNICATORS.get(word, ""), "")
    inner = of.get(part) if part else None
    if isinstance(inner, Made):
        inner.fields["_used"] = True
        fields = inner.given()
    kind = _COMMUNICATORS.get(word, text(communicator))
    return None if word in ("", "none") else Made(kind, dict(fields), of.file, of.line)


def _said_twice(of: Made, given: Made, told: Told) -> None:
    """An estimator's own numbers beside those of its configuration: what counts, and what does not."""
    asked, own = of.get("process_count_per_node"), given.get("process_count_per_node")
    if given.kind in ("MpiConfiguration", "Mpi") and of.get("distributed_training") and asked not in (None, own or 1):
        said = f"the estimator says {text(asked)}, its configuration {text(own or 1)}, which counts"
        how = f"Write `process_count_per_instance: {text(asked)}` if that is meant."
        told(given, "process_count_per_node", "hand", said, how)
    inner, outer = given.get("node_count"), of.get("node_count")
    if inner not in (None, outer or 1):
        told(given, "node_count", "hand", f"the configuration says {text(inner)}, the estimator {text(outer or 1)}, "
             "which counts", f"Write `instance_count: {text(inner)}` if that is meant.")  # fmt: skip


def _per_node(given: Made, nodes: Any, told: Told) -> Any:
    """Processes per node, of which SDK v1 has the total."""
    total = given.get("process_count")
    if total is None:
        return 1
    if isinstance(total, int) and isinstance(nodes, int) and nodes > 0 and total % nodes == 0:
        return total // nodes
    said = f"it is the total of all nodes: {text(total)} processes on {text(nodes)} nodes"
    told(given, "process_count", "hand", said, "Write processes per node, the same on each.")
    return text(total) if isinstance(total, Unread) else str(Unread(f"{text(total)}/nodes", given.file, given.line))
