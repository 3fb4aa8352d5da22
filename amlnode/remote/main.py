"""DeepSpeed's own launcher over a job's nodes: `python -m amlnode deepspeed --nproc 8 --autotuning tune train.py …`.

Runs on every node, once. The first one writes the hostfile out of the job's environment and runs ``deepspeed``; where
that wants ssh and pdsh it finds stand-ins on PATH, which reach the other nodes through connections that those have
opened. No ssh server, no key, no pdsh is needed. All other options (--autotuning, the script) are DeepSpeed's.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from amlnode.gpus import count_gpus
from amlnode.launch import places
from amlnode.preflight.meeting import listening
from amlnode.processes import adopt_orphans
from amlnode.rank import NodeError, RankInfo, resolve
from amlnode.remote.agent import GRACE, CommandAgent, environ, wipe
from amlnode.remote.command_lines import configured, results_folder, split, tuned
from amlnode.remote.hub import SOCKET, Hub

PORT = 2
"""The hub's port above MASTER_PORT; preflight has the one between."""
WITHOUT_MLFLOW = """\
import os, sys
if os.path.basename(sys.argv[0]) == "deepspeed":
    raise ImportError("the tuner does without MLflow")
sys.path[:] = [one for one in sys.path if one != os.path.dirname(__file__)]
del sys.modules["mlflow"]
import mlflow
"""
"""The tuner insists on an MLflow server for its runs, if MLflow is installed. Its ranks get the real server."""
TRIALS = 64
"""Ports that are free in a row: the tuner takes one more for each trial."""


def parser() -> argparse.ArgumentParser:
    """The command line, as far as it is not DeepSpeed's."""
    options = argparse.ArgumentParser(
        prog="python -m amlnode deepspeed",
        usage="%(prog)s [--nproc N] [--wait S] [--port P] DEEPSPEED'S OWN OPTIONS script …",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    options.add_argument("--nproc", type=int, help="ranks per node; unset: one per GPU, or 1")
    options.add_argument("--wait", type=float, default=300.0, help="seconds that nodes may come apart (300)")
    options.add_argument("--port", type=int, help="where the first node listens; unset: MASTER_PORT + 2")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run this node's part; DeepSpeed's exit code on the first, 0 on the others.

    Raises:
        NodeError: This is no launch per node, DeepSpeed or what it needs is missing, or nodes do not come.
    """
    own, rest = split(list(sys.argv[1:] if arguments is None else arguments))
    options = parser().parse_args(own)
    nproc = options.nproc if options.nproc is not None else count_gpus() or 1
    node = resolve()
    places(node, nproc)  # refuses no ranks, and several processes on a node
    port = options.port or node.master_port + PORT
    job = os.environ.get("AZUREML_RUN_ID") or "job"
    if node.rank > 0:
        return CommandAgent(node.master_addr, port, job, node.rank).serve(options.wait)
    return First(node, nproc, rest).run(port, job, options.wait)


class First:
    """The first node.

    Args:
        node: Its place.
        nproc: Ranks per node.
        words: DeepSpeed's command line.
    """

    def __init__(self, node: RankInfo, nproc: int, words: list[str]) -> None:
        self.node, self.nproc, self.words = node, nproc, words
        self.names = [f"node-{number}" for number in range(node.world_size)]
        self.child: subprocess.Popen[bytes] | None = None
        self.leaving = 0

    def run(self, port: int, job: str, wait: float) -> int:
        """Everything from the hostfile to the end of the last node."""
        self._check()
        adopt_orphans()
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        folder = Path(tempfile.mkdtemp(prefix="amlnode-"))
        try:
            with listening(self.node.master_addr, port) as server:
                hub = Hub(server, folder / "socket", job, self.names)
                words = [sys.executable, "-m", "amlnode.remote.agent", self.node.master_addr, str(port), job]
                agent = subprocess.Popen([*words, self.node.master_addr], env={**os.environ, "PYTHONPATH": _here()})
                try:
                    code = self._together(hub, folder, wait)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    wipe()
                    agent.wait()
            return code
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            shutil.rmtree(folder, ignore_errors=True)

    def _together(self, hub: Hub, folder: Path, wait: float) -> int:
        missing = hub.missing(wait)
        if missing:
            raise NodeError(
                f"Not here after {wait:g} s: {', '.join(missing)}",
                "All nodes come together before DeepSpeed starts its ranks on them",
                "See their logs; --wait gives them more time.",
            )
        code = self._launch(folder)
        hub.end()
        return code

    def _check(self) -> None:
        if shutil.which("deepspeed") is None:
            raise NodeError(
                "There is no `deepspeed` on PATH",
                "It is DeepSpeed's own launcher that runs here",
                "Use an image with DeepSpeed, or install it: pip install deepspeed.",
            )
        if self._tunes and importlib.util.find_spec("tabulate") is None:
            raise NodeError(
                "There is no package `tabulate`",
                "DeepSpeed's tuner needs it beside DeepSpeed",
                "Put it into the image, or in front of the command: pip install deepspeed[autotuning] && …",
            )

    def _launch(self, folder: Path) -> int:
        hosts, programs = folder / "hosts", folder / "bin"
        hosts.write_text("".join(f"{name} slots={self.nproc}\n" for name in self.names))
        programs.mkdir()
        (folder / "modules").mkdir()
        (folder / "modules" / "mlflow.py").write_text(WITHOUT_MLFLOW)
        for program in ("ssh", "pdsh"):
            line = f'exec {shlex.quote(sys.executable)} -m amlnode.remote.client {program} "$@"\n'
            (programs / program).write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(_here())}\nexport PYTHONPATH\n{line}")
            (programs / program).chmod(0o700)
        variables = {
            **environ(),
            "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(folder / "modules"), os.environ.get("PYTHONPATH")])),
            SOCKET: str(folder / "socket"),
            "AMLNODE_FOLDER": str(Path.cwd()),
        }
        ours = ["deepspeed", "--hostfile", str(hosts)]
        if "--master_port" not in self.words:
            ours += ["--master_port", str(ports(TRIALS))]
        if not self._tunes:
            return self._start([*ours, *self.words], variables)
        tuning, script = tuned(self.words)
        code = self._start([*ours, "--autotuning", "tune", *script], variables)
        if code or self.leaving:
            return code
        best = self._judge()
        if best is None:
            return 1
        # DeepSpeed's own way (--autotuning run) starts the last trial's command again, which ends with its profile.
        return self._start([*ours, *configured(script, best)], variables) if tuning == "run" else 0

    def _start(self, command: list[str], variables: dict[str, str]) -> int:
        print(
            f"amlnode deepspeed: {len(self.names)} nodes, {self.nproc} ranks on each: {shlex.join(command)}", flush=True
        )
        self.child = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, start_new_session=True)
        code = self.child.wait()
        return 128 - code if code < 0 else code

    @property
    def _tunes(self) -> bool:
        return any(word.split("=")[0] == "--autotuning" for word in self.words)

    def _judge(self) -> dict[str, Any] | None:
        """The tuner ends well when it found nothing too; what it found must be where Azure ML keeps it."""
        results = results_folder(self.words)
        best = results / "ds_config_optimal.json"
        if not best.is_file():
            errors = sorted(results.glob("*/stderr.log"), key=lambda path: path.stat().st_mtime)
            last = errors[0].read_text(errors="replace").splitlines()[-5:] if errors else []
            print("\n".join([f"amlnode deepspeed: no trial gave a result; see {results}. The first:", *last]))
            return None
        kept = Path("outputs")
        if kept.resolve() not in results.resolve().parents:
            shutil.copytree(results, kept / results.name, dirs_exist_ok=True)
        found: dict[str, Any] = json.loads(best.read_text())
        print(f"amlnode deepspeed: the best configuration: {json.dumps(found)}", flush=True)
        return found

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.leaving = number
        self._end()

    def _end(self) -> None:
        if self.child is None:
            raise SystemExit(128 + self.leaving)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGTERM)
        signal.signal(signal.SIGALRM, lambda *_: self._kill())
        signal.setitimer(signal.ITIMER_REAL, GRACE)

    def _kill(self) -> None:
        if self.child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)


def _here() -> str:
    """PYTHONPATH by which another process finds this package."""
    return os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))


def ports(count: int) -> int:
    """The first of so many ports in a row that are free now."""
    while True:
        first = random.SystemRandom().randrange(20_000, 32_000 - count)
        with contextlib.suppress(OSError), contextlib.ExitStack() as probes:
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind(("", port))
            return first
