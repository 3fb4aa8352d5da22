"""The start of a job's ranks, out of SDK v1's configurations: nodes, and processes on each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from amlstack.migrate.constructs import type_of
from amlstack.migrate.data import shown, text
from amlstack.migrate.values import Made, Unread

Told = Callable[..., None]

ESTIMATORS: Final = frozenset(("Estimator", "PyTorch", "TensorFlow", "SKLearn", "Chainer"))
TYPES: Final = frozenset(("mpi", "pytorch", "tensorflow"))
_SERVERS: Final = ("worker_count", "parameter_server_count")
_BACKENDS: Final = {
    "mpi": "Mpi", "openmpi": "Mpi", "intelmpi": "Mpi", "nccl": "Nccl", "gloo": "Gloo", "ps": "ParameterServer",
    "parameterserver": "ParameterServer",
}  # fmt: skip
"""The meaning of an estimator's `distributed_backend`, and of a run configuration's `communicator`."""


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
            told(made, "nodes-alone", nodes=nodes)
        return None, None if nodes in (None, 1) else shown(nodes)
    if not isinstance(given, Made):
        return {"type": text(given)}, shown(nodes) if nodes is not None else text(given)
    kind = type_of(given.kind)
    if kind not in TYPES:
        told(given, "distribution-unknown", kind=given.kind)
        return {"type": given.open(given.kind)}, shown(1 if nodes is None else nodes)
    given.fields["_used"] = True
    if isinstance(part := of.get(kind), Made):  # `run_config.mpi.process_count_per_node = 4`
        given = given.copy(**{name: value for name, value in part.fields.items() if name != "node_count"})
    if made.kind in ESTIMATORS:
        _said_twice(of, given, told)
    elif nodes is None and given.kind.endswith("Configuration"):
        nodes = given.get("node_count", "worker_count")
    nodes = 1 if nodes is None else nodes
    if kind == "tensorflow":
        return {"type": kind} | {name: _count(given, name) for name in _SERVERS}, shown(nodes)
    if kind == "mpi":
        return {"type": kind, "process_count_per_instance": _count(given, "process_count_per_node")}, shown(nodes)
    backend = text(given.get("communication_backend") or ("gloo" if given.kind == "Gloo" else "nccl")).lower()
    if backend != "nccl":
        told(given, "communication_backend", backend=backend)
    return {"type": kind, "process_count_per_instance": _per_node(given, nodes, told)}, shown(nodes)


def _count(given: Made, name: str) -> Any:
    """A number of a configuration; 1 where it says none."""
    return 1 if given.get(name) is None else shown(given.get(name))


def _given(of: Made, made: Made) -> Any:
    """The configuration that counts."""
    given = of.get("distributed_job_config", "distributed_training")
    if given is not None:
        return given
    fields = {name: of.get(name) for name in ("process_count_per_node", *_SERVERS) if of.get(name) is not None}
    backend = of.get("distributed_backend") if made.kind in ESTIMATORS else "mpi" if made.kind == "MpiStep" else None
    if backend is None:
        backend = text(of.get("communicator") or "none")
        inner = of.get(type_of(_BACKENDS.get(backend.lower(), "")))
        if isinstance(inner, Made):
            inner.fields["_used"] = True
            fields = inner.given()
    if not isinstance(backend, str):
        return backend
    word = backend.lower()
    return None if word == "none" else Made(_BACKENDS.get(word, backend), fields, of.file, of.line)


def _said_twice(of: Made, given: Made, told: Told) -> None:
    """An estimator's own numbers beside those of its configuration: what counts, and what does not."""
    asked, own = of.get("process_count_per_node"), given.get("process_count_per_node")
    if given.kind in ("MpiConfiguration", "Mpi") and of.get("distributed_training") and asked not in (None, own or 1):
        told(given, "process_count_per_node", asked=asked, own=own or 1)
    inner, outer = given.get("node_count"), of.get("node_count")
    if inner not in (None, outer or 1):
        told(given, "nodes-twice", inner=inner, outer=outer or 1)


def _per_node(given: Made, nodes: Any, told: Told) -> Any:
    """Processes per node, of which SDK v1 has the total."""
    total = given.get("process_count")
    if total is None:
        return 1
    if isinstance(total, int) and isinstance(nodes, int) and nodes > 0 and total % nodes == 0:
        return total // nodes
    told(given, "process_count", total=total, nodes=nodes)
    return text(total) if isinstance(total, Unread) else given.open(f"{text(total)}/nodes")
