"""Folders of logs as launchers leave them, with what is true of each. Written for these tests."""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
    rank: int, code: int, *, local: int | None = None, told: str = "", host: str = "gpu0", time: str = "10:00:05"
) -> str:
    local = rank if local is None else local
    told = told or "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    return (
        f"[{local}]:\n  time      : 2024-02-01_{time}\n  host      : {host}\n  rank      : {rank} (local_rank: {local})\n"
        f"  exitcode  : {code} (pid: {4000 + rank})\n  error_file: <N/A>\n  traceback : {told}\n"
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
SHUT = (
    "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on one "
    "of the ranks or an attempt to allreduce a tensor after one of the ranks finished execution."
)


def watchdog(rank: int, *, seq: int = 811, enqueued: int = 815, second: int = 12) -> str:
    return (
        f"[rank{rank}]:[E201 10:10:{second:02d}.715298746 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=600000) ran for 600061 milliseconds before timing out.\n"
        f"[rank{rank}]:[E201 10:10:{second:02d}.815298746 ProcessGroupNCCL.cpp:1664] [PG 0 Rank {rank}] Exception "
        f"(either an error or timeout) detected by watchdog at work: {seq}, last enqueued NCCL work: {enqueued}, "
        f"last completed NCCL work: {seq - 1}.\n"
    )


@dataclass(frozen=True)
class Scenario:
    """Files, and what is true of them: expected fields of the verdict."""

    files: dict[str, str]
    found: bool = True
    truth: dict[str, Any] = field(default_factory=dict)


def v2(*texts: str) -> dict[str, str]:
    return {f"user_logs/std_log_process_{rank:02d}.txt": text for rank, text in enumerate(texts)}


SCENARIOS: dict[str, Scenario] = {
    "one rank raises, the others lose their peer": Scenario(
        v2(
            steps(5) + traceback(CLOSED),
            steps(5) + traceback(CLOSED),
            steps(5) + traceback("ValueError: label 17 out of range"),
            steps(5) + traceback(CLOSED),
        ),
        truth={
            "cause": "python-exception", "rank": 2, "victims": [0, 1, 3], "confidence": "high", "line": 13,
            "file": "user_logs/std_log_process_02.txt",
            "text": "ValueError: label 17 out of range",
            "source": {"file": "/code/train.py", "line": 41, "function": "main"},
        },
    ),
    "v1 driver logs": Scenario(
        {
            "azureml-logs/70_driver_log_0.txt": "This is an MPI job. Rank:0\n" + steps(3) + traceback(SHUT),
            "azureml-logs/70_driver_log_1.txt": "This is an MPI job. Rank:1\n"
            + steps(3)
            + traceback("FileNotFoundError: [Errno 2] No such file or directory: '/data/x.rec'"),
        },
        truth={"cause": "file-missing", "rank": 1, "victims": [0]},
    ),
    "two exceptions, told apart by the clock": Scenario(
        v2(
            "2024-02-01 10:00:09,120 ERROR here it ends\n" + traceback("IndexError: list index out of range"),
            "2024-02-01 10:00:01,120 ERROR here it ends\n" + traceback("KeyError: 'weight'"),
        ),
        truth={"cause": "python-exception", "rank": 1, "text": "KeyError: 'weight'", "confidence": "high"},
    ),
    "two exceptions without a clock": Scenario(
        v2(traceback("IndexError: list index out of range"), steps(2) + traceback("torch.cuda.OutOfMemoryError: CUDA out of memory.")),
        truth={"cause": "cuda-out-of-memory", "rank": 1, "confidence": "medium"},
    ),
    "chained exceptions: the root is named": Scenario(
        v2(
            traceback("KeyError: 'blocks.0.weight'", line=7)
            + "\nDuring handling of the above exception, another exception occurred:\n\n"
            + traceback("RuntimeError: could not build the model", line=88)
        ),
        truth={"text": "KeyError: 'blocks.0.weight'", "rank": 0, "source": {"file": "/code/train.py", "line": 7, "function": "main"}},
    ),
    "a data loader worker's own exception": Scenario(
        v2(
            steps(2)
            + traceback("ValueError: Caught ValueError in DataLoader worker process 3.")
            + traceback("ValueError: image 0041.png has 2 channels", line=12).replace("Traceback", "Original Traceback", 1)
        ),
        truth={"text": "ValueError: image 0041.png has 2 channels", "source": {"file": "/code/train.py", "line": 12, "function": "main"}},
    ),
    "prefixed ranks in one captured log": Scenario(
        {
            "out.log": traceback(CLOSED, prefix="[rank0]: ")
            + traceback("AssertionError: shapes differ", prefix="[rank3]: ")
            + traceback(CLOSED, prefix="[rank1]: ")
        },
        truth={"rank": 3, "cause": "python-exception", "victims": [0, 1]},
    ),
    "interleaved tracebacks of mpirun --tag-output": Scenario(
        {
            "mpi_log.txt": "".join(
                a + b
                for a, b in zip(
                    traceback(SHUT, prefix="[1,0]<stderr>:", library=False).splitlines(keepends=True),
                    traceback("ZeroDivisionError: division by zero", prefix="[1,5]<stderr>:", library=False).splitlines(keepends=True),
                    strict=True,
                )
            )
        },
        truth={"rank": 5, "text": "ZeroDivisionError: division by zero", "victims": [0]},
    ),
    "torchrun names a rank that signal 9 ended": Scenario(
        {
            "user_logs/std_log_process_00.txt": steps(9)
            + "W0201 10:00:04.366000 71 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 72 closing signal SIGTERM\n"
            + child_failed(row(1, -9, told="Signal 9 (SIGKILL) received by PID 4001"))
        },
        truth={"cause": "signal-9-likely-out-of-memory", "rank": 1, "node": "gpu0", "confidence": "low"},
    ),
    "the kernel's words make it sure": Scenario(
        {
            "user_logs/std_log_process_00.txt": child_failed(row(2, -9)),
            "dmesg.txt": "[  81.2] Memory cgroup out of memory: Killed process 4711 (python) total-vm:1kB\n",
        },
        truth={"cause": "host-out-of-memory"},
    ),
    "all ranks end with 1 in the same second and no reason": Scenario(
        {"std.txt": child_failed(row(0, 1), row(1, 1), row(2, 1), row(3, 1))},
        found=False,
        truth={"rank": None, "cause": None},
    ),
    "torchrun's table with a recorded traceback": Scenario(
        {"std.txt": child_failed(row(3, 1, told='Traceback (most recent call last):\n    File "/code/train.py", line 5, in main\n      run()\n  ValueError: bad shard\n  '), row(1, 1))},
        truth={"rank": 3, "cause": "python-exception", "text": "ValueError: bad shard"},
    ),
    "two nodes: the one whose rank lost its peer also has a table": Scenario(
        {
            "user_logs/std_log_process_00.txt": traceback(CLOSED) + child_failed(row(0, 1, host="gpu0")),
            "user_logs/std_log_process_01.txt": child_failed(row(5, -11, local=1, host="gpu1")),
        },
        truth={"rank": 5, "node": "gpu1", "cause": "segmentation-fault"},
    ),
    "a traceback without prefix below torchrun belongs to the only failed rank": Scenario(
        {
            "user_logs/std_log_process_01.txt": steps(3)
            + traceback("RuntimeError: CUDA error: device-side assert triggered")
            + child_failed(row(6, 1, local=2, host="gpu1"))
        },
        truth={"rank": 6, "node": "gpu1", "cause": "gpu-illegal-access"},
    ),
    "torchrun tees with local ranks": Scenario(
        {
            "user_logs/std_log_process_01.txt": "  nproc_per_node   : 4\n"
            "INFO:torch.distributed.launcher.api:Starting elastic_operator with launch configs:\n"
            + traceback("ValueError: nothing to train on", prefix="[default2]:")
        },
        truth={"rank": 6},
    ),
    "horovod shut down, nothing else": Scenario(
        {"mpi_log.txt": traceback(SHUT, prefix="[1,2]<stderr>:") + traceback(SHUT, prefix="[1,0]<stderr>:")},
        found=False,
        truth={"victims": [0, 2], "cause": None},
    ),
    "horovod below TensorFlow: the graph's error goes on": Scenario(
        {
            "mpi_log.txt": traceback(
                "tensorflow.python.framework.errors_impl.UnknownError: Graph execution error:\n\n"
                "Detected at node 'HorovodAllreduce' defined at (most recent call last):\n"
                '    File "/code/train.py", line 3, in <module>\n'
                "Node: 'HorovodAllreduce'\nHorovod has been shut down. This was caused by an exception on one of the ranks",
                prefix="[1,1]<stderr>:",
            )
        },
        found=False,
        truth={"victims": [1]},
    ),
    "horovod names the rank that does not submit": Scenario(
        {
            "mpi_log.txt": "[1,0]<stderr>:[2024-02-01 10:01:00.851506: W horovod/common/stall_inspector.cc:105] One or more "
            "tensors were submitted to be reduced by subset of ranks and are waiting for remainder of ranks\n"
            "[1,0]<stderr>:Missing ranks:\n[1,0]<stderr>:3: [allreduce.grad_1, allreduce.grad_2]\n"
        },
        truth={"cause": "rank-did-not-join", "rank": 3},
    ),
    "mpirun names a signal": Scenario(
        {
            "mpi_log.txt": "-" * 50
            + "\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.\n"
            + "mpirun noticed that process rank 4 with PID 91 on node gpu2 exited on signal 11 (Segmentation fault).\n"
        },
        truth={"cause": "segmentation-fault", "rank": 4, "node": "gpu2"},
    ),
    "a rank leaves early, the others lose it": Scenario(
        v2(steps(9) + traceback(CLOSED), steps(5), steps(9) + traceback(CLOSED)), found=False, truth={"rank": 1, "victims": [0, 2]}
    ),
    "torchrun's group: one rank hangs, the others time out": Scenario(
        {
            "user_logs/std_log_process_00.txt": traceback("RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 6000ms for recv operation to complete", prefix="[rank0]: ")
            + traceback("RuntimeError: [gloo/transport/tcp/pair.cc:538] Connection closed by peer [127.0.0.1]:4242", prefix="[rank2]: ")
            + child_failed(row(0, 1), row(2, 1))
        },
        truth={"cause": "rank-did-not-join", "rank": 1, "victims": [0, 2], "confidence": "medium"},
    ),
    "the watchdog's abort in torchrun's table is no cause": Scenario(
        {"out.log": "".join(watchdog(rank) for rank in range(4)) + child_failed(row(0, -6), row(1, -6))}, found=False, truth={"cause": None}
    ),
    "a second exception while the interpreter goes down": Scenario(
        v2(
            traceback("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 9x2)")
            + "Exception ignored in atexit callback: <function clean_up at 0x7fc7fa34f7f0>\n" + traceback("MemoryError")
        ),
        truth={"cause": "python-exception"},
    ),
    "hosts as prefixes": Scenario(
        {
            "out.txt": traceback(CLOSED, prefix="gpu-vm1: ") + traceback("ValueError: bad shard", prefix="GPUVM2: ")
        },
        truth={"node": "GPUVM2", "text": "ValueError: bad shard", "victims": ["node gpu-vm1"]},
    ),
    "the terminal goes away": Scenario(
        {
            "nohup.out": "W0920 09:10:41.194000 84933 torch/distributed/elastic/agent/server/api.py:719] Received 1 death signal, shutting down workers\n"
             "W0920 09:10:41.195000 84933 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 85005 closing signal SIGHUP\n"
            + traceback("torch.distributed.elastic.multiprocessing.api.SignalException: Process 84933 got signal: 1")
        },
        truth={"cause": "hangup", "rank": None},
    ),
    "a note above an excerpt is no log": Scenario(
        {"kept.log": "# from the run of Friday; CUDA out of memory?\n# no: ReadTimeout\n" + steps(2) + traceback("KeyError: 'x'")},
        truth={"text": "KeyError: 'x'", "line": 12},
    ),
    "mpirun's summary only": Scenario(
        {
            "mpi_log.txt": "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
            "the job to be terminated. The first process to do so was:\n\n  Process name: [[31234,1],3]\n  Exit code:    1\n"
        },
        found=False,
        truth={"rank": 3},
    ),
    "watchdogs of all ranks but one": Scenario(
        {"out.log": "".join(watchdog(rank) for rank in (0, 1, 3)) + "[rank2]: step 811 begins\n[rank0]: world_size=4\n"},
        truth={"cause": "rank-did-not-join", "rank": 2, "victims": [0, 1, 3]},
    ),
    "an excerpt of watchdogs: who is silent may only have been cut away": Scenario(
        {"out.log": watchdog(0) + watchdog(4) + watchdog(3)}, found=False, truth={"victims": [0, 3, 4], "rank": None}
    ),
    "watchdogs of all ranks, one behind": Scenario(
        {"out.log": "".join(watchdog(rank, seq=811 if rank != 5 else 810, enqueued=815 if rank != 5 else 812) for rank in range(8))},
        truth={"cause": "rank-did-not-join", "rank": 5},
    ),
    "watchdogs of all ranks, all alike": Scenario(
        {"out.log": "".join(watchdog(rank) for rank in range(8))}, found=False, truth={"victims": list(range(8))}
    ),
    "a watchdog, and the rank that had raised before": Scenario(
        {
            "out.log": traceback("RuntimeError: corrupt shard 12", prefix="[rank1]: ")
            + watchdog(0) + watchdog(2)
            + "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        },
        truth={"rank": 1, "text": "RuntimeError: corrupt shard 12", "victims": [0, 2]},
    ),
    "monitored barrier names who is missing": Scenario(
        v2(traceback("RuntimeError: [Rank 0]: Rank 2 failed to pass monitoredBarrier in 5000 ms"), steps(2), steps(1)),
        truth={"rank": 2, "cause": "rank-did-not-join"},
    ),
    "rendezvous: nobody is to blame": Scenario(
        {
            "std.txt": "[E socket.cpp:793] [c10d] The client socket has timed out after 60s while trying to connect to (10.0.0.4, 29400).\n"
            + traceback("torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.")
        },
        truth={"cause": "rendezvous-timeout", "rank": None, "confidence": "medium"},
    ),
    "port in use, told before as a warning": Scenario(
        v2(
            "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"
            + traceback("RuntimeError: The server socket has failed to listen on any local network address. (errno: 98 - Address already in use)"),
            "[W socket.cpp:601] [c10d] The client socket has failed to connect to [10.0.0.4]:29500 (errno: 111 - Connection refused).\n",
        ),
        truth={"cause": "port-in-use", "rank": 0},
    ),
    "a slow network and nothing else": Scenario(
        {"std.txt": "gpu1:55:90 [0] NCCL INFO NET/IB : No device found.\ngpu1:55:90 [0] NCCL INFO Using network Socket\n" + steps(5)},
        truth={"cause": "no-infiniband", "fatal": False, "confidence": "medium"},
    ),
    "a slow network beside the true cause": Scenario(
        v2("gpu1:55:90 [0] NCCL INFO Using network Socket\n" + steps(3) + traceback("MemoryError")),
        truth={"cause": "host-out-of-memory", "rank": 0},
    ),
    "a warning about a library is no cause": Scenario(
        v2(
            "2024-02-01 10:00:00.1: W tensorflow/stream_executor/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; "
            "dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory\n" + steps(3)
            + traceback("ValueError: no data")
        ),
        truth={"cause": "python-exception"},
    ),
    "NCCL says why just before the exception": Scenario(
        v2(
            "gpu1:55:90 [0] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"
            + traceback("RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled system error, NCCL version 2.14.3")
        ),
        truth={"cause": "memlock-limit", "rank": 0},
    ),
    "all ranks miss the same package": Scenario(
        v2(*[traceback("ModuleNotFoundError: No module named 'apex'")] * 4),
        truth={"cause": "missing-module", "rank": None, "confidence": "high"},
    ),
    "the agent is told to stop": Scenario(
        {
            "std.txt": steps(4)
            + "W0201 10:00:04.366000 71 torch/distributed/elastic/agent/server/api.py:723] Received 15 death signal, shutting down workers\n"
            "W0201 10:00:04.367000 71 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 72 closing signal SIGTERM\n"
        },
        truth={"cause": "terminated-from-outside", "rank": None},
    ),
    "pre-emption": Scenario(
        {
            "azureml-logs/executionlogs.txt": "[2024-02-01 10:00:00Z] Job failed. PreemptionError: Nodes of this job got pre-empted.\n",
            "user_logs/std_log_process_00.txt": steps(2) + traceback(CLOSED),
        },
        truth={"cause": "node-preempted", "rank": None, "victims": [0]},
    ),
    "a healthy run": Scenario(v2(steps(50), steps(50)), found=False, truth={"fatal": False, "victims": []}),
    "Lightning's spawn": Scenario(
        {
            "out.txt": traceback("torch.multiprocessing.spawn.ProcessRaisedException: ")
            + "\n-- Process 1 terminated with the following error:\n"
            + traceback("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 9x2)")
        },
        truth={"rank": 1, "cause": "python-exception"},
    ),
    "DeepSpeed's launcher": Scenario(
        {
            "out.txt": steps(3) + traceback("ValueError: tokens run out", prefix="[rank2]: ")
            + "[2024-02-01 10:00:07,000] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 3966\n"
            "[2024-02-01 10:00:07,100] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=3'] exits with return code = 1\n"
        },
        truth={"rank": 2, "text": "ValueError: tokens run out"},
    ),
    "a broken link points to its peer": Scenario(
        v2("gpu1:55:90 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<40212> with error 12, opcode 0, len 0, vendor err 129\n"
           + traceback("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, remote process exited or there was a network error")),
        truth={"cause": "infiniband-link", "node": "gpu1"},
    ),
    "windows line ends and colours": Scenario(
        v2(("\x1b[31m" + traceback("ValueError: red") + "\x1b[0m").replace("\n", "\r\n")), truth={"rank": 0, "text": "ValueError: red"}
    ),
    "a progress bar hides the line": Scenario(
        v2("".join(f"\r{each}%|####| {each}/100" for each in range(100)) + "\rtorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"),
        truth={"cause": "cuda-out-of-memory", "line": 1},
    ),
    "torchrun's error file": Scenario(
        {
            "torchelastic/attempt_0/1/error.json": '{"message": {"message": "ValueError: bad shard", "extraInfo": {"py_callstack": '
            '"Traceback (most recent call last):\\n  File \\"/code/train.py\\", line 5, in main\\n    run()\\nValueError: bad shard\\n", "timestamp": "1706781605"}}}'
        },
        truth={"rank": 1, "text": "ValueError: bad shard", "source": {"file": "/code/train.py", "line": 5, "function": "main"}},
    ),
    "a handled exception long before": Scenario(
        v2(
            traceback("ConnectionError: could not log metrics, going on") + steps(900)
            + traceback("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB")
        ),
        truth={"cause": "cuda-out-of-memory"},
    ),
    "an exception lived through, told at the end": Scenario(
        v2(traceback("ValueError: caught and logged") + steps(3000) + traceback("KeyError: 'last'")),
        truth={"text": "KeyError: 'last'"},
    ),
}  # fmt: skip
