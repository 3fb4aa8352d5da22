"""``python -m amlnode bandwidth``: all-reduce over all ranks of the job, judged; a slow node is named."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from amlnode.bandwidth.sweep import PAIR_BYTES, Ring, join
from amlnode.bandwidth.verdict import Expectation, judge, sizes
from amlnode.errors import NodeError
from amlnode.preflight.checks import BAD, publish, size
from amlnode.preflight.main import REHEARSAL
from amlnode.preflight.plan import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amlnode.bandwidth.verdict import Measurement

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
    return Expectation(
        least=least,
        explicit=given is not None,
        infiniband=bool(read(None, environ).infiniband),
        rehearsal=bool(environ.get(REHEARSAL)),
    )


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
