"""``python -m amlnode bandwidth``: all-reduce over all ranks of the job, judged; a slow node is named."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlnode.bandwidth import verdict
from amlnode.bandwidth.verdict import Expectation, Measurement, Network, judge, measurement, network, sizes
from amlnode.environment import export
from amlnode.preflight.checks import BAD, publish, read_plan, size
from amlnode.preflight.main import is_rehearsal
from amlnode.rank import NodeError, RankInfo

if TYPE_CHECKING:
    Reduce = Callable[[Any, Any], object]

PAIR_BYTES = {"nccl": 256 << 20, "gloo": 8 << 20}
REPEATS = 3
"""Of a pair the quickest of so many counts: a neighbour's noise makes slower, nothing makes quicker."""


@dataclass
class Ring:
    """The ranks of the job, joined.

    Attributes:
        info: This rank's place.
        torch: The module.
        device: Where messages lie.
        backend: nccl or gloo.
        nodes: Ranks by node.
        node: This rank's node.
        log: NCCL's own log of this rank; None where the job has its own settings for that.
        reduce: The all-reduce of a tensor in a group.
    """

    info: RankInfo
    torch: Any
    device: Any
    backend: str
    nodes: dict[int, list[int]]
    node: int
    log: Path | None
    reduce: Reduce

    def sweep(self, sizes: Sequence[int]) -> list[Measurement]:
        """One row per size over all ranks."""
        return [
            measurement(size, self._slowest(self._timed(size, None, rounds(size, self.backend))), self.ranks)
            for size in sizes
        ]

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.info.world_size

    def check(self) -> None:
        """All ranks add up.

        Raises:
            NodeError: The sum is wrong: a GPU or a link corrupts data.
        """
        ones = self.torch.ones(1024, device=self.device)
        self.reduce(ones, None)
        if not bool((ones == self.ranks).all()):
            raise NodeError(
                f"Ones from {self.ranks} ranks add up to {ones.min().item():g} to {ones.max().item():g}",
                "An all-reduce of ones is the number of ranks",
                "A GPU or a link corrupts data: run on other nodes, report these.",
            )

    def pairs(self, size: int) -> verdict.SlowNodes:
        """Measure nodes in pairs and name who is slow; every rank calls it and learns the same."""
        ids = sorted(self.nodes)
        alone: dict[int, float] = {}
        if len(ids) == 2 and min(len(ranks) for ranks in self.nodes.values()) > 1:
            alone = self._groups([self.nodes[one] for one in ids], ids, size)
        measured: dict[tuple[int, int], float] = {}
        for pairs in verdict.rounds(ids) if len(ids) > 1 else ():
            self._pairs(pairs, size, measured)
        for pairs in verdict.confirm(measured):
            self._pairs(pairs, size, measured)
        return verdict.name(measured, alone)

    def _pairs(self, pairs: list[tuple[int, int]], size: int, measured: dict[tuple[int, int], float]) -> None:
        groups = [[rank for node in pair for rank in self.nodes[node]] for pair in pairs]
        for pair, busbw in self._groups(groups, pairs, size).items():
            measured[pair] = max(measured.get(pair, 0.0), busbw)

    def _groups(self, groups: list[list[int]], names: Sequence[Any], size: int) -> dict[Any, float]:
        """Busbw of groups that share no rank, measured at the same time."""
        dist = self.torch.distributed
        made = [dist.new_group(sorted(ranks)) for ranks in groups]
        mine = next((index for index, ranks in enumerate(groups) if self.info.rank in ranks), None)
        seconds = 0.0
        if mine is not None:
            seconds = min(self._timed(size, made[mine], 2) for _ in range(REPEATS))
        measured: list[Any] = [None] * self.ranks
        dist.all_gather_object(measured, (mine, seconds))
        found = {}
        for index, ranks in enumerate(groups):
            slowest = max(passed for group, passed in measured if group == index)
            found[names[index]] = measurement(size, slowest, len(ranks)).busbw
            if index == mine:
                dist.destroy_process_group(made[index])
        return found

    def _timed(self, size: int, group: Any, times: int) -> float:
        """Seconds of one all-reduce, the mean of several, after a warm-up."""
        message = self.torch.zeros(size // 4, dtype=self.torch.float32, device=self.device)
        for _ in range(2):
            self.reduce(message, group)
        self._wait()
        self.torch.distributed.barrier(group=group)
        self._wait()
        began = time.perf_counter()
        for _ in range(times):
            self.reduce(message, group)
        self._wait()
        return (time.perf_counter() - began) / times

    def _wait(self) -> None:
        if self.backend == "nccl":
            self.torch.cuda.synchronize()

    def _slowest(self, seconds: float) -> float:
        slowest = self.torch.tensor([seconds], dtype=self.torch.float64, device=self.device)
        self.torch.distributed.all_reduce(slowest, op=self.torch.distributed.ReduceOp.MAX)
        return float(slowest.item())

    def network(self) -> Network:
        """The network in NCCL's log of this rank."""
        if self.log is None or not self.log.is_file():
            return Network()
        return network(self.log.read_text("utf-8", "replace").splitlines())

    def version(self) -> str:
        """Torch's version, and NCCL's where it is used."""
        text = f"torch {self.torch.__version__}"
        if self.backend == "nccl":
            text += f", NCCL {'.'.join(map(str, self.torch.cuda.nccl.version()))}, {self.torch.cuda.get_device_name()}"
        return text


def rounds(size: int, backend: str) -> int:
    """All-reduces that are averaged: fewer of large messages."""
    return max(3, min(20, ((16 << 30) if backend == "nccl" else (64 << 20)) // size))


def chosen(info: RankInfo, gpus: int, wanted: str | None) -> str:
    """NCCL where there are GPUs, else gloo; the same on every rank, or an error: half a job on GPUs hangs.

    Args:
        info: This rank's place.
        gpus: GPUs that this rank sees.
        wanted: The backend of the command line; None: as there are GPUs.

    Raises:
        NodeError: There are fewer GPUs than ranks on this node.
    """
    backend = wanted or ("nccl" if gpus else "gloo")
    ranks = info.local_size if info.local_size is not None else info.local_rank + 1
    if backend == "nccl" and gpus < ranks:
        raise NodeError(
            f"{ranks} or more ranks are on this node, and {gpus} GPUs are seen",
            "With NCCL every rank has a GPU of its own",
            "Start as many ranks per node as GPUs, or measure the CPUs with --backend gloo.",
        )
    return backend


def join(reduce: Reduce | None = None, backend: str | None = None) -> Ring:
    """Join the job's ranks, as their launcher has placed them.

    Args:
        reduce: Another all-reduce than torch's, for trying this out.
        backend: nccl or gloo; None: NCCL where there are GPUs.

    Raises:
        NodeError: There is no torch, or the launcher's variables contradict each other.
    """
    try:
        import torch  # noqa: PLC0415 - the job's own, seconds to import
        import torch.distributed as dist  # noqa: PLC0415
    except ImportError as error:
        raise NodeError(
            f"torch cannot be imported ({error})",
            "Bandwidth is measured through the job's own torch",
            "Use a PyTorch image.",
        ) from None
    info = export()
    backend = chosen(info, torch.cuda.device_count() if torch.cuda.is_available() else 0, backend)
    cuda = backend == "nccl"
    log = None
    if cuda:
        torch.cuda.set_device(info.local_rank)
        if "NCCL_DEBUG" not in os.environ:
            log = Path(tempfile.mkdtemp(prefix="amlnode-")) / "nccl.log"
            os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET", NCCL_DEBUG_FILE=str(log))
    device = torch.device("cuda", info.local_rank) if cuda else torch.device("cpu")
    dist.init_process_group(backend)
    if info.rank != dist.get_rank() or info.world_size != dist.get_world_size():
        raise NodeError(
            f"torch gives rank {dist.get_rank()} of {dist.get_world_size()}, "
            f"the launcher {info.rank} of {info.world_size}",
            "Both are the same",
            "Look for RANK or WORLD_SIZE left over from an image.",
        )
    node_ranks: list[Any] = [None] * info.world_size
    dist.all_gather_object(node_ranks, info.node_rank)
    nodes: dict[int, list[int]] = {}
    for rank, node in enumerate(node_ranks):
        nodes.setdefault(0 if node is None else int(node), []).append(rank)

    def all_reduce(message: Any, group: Any) -> object:
        return dist.all_reduce(message, group=group)

    return Ring(info, torch, device, backend, nodes, info.node_rank or 0, log, reduce or all_reduce)


EXPECTED = "AMLSTACK_BUSBW_EXPECTED"
DEFAULT = {"nccl": "1M..1G", "gloo": "1M..16M"}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(prog="python -m amlnode bandwidth", description=__doc__)
    options.add_argument("--sizes", help="message sizes: 1M..1G doubles, 1M,64M lists (1M..1G; 1M..16M on CPUs)")
    options.add_argument("--expect", type=float, help=f"least busbw in GB/s; unset: ${EXPECTED}, for NCCL alone")
    options.add_argument("--backend", choices=("nccl", "gloo"), help="unset: NCCL where there are GPUs")
    options.add_argument(
        "--find-slow",
        choices=("auto", "always", "never"),
        default="auto",
        help="measure nodes in pairs: when the bandwidth is bad (auto), always or never",
    )
    options.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options.add_argument("--output", default="outputs/bandwidth.json", help="where rank 0 writes the result")
    return options


def main(arguments: Sequence[str] | None = None, *, environ: Mapping[str, str] = os.environ) -> int:
    """Measure, judge, name; 1 on every rank when the bandwidth is bad.

    Raises:
        NodeError: The command line or the surroundings are wrong, or the ranks do not add up.
    """
    options = parser().parse_args(arguments)
    asked = sizes(options.sizes) if options.sizes else None
    expected = expectation(options.expect, environ)
    ring = join(backend=options.backend)
    try:
        result = measure(ring, asked or sizes(DEFAULT[ring.backend]), expected, options.find_slow)
        if ring.info.rank == 0:
            publish(result, table(result), options)
        # No rank leaves before this: the first that ends with a bad verdict may take the others down with it.
        ring.torch.distributed.barrier()
    finally:
        ring.torch.distributed.destroy_process_group()
    return 1 if result["verdict"]["state"] == BAD else 0


def expectation(given: float | None, environ: Mapping[str, str]) -> Expectation:
    """The expected bandwidth: from the command line, else from the variable that the plan of the job has set.

    Raises:
        NodeError: The variable is no number.
    """
    least = given
    text = environ.get(EXPECTED, "")
    if given is None and text:
        try:
            least = float(text)
        except ValueError:
            raise NodeError(
                f"{EXPECTED} must be a number, got `{text}`", "It counts GB/s", "Correct it, or leave it out."
            ) from None
    if least is not None and not 0 < least < float("inf"):
        raise NodeError(f"The expected bandwidth must be above 0, got {least:g}", "It counts GB/s", "Correct it.")
    infiniband = bool(read_plan(None, environ).infiniband)
    return Expectation(least, given is not None, infiniband, is_rehearsal(environ))


def measure(ring: Ring, messages: Sequence[int], expected: Expectation, find_slow: str) -> dict[str, Any]:
    """The whole result, the same on every rank."""
    ring.check()
    rows: list[Measurement] = ring.sweep(messages)
    peak = max(one.busbw for one in rows)
    # Ranks of one node may have used no network at all: rank 0's counts for all.
    network: list[Any] = [ring.network()]
    ring.torch.distributed.broadcast_object_list(network, src=0)
    verdict = judge(
        peak, backend=ring.backend, nodes=len(ring.nodes), ranks=ring.ranks, seen=network[0], expected=expected
    )
    named = None
    if find_slow == "always" or (find_slow == "auto" and verdict.state == BAD):
        named = ring.pairs(min(PAIR_BYTES[ring.backend], messages[-1]))
    return {
        "world_size": ring.ranks,
        "nodes": len(ring.nodes),
        "backend": ring.backend,
        "version": ring.version(),
        "network": asdict(network[0]),
        "rows": [asdict(one) for one in rows],
        "busbw": peak,
        "expected": expected.least,
        "verdict": asdict(verdict),
        "slow": None if named is None else asdict(named),
    }


def table(result: Mapping[str, Any]) -> list[str]:
    """The result for a reader."""
    ranks, nodes, backend = result["world_size"], result["nodes"], result["backend"]
    took = result["network"]["name"]
    lines = [
        f"all-reduce over {ranks} ranks on {nodes} node{'' if nodes == 1 else 's'}: {backend}"
        + (f" over {took}" if took else "")
        + f" ({result['version']})",
        f"  {'message':>10}  {'time':>12}  {'algbw GB/s':>10}  {'busbw GB/s':>10}",
    ]
    for one in result["rows"]:
        time = f"{one['seconds'] * 1e6:.1f} µs"
        lines.append(f"  {size(one['size']):>10}  {time:>12}  {one['algbw']:>10.2f}  {one['busbw']:>10.2f}")
    lines.append(f"bandwidth {result['verdict']['state']}: {result['verdict']['text']}")
    if result["slow"]:
        lines.append(f"by pairs of nodes: {result['slow']['text']}")
    return lines
