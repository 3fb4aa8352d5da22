"""``node_facts.py PORTS HOST:PORT``: what one node of an allocation is, as a line of JSON.

Stands alone (standard library, no package of ours): srun starts it once per node with ``python -I -S``.
"""

import contextlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys


def main(ports: int, endpoint: str) -> None:
    """Prints the line.

    Args:
        ports: How many free ports it names.
        endpoint: Where the sandbox listens; empty for nowhere.
    """
    beside = [sys.executable, "-I", "-S", str(pathlib.Path(__file__).with_name("namespace.py"))]
    facts = {
        "node": os.environ["SLURMD_NODENAME"],
        "address": _address(os.environ.get("SLURM_LAUNCH_NODE_IPADDR", "")),
        "cores": int(os.environ.get("SLURM_CPUS_ON_NODE") or len(os.sched_getaffinity(0))),
        "gpus": _gpus(),
        "machine": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "ports": _free(ports),
        "mounts": subprocess.run(beside, capture_output=True, check=False).returncode == 0,
        "tracked": _is_reached(endpoint),
    }
    sys.stdout.write(json.dumps(facts) + "\n")


def _free(count: int) -> "list[int]":
    """Ports that are free now, below the range that the kernel gives to outgoing connections."""
    found: set[int] = set()
    draw = random.SystemRandom()
    while len(found) < count:
        port = draw.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("", port))
            found.add(port)
    return list(found)


def _address(towards: str) -> str:
    """This node's address on the network of the machine that started the job: the others reach it there too."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((towards or "192.0.2.1", 9))  # nothing is sent
        return str(probe.getsockname()[0])


def _gpus() -> "list[int]":
    """Numbers of the GPUs that Slurm left to this job, else of all."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [int(each) for each in given.split(",") if each.isdigit()]
    names = (path.name.removeprefix("nvidia") for path in pathlib.Path("/dev").glob("nvidia*"))
    return sorted(int(name) for name in names if name.isdigit())


def _is_reached(endpoint: str) -> bool:
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except (OSError, ValueError):
        return False
    return True


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
