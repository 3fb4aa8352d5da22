"""``python -m amlnode preflight``: a verdict per node; a bad one stops the job before the expensive part."""

from __future__ import annotations

import argparse
import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from amlnode.gpus import ROOT
from amlnode.preflight import checks as checks_module
from amlnode.preflight.checks import (
    BAD,
    GOOD,
    UNJUDGED,
    Check,
    PlannedNode,
    disk,
    gpus,
    infiniband,
    memlock,
    publish,
    read_plan,
    shm,
)
from amlnode.preflight.meeting import meet
from amlnode.rank import resolve

REHEARSAL = "AMLSTACK_SANDBOX_JOB"
"""Set on every process of a rehearsal, whose machine is not the planned one."""
JUDGED = "AMLSTACK_SANDBOX_JUDGED"
"""Set by a rehearsal whose nodes are machines with GPUs of their own: they are held against the plan."""

OF_THE_NODE = ("gpus", "infiniband", "memlock", "shm", "nccl")
"""Checks that a rehearsal cannot fail: they judge a machine that it does not have."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(prog="python -m amlnode preflight", description=__doc__)
    options.add_argument(
        "--plan", help='what a node should have, JSON or a file: {"gpus": 8, …}; unset: $AMLSTACK_PLAN'
    )
    options.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options.add_argument("--wait", type=float, default=300.0, help="seconds that ranks may come apart (300)")
    options.add_argument("--max-skew", type=float, default=1.0, help="seconds that clocks may differ (1)")
    options.add_argument("--port", type=int, help="where rank 0 listens; unset: MASTER_PORT + 1")
    options.add_argument("--output", default="outputs/preflight.json", help="where rank 0 writes the result")
    return options


def main(arguments: Sequence[str] | None = None, *, environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> int:
    """Judge this node, meet the others, print the verdict; 1 when any node is bad or missing, on all of them.

    Raises:
        NodeError: The surroundings contradict themselves, or the others cannot be met.
    """
    options = parser().parse_args(arguments)
    info = resolve(environ)
    plan = read_plan(options.plan, environ)
    report: dict[str, Any] | None = None
    if info.local_rank == 0:
        node = info.rank if info.node_rank is None else info.node_rank
        checks = [asdict(check) for check in judge(plan, environ, root)]
        report = {"node": node, "host": socket.gethostname(), "rank": info.rank, "checks": checks}
    port = options.port or (info.master_port + 1 if info.master_port < 65535 else info.master_port - 1)
    if report is not None and info.rank != 0:
        # Printed before the meeting: the first rank that ends with a bad verdict may take this one down with it.
        print(json.dumps(report) if options.json else "\n".join(lines(report)), flush=True)
    results: list[dict[str, Any]] = []

    def announce(met: dict[str, Any]) -> None:
        results.append(verdict(met, info.world_size, options.max_skew))
        publish(results[0], table(results[0], plan), options)

    met = meet(info, report, job=environ.get("AZUREML_RUN_ID", ""), port=port, wait=options.wait, announce=announce)
    result = results[0] if results else verdict(met, info.world_size, options.max_skew)
    return 0 if result["go"] else 1


def judge(plan: PlannedNode, environ: Mapping[str, str], root: Path = ROOT) -> list[Check]:
    """Every check of this node alone."""
    checks = [
        gpus(plan, root),
        infiniband(plan, root),
        memlock(plan, root),
        shm(plan, root),
        checks_module.nccl(plan, environ, root),
        disk(plan, Path.cwd()),
    ]
    if is_rehearsal(environ):
        return [_rehearsed(check) for check in checks]
    return checks


def is_rehearsal(environ: Mapping[str, str]) -> bool:
    """True where this machine only plays the planned nodes."""
    return bool(environ.get(REHEARSAL)) and not environ.get(JUDGED)


def _rehearsed(check: Check) -> Check:
    if check.name not in OF_THE_NODE or check.state in (GOOD, UNJUDGED):
        return check
    return replace(check, state=UNJUDGED, seen=f"a rehearsal, not the planned node: {check.seen}", remedy="")


def verdict(met: Mapping[str, Any], world: int, most: float) -> dict[str, Any]:
    """The result of all nodes.

    Args:
        met: The result of the meeting.
        world: Number of ranks.
        most: Seconds that clocks may differ.
    """
    nodes = []
    for report in met["reports"]:
        checks = [Check(**check) for check in report["checks"]]
        alone = len(met["reports"]) == 1
        checks.append(_clock(None if alone else report["skew"], report["skew_error"], most))
        nodes.append(
            {
                "node": report["node"],
                "host": report["host"],
                "rank": report["rank"],
                "go": not any(check.state == BAD for check in checks),
                "checks": [asdict(check) for check in checks],
            }
        )
    missing = list(met["missing"])
    unjudged = sorted({check["name"] for node in nodes for check in node["checks"] if check["state"] == UNJUDGED})
    return {
        "go": not missing and bool(nodes) and all(node["go"] for node in nodes),
        "world_size": world,
        "missing": missing,
        "not_judged": unjudged,
        "nodes": nodes,
    }


def _clock(skew: float | None, error: float | None, most: float) -> Check:
    if skew is None:
        return Check("clock", UNJUDGED, "one node has no other clock to differ from")
    seen = f"{round(skew * 1000, 1) + 0:+.1f} ms from node 0, give or take {(error or 0) * 1000:.1f} ms"
    if abs(skew) - (error or 0) > most:
        return Check("clock", BAD, seen, f"More than {most:g} s: mend the node's time service, or take another node.")
    return Check("clock", GOOD, seen)


def lines(node: Mapping[str, Any]) -> list[str]:
    """A node's checks for a reader; its verdict where there is one already."""
    state = {True: ": GO", False: ": STOP", None: ""}[node.get("go")]
    rows = [f"preflight node {node['node']} ({node['host']}){state}"]
    for check in node["checks"]:
        rows.append(f"  {check['state']:<10}  {check['name']:<10}  {check['seen']}")
        if check["remedy"]:
            rows.append(f"  {'':<10}  {'':<10}  → {check['remedy']}")
    return rows


def table(result: Mapping[str, Any], plan: PlannedNode) -> list[str]:
    """The verdict of all nodes for a reader."""
    rows = [line for node in result["nodes"] for line in lines(node)]
    if result["missing"]:
        some = ", ".join(map(str, result["missing"][:16]))
        rows.append(f"  missing: ranks {some} of {result['world_size']} never reported; see their nodes' logs")
    unjudged = f"; not judged: {', '.join(result['not_judged'])}" if result["not_judged"] else ""
    of = f" for {plan.size}" if plan.size else ""
    rows.append(f"preflight{of}: {'GO' if result['go'] else 'STOP: the job ends here'}{unjudged}")
    return rows
