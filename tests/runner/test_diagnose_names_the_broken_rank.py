"""A rank is broken on purpose in a real rehearsal; its logs name it. Seeds move it around."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from runner_lab import LIMIT

from amlstack.diagnose import diagnose

if TYPE_CHECKING:
    from runner_lab import Lab

NODES, PROCESSES = 2, 2
RANKS = NODES * PROCESSES

# Every rank connects to rank 0 and waits for a word that never comes: who breaks takes the others' connections along.
TRAIN = """
import os, select, signal, socket, sys
rank, world, broken = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(sys.argv[1])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))

def hear(sockets):
    # All have met, however late one was started: only a rank that hangs is silent now.
    ready, _, _ = select.select(sockets, [], [], {silence})
    if not ready:
        raise RuntimeError("Timed out waiting 2000ms for recv operation to complete")
    if not ready[0].recv(1):
        raise ConnectionError("Connection closed by peer [127.0.0.1]:1")

def fail():
    {how}

def main():
    print("rank", rank, "of", world, flush=True)
    if rank == 0:
        with socket.create_server(address) as server:
            peers = [server.accept()[0] for _ in range(world - 1)]
            for each in peers:
                each.sendall(b"a")
            if rank == broken:
                fail()
            hear(peers)
    else:
        while True:
            try:
                peer = socket.create_connection(address)
                break
            except ConnectionRefusedError:
                continue
        assert peer.recv(1) == b"a"
        if rank == broken:
            fail()
        hear([peer])

main()
"""
WAYS = {
    "hang": ("[signal.pause() for _ in iter(int, 1)]", "rank-did-not-join"),
    "raise": ('raise ValueError(f"shard {rank} is broken")', "python-exception"),
    "exit": ("os._exit(3)", "exit-without-reason"),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", "signal-9-likely-out-of-memory"),
    "SIGSEGV": ("os.kill(os.getpid(), signal.SIGSEGV)", "segmentation-fault"),
    "SIGBUS": ("os.kill(os.getpid(), signal.SIGBUS)", "shared-memory-exhausted"),
    "port": (
        "taken = socket.create_server((address[0], 0)); socket.create_server(taken.getsockname())",
        "port-in-use",
    ),
    "shm": (
        'raise RuntimeError("unable to open shared memory object </torch_1_2> in read-write mode")',
        "shared-memory-exhausted",
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("way", WAYS)
def test_the_rank_that_was_broken_is_named(lab: Lab, way: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Who is left ends by itself, but for a rank that hangs: for that one the others must not be cut short.
    monkeypatch.setenv("AMLSTACK_SANDBOX_SETTLE", "10" if way == "hang" else str(LIMIT))
    broken = random.Random(f"{way}{seed}").randrange(RANKS)
    how, cause = WAYS[way]
    code = lab.code({"train.py": TRAIN.format(how=how, silence=2 if way == "hang" else None)})
    job = lab.run(lab.job(f"python train.py {broken}", nodes=NODES, processes=PROCESSES, codeId=code))
    assert job.status == "Failed"
    verdict = diagnose([lab.folder("job")])
    assert (verdict.found, verdict.rank, verdict.cause) == (True, broken, cause)
    assert verdict.node == str(broken // PROCESSES)
    assert broken not in [victim.rank for victim in verdict.victims]
    if way == "raise":
        assert verdict.file == f"user_logs/std_log_process_{broken:02d}.txt"
        assert verdict.text == f"ValueError: shard {broken} is broken"
        assert verdict.source is not None
        assert (verdict.source.function, verdict.source.file.rsplit("/", 1)[-1]) == ("fail", "train.py")
    # The logs alone, as they are downloaded, name it too where a log says anything.
    alone = diagnose([lab.folder("job") / "user_logs"])
    assert alone.rank == broken
