"""Training scripts in which one rank breaks on purpose, and what must be reported of each."""

from __future__ import annotations

from dataclasses import dataclass

# All ranks meet over plain sockets, so that nothing depends on who starts when; the broken one breaks only then.
MEET = """
import os, select, signal, socket, sys, time
rank, world, broken = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(sys.argv[1])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))

def meet():
    if rank == 0:
        with socket.create_server(address) as server:
            peers = [server.accept()[0] for _ in range(world - 1)]
        for each in peers:
            each.sendall(b"a")
        return peers
    while True:
        try:
            peer = socket.create_connection(address)
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    assert peer.recv(1) == b"a"
    return [peer]
"""

# The others wait for a word that never comes: who breaks takes their connections along.
ALONE = (
    MEET
    + """
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
    peers = meet()
    if rank == broken:
        fail()
    hear(peers)

main()
"""
)

# Lock step: nobody enters the next step before all have ended the last. One rank stops between two steps for ever.
STEPS = (
    MEET
    + """
def hear(peer):
    if not peer.recv(1):  # the others are being ended too
        raise ConnectionError("Connection closed by peer [127.0.0.1]:1")

def main():
    peers = meet()
    for step in range(1, 100):
        if rank == broken and step == 4:
            open(sys.argv[2], "w").write("hangs")
            signal.pause()
        print(f"step {step} begins", flush=True)
        if rank == 0:
            for each in peers:
                hear(each)
            for each in peers:
                each.sendall(b"b")
        else:
            peers[0].sendall(b"c")
            hear(peers[0])

main()
"""
)


@dataclass(frozen=True)
class Way:
    """A way for a rank to break: Python that it runs, the cause to be named, the job's further requests."""

    how: str
    cause: str
    silence: float | None = None
    shm: str = ""


STAGE = (
    "import shutil\n"
    "    with open('data', 'wb') as data: data.truncate(64 << 20)\n"
    "    shutil.copyfile('data', '/dev/shm/data')"
)
TOUCH = (
    "from multiprocessing.shared_memory import SharedMemory\n"
    "    block = SharedMemory(create=True, size=64 << 20)\n"
    "    block.buf[:] = bytes(len(block.buf))"
)

WAYS = {
    "raise": Way('raise ValueError(f"shard {rank} is broken")', "python-exception"),
    "hang": Way("[signal.pause() for _ in iter(int, 1)]", "rank-did-not-join", silence=2),
    "exit": Way("os._exit(3)", "exit-without-reason"),
    "SIGKILL": Way("os.kill(os.getpid(), signal.SIGKILL)", "signal-9-likely-out-of-memory"),
    "SIGSEGV": Way("os.kill(os.getpid(), signal.SIGSEGV)", "segmentation-fault"),
    "abort": Way("os.abort()", "aborted"),
    "port": Way(
        "taken = socket.create_server((address[0], 0)); socket.create_server(taken.getsockname())", "port-in-use"
    ),
    "shared memory touched": Way(TOUCH, "shared-memory-exhausted", shm="8m"),
    "shared memory staged": Way(STAGE, "shared-memory-exhausted", shm="8m"),
}

# torch's own words: one node never reaches the process group, or a data loader's worker finds no shared memory.
NEVER_JOINS = (
    MEET
    + """
from datetime import timedelta
if rank != broken:
    import torch.distributed as dist
peers = meet()
if rank == broken:
    signal.pause()
[each.close() for each in peers]
dist.init_process_group("gloo", timeout=timedelta(seconds=10))
"""
)
LOADER = """
import os, sys
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

class Large(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.ones(16 << 20 if rank == broken else 1)

dist.init_process_group("gloo")
rank, broken = dist.get_rank(), int(sys.argv[1])
dist.barrier()
for batch in DataLoader(Large(), batch_size=1, num_workers=1):
    total = batch.sum()
dist.all_reduce(total)
"""
