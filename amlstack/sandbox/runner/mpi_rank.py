"""One rank as mpirun starts it: ``mpi_rank.py PLAN.json`` goes to its node's folder and runs the job's command there.

Stands alone (standard library, no package of ours). It reports the rank's start and end to the node's agent, keeps its
output in the rank's own log, and ends as the rank did, so that mpirun sees the same code or signal.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys


def main(plan: str) -> int:
    """Runs the rank to its end; its exit code."""
    # Handled, not ignored: an ignored signal would stay so in the rank, a handled one goes back to its default there.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    with open(plan) as file:  # noqa: PTH123 - no pathlib: it starts twice as fast
        node = json.load(file)
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    place = next(one for one in node["started"] if one["rank"] == rank)
    env = {name: value for name, value in os.environ.items() if name not in node["private"]}
    agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    agent.connect(node["rsh"])
    with open(place["log"], "ab") as log:  # noqa: PTH123
        child = subprocess.Popen(place["argv"], env=env, cwd=place["cwd"], stdout=log, stderr=log)
    agent.sendall(json.dumps({"rank": rank, "pid": child.pid}).encode() + b"\n")
    handle = os.pidfd_open(child.pid)
    if handle not in select.select([handle, agent.fileno()], [], [])[0]:
        child.kill()  # the node is gone
    code = child.wait()
    with contextlib.suppress(OSError):
        agent.sendall(json.dumps({"code": code}).encode() + b"\n")
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
