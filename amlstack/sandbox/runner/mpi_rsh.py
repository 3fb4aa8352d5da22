"""The program in place of ``rsh`` under mpirun: ``mpi_rsh.py [options] NODE COMMAND…`` runs a command on another node.

Stands alone (standard library, no package of ours): started once per node with ``python -I -S``. The agents listen
on the sockets ``<folder>/<number>/rsh`` of the folder in AMLSTACK_SANDBOX_NODES.
"""

import json
import os
import socket
import sys


def main(words: list[str]) -> int:
    """Runs the command; its exit code, or 255 as ssh says when the node is not there."""
    while words and words[0].startswith("-"):
        words = words[1:]
    host, command = words[0], " ".join(words[1:])
    if remote := os.environ.pop("AMLSTACK_SANDBOX_REMOTE", ""):  # another machine: its agent's socket is there
        start = json.loads(remote)
        there = ("--nodes=1", "--ntasks=1", "-w", start["hosts"][int(host.rpartition("-")[2])])
        program = (sys.executable, "-I", "-S", __file__, host, command)
        os.execv(start["words"][0], [*start["words"], *there, *program])  # noqa: S606 - words are handed on as they are
    path = os.path.join(os.environ["AMLSTACK_SANDBOX_NODES"], host.rpartition("-")[2], "rsh")  # noqa: PTH118 - no pathlib: it starts twice as fast
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
        try:
            agent.connect(path)
        except OSError as error:
            sys.stderr.write(f"connect to host {host}: {error.strerror}\n")
            return 255
        socket.send_fds(agent, [json.dumps({"run": command}).encode() + b"\n"], [1, 2])
        code = agent.recv(64)
    return int(code or b"255") & 0xFF


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
