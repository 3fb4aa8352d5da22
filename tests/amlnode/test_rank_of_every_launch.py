from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amlnode.environment import export, torch_environ
from amlnode.rank import MPI_FAMILIES, NodeError, RankInfo, resolve
from tests.support.amlnode.launch_variables import BATCH, MASTER, ompi, torch
from tests.support.rows import for_each


def tf(kind: str, index: int, **cluster: list[str]) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


PLACES = [
    ("nothing set", {}, RankInfo(0, 1, 0, 1, 0, 1, "127.0.0.1", 54965, "single")),
    ("mpi, first of two nodes", ompi(1, 4, 1, 2, **BATCH), RankInfo(1, 4, 1, 2, 0, 2, "10.0.0.4", 6105, "openmpi")),
    ("mpi, second node", ompi(2, 4, 0, 2, **BATCH), RankInfo(2, 4, 0, 2, 1, 2, "10.0.0.4", 6105, "openmpi")),
    ("mpi per node", ompi(1, 2, 0, 1, **BATCH), RankInfo(1, 2, 0, 1, 1, 2, "10.0.0.4", 6105, "openmpi")),
    (
        "mpi on one node",
        ompi(1, 2, 1, 2, AZ_BATCHAI_MPI_MASTER_NODE="10.0.0.9"),
        RankInfo(1, 2, 1, 2, 0, 1, "10.0.0.9", 54965, "openmpi"),
    ),
    ("mpi on one node elsewhere", ompi(0, 2, 0, 2), RankInfo(0, 2, 0, 2, 0, 1, "127.0.0.1", 54965, "openmpi")),
    (
        "mpi with a port of the person's",
        ompi(0, 2, 0, 2, MASTER_PORT="7"),
        RankInfo(0, 2, 0, 2, 0, 1, "127.0.0.1", 7, "openmpi"),
    ),
    (
        "mpi, ipv6",
        ompi(0, 2, 0, 1, AZ_BATCH_MASTER_NODE="[fd00::4]:6000"),
        RankInfo(0, 2, 0, 1, 0, 2, "fd00::4", 6105, "openmpi"),
    ),
    (
        "intel mpi",
        {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", **BATCH},
        RankInfo(3, 4, 1, 2, 1, 2, "10.0.0.4", 6105, "pmi"),
    ),
    (
        "per process, second node",
        torch(3, 4, LOCAL_RANK=1, NODE_RANK=1, **MASTER),
        RankInfo(3, 4, 1, 2, 1, 2, "10.0.0.4", 6105, "pytorch"),
    ),
    (
        "per process, first node: its size is not set",
        torch(1, 4, LOCAL_RANK=1, NODE_RANK=0, **MASTER),
        RankInfo(1, 4, 1, None, 0, None, "10.0.0.4", 6105, "pytorch"),
    ),
    (
        "per process, first node, size set by the person",
        torch(1, 4, LOCAL_RANK=1, NODE_RANK=0, LOCAL_WORLD_SIZE=2, **MASTER),
        RankInfo(1, 4, 1, 2, 0, 2, "10.0.0.4", 6105, "pytorch"),
    ),
    (
        "one process per node",
        torch(1, 2, LOCAL_RANK=0, NODE_RANK=1, **MASTER),
        RankInfo(1, 2, 0, 1, 1, 2, "10.0.0.4", 6105, "pytorch"),
    ),
    (
        "torchrun",
        torch(
            5, 6, LOCAL_RANK=2, LOCAL_WORLD_SIZE=3, GROUP_RANK=1, GROUP_WORLD_SIZE=2, TORCHELASTIC_RUN_ID="x", **MASTER
        ),
        RankInfo(5, 6, 2, 3, 1, 2, "10.0.0.4", 6105, "torchrun"),
    ),
    (
        "torchrun on unequal nodes",
        torch(0, 3, LOCAL_RANK=0, LOCAL_WORLD_SIZE=1, GROUP_RANK=0, GROUP_WORLD_SIZE=2, **MASTER),
        RankInfo(0, 3, 0, 1, 0, 2, "10.0.0.4", 6105, "torchrun"),
    ),
    (
        "a per-node launcher below mpi",
        {**ompi(1, 2, 0, 1, **BATCH), **torch(3, 4, LOCAL_RANK=1, LOCAL_WORLD_SIZE=2, MASTER_ADDR="10.0.0.4")},
        RankInfo(3, 4, 1, 2, 1, 2, "10.0.0.4", 6105, "pytorch"),
    ),
    (
        "the guides' helper called before",
        {**ompi(1, 4, 1, 2, **BATCH), **torch(1, 4, **MASTER)},
        RankInfo(1, 4, 0, 2, 0, 2, "10.0.0.4", 6105, "pytorch"),
    ),
    (
        "tensorflow worker",
        tf("worker", 1, worker=["host0:2222", "host1:2222"]),
        RankInfo(1, 2, 0, 1, 1, 2, "host0", 6105, "tensorflow"),
    ),
    (
        "tensorflow chief and server",
        tf("ps", 0, chief=["h0:1"], worker=["h1:1"], ps=["h0:2"]),
        RankInfo(2, 3, 1, 2, 0, 2, "h0", 6105, "tensorflow"),
    ),
    ("tensorflow alone", {"TF_CONFIG": "{}"}, RankInfo(0, 1, 0, 1, 0, 1, "127.0.0.1", 54965, "tensorflow")),
]


@for_each("environ, place", [case[1:] for case in PLACES])
def test_every_launch_is_one_place(environ: dict[str, str], place: RankInfo) -> None:
    assert resolve(environ) == place


WRONG = [
    ("RANK alone", {"RANK": "0"}, "WORLD_SIZE is not set"),
    ("a rank too high", torch(4, 4), "RANK must be below WORLD_SIZE, got 4 of 4"),
    ("no address", torch(1, 4), "MASTER_ADDR is not set"),
    ("no number", torch("$RANK", 4), "RANK must be a whole number from 0, got `$RANK`"),
    ("another node's rank", torch(5, 8, LOCAL_RANK=0, NODE_RANK=1, LOCAL_WORLD_SIZE=4, **MASTER), "would make rank 4"),
    ("no size fits", torch(3, 4, LOCAL_RANK=0, NODE_RANK=2, **MASTER), "No number of ranks per node fits"),
    ("node 0 of another", torch(3, 4, LOCAL_RANK=0, NODE_RANK=0, **MASTER), "On the first node both are the same"),
    ("cleaned too much", {"NODE_RANK": "1"}, "neither RANK nor WORLD_SIZE"),
    (
        "an image's left-over",
        {**ompi(2, 4, 0, 2, **BATCH), **torch(0, 1)},
        "give rank 0 of 1, MPI's (openmpi) rank 2 of 4",
    ),
    ("mpi cut short", {"OMPI_COMM_WORLD_RANK": "0"}, "not set: OMPI_COMM_WORLD_SIZE"),
    ("mapped by node", ompi(1, 4, 0, 2, **BATCH), "dealt node by node"),
    ("mpi without a master", ompi(0, 4, 0, 2), "neither AZ_BATCH_MASTER_NODE nor MASTER_ADDR"),
    ("no port", {"MASTER_PORT": "70000"}, "MASTER_PORT must be from 1 to 65535, got 70000"),
    ("no JSON", {"TF_CONFIG": "{"}, "TF_CONFIG cannot be read"),
    ("JSON of another kind", {"TF_CONFIG": "[1]"}, "TF_CONFIG cannot be read"),
    ("no such task", tf("worker", 2, worker=["a:1"]), "its cluster has worker 0"),
    ("an evaluator", tf("evaluator", 0, worker=["a:1"]), "outside of the cluster"),
]


@for_each("environ, message", [case[1:] for case in WRONG])
def test_contradictory_variables_are_refused_with_what_was_seen(environ: dict[str, str], message: str) -> None:
    with pytest.raises(NodeError, match=re.escape(message)):
        resolve(environ)


NUMBERS = st.one_of(st.none(), st.integers(-1, 9).map(str), st.sampled_from(["", "x", "²", "$RANK"]))
NAMES = [
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT",
    "AZ_BATCH_MASTER_NODE", "TF_CONFIG", *(name for family in MPI_FAMILIES for name in family[1:]),
]  # fmt: skip


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, NUMBERS)))
def test_any_surroundings_are_a_sound_place_or_a_clear_error(variables: dict[str, str | None]) -> None:
    try:
        place = resolve({name: value for name, value in variables.items() if value is not None})
    except NodeError:
        return
    assert 0 <= place.rank < place.world_size
    assert 0 <= place.local_rank < (place.local_size or place.world_size)
    assert 0 < place.master_port < 65536


@given(st.integers(1, 5), st.integers(1, 8), st.data())
def test_what_is_exported_resolves_to_the_same_place(nodes: int, size: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, nodes * size - 1))
    environ = ompi(rank, nodes * size, rank % size, size, **BATCH)
    first = export(environ=environ)
    assert (first.node_rank, first.nodes) == (rank // size, nodes)
    again = resolve(environ)
    assert torch_environ(again) == torch_environ(first)
    assert torch_environ(resolve(torch_environ(first))) == torch_environ(first)


def test_export_never_replaces_what_a_person_has_set() -> None:
    environ = ompi(2, 4, 0, 2, MASTER_ADDR="mine", MASTER_PORT="4711", NCCL_SOCKET_IFNAME="ib0", **BATCH)
    before = dict(environ)
    export(environ=environ)
    assert before.items() <= environ.items()
    assert environ["RANK"] == "2"
    assert environ["LOCAL_WORLD_SIZE"] == "2"
