"""Pieces of logs as launchers and frameworks write them, for tests that put logs together. Written for these tests."""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

LIB = "/opt/conda/lib/python3.10/site-packages"


def traceback(exception: str, *, prefix: str = "", line: int = 41, library: bool = True) -> str:
    """A traceback whose innermost frame of the user's is ``/code/train.py:<line>``."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/code/train.py", line 90, in <module>',
        "    main()",
        f'  File "/code/train.py", line {line}, in main',
        "    step(batch)",
    ]
    if library:
        lines += [f'  File "{LIB}/torch/nn/modules/module.py", line 1511, in _call_impl', "    return forward_call(x)"]
    return "".join(f"{prefix}{each}\n" for each in [*lines, *exception.splitlines()])


def steps(count: int, *, begin: int = 0, stamp: str = "") -> str:
    return "".join(f"{stamp}step {begin + each} loss {2.0 - each / 1000:.4f}\n" for each in range(count))


def row(
    rank: int, code: int, *, local: int | None = None, reason: str = "", host: str = "gpu0", time: str = "10:00:05"
) -> str:
    local = rank if local is None else local
    reason = reason or "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    return (
        f"[{local}]:\n  time      : 2024-02-01_{time}\n  host      : {host}\n  rank      : {rank} (local_rank: {local})\n"
        f"  exitcode  : {code} (pid: {4000 + rank})\n  error_file: <N/A>\n  traceback : {reason}\n"
    )


def child_failed(root: str, *others: str) -> str:
    """torchrun's own end: its traceback, then the table."""
    rule = "=" * 60
    return (
        "Traceback (most recent call last):\n"
        '  File "/opt/conda/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n'
        f'  File "{LIB}/torch/distributed/launcher/api.py", line 268, in launch_agent\n    raise ChildFailedError(\n'
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        f"{rule}\ntrain.py FAILED\n{'-' * 60}\nFailures:\n{''.join(others) or '  <NO_OTHER_FAILURES>' + chr(10)}"
        f"{'-' * 60}\nRoot Cause (first observed failure):\n{root}{rule}\n"
    )


CLOSED = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.5]:41712"


def watchdog(rank: int, *, seq: int = 811, enqueued: int = 815, second: int = 12) -> str:
    return (
        f"[rank{rank}]:[E201 10:10:{second:02d}.715298746 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=600000) ran for 600061 milliseconds before timing out.\n"
        f"[rank{rank}]:[E201 10:10:{second:02d}.815298746 ProcessGroupNCCL.cpp:1664] [PG 0 Rank {rank}] Exception "
        f"(either an error or timeout) detected by watchdog at work: {seq}, last enqueued NCCL work: {enqueued}, "
        f"last completed NCCL work: {seq - 1}.\n"
    )
