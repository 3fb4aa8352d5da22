"""What torchrun, mpirun, DeepSpeed and others write around the ranks."""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

from logtexts import CLOSED, Scenario, child_failed, row, steps, traceback, watchdog

HYDRA = (
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 9665 RUNNING AT {node}\n=   EXIT CODE: {code}\n"
)

SCENARIOS: dict[str, Scenario] = {
    "torchrun names a rank that signal 9 ended": Scenario(
        {
            "user_logs/std_log_process_00.txt": steps(9)
            + "W0201 10:00:04.366000 71 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 72 closing signal SIGTERM\n"
            + child_failed(row(1, -9, told="Signal 9 (SIGKILL) received by PID 4001"))
        },
        truth={"cause": "signal-9-likely-out-of-memory", "rank": 1, "node": "gpu0", "confidence": "low"},
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
    "mpirun names a signal": Scenario(
        {
            "mpi_log.txt": "-" * 50
            + "\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.\n"
            + "mpirun noticed that process rank 4 with PID 91 on node gpu2 exited on signal 11 (Segmentation fault).\n"
        },
        truth={"cause": "segmentation-fault", "rank": 4, "node": "gpu2"},
    ),
    "hosts as prefixes": Scenario(
        {
            "out.txt": traceback(CLOSED, prefix="gpu-vm1: ") + traceback("ValueError: bad shard", prefix="GPUVM2: ")
        },
        truth={"node": "GPUVM2", "text": "ValueError: bad shard", "victims": ["node gpu-vm1"]},
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
    "hydra names a node and a signal": Scenario(
        {"out.log": HYDRA.format(node="gpu7", code=9) + "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"},
        truth={"cause": "signal-9-likely-out-of-memory", "node": "gpu7", "confidence": "low"},
    ),
    "hydra ends the rest by a signal of its own": Scenario(
        {"out.log": HYDRA.format(node="gpu7", code=134) + "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Terminated (signal 15)\n"},
        truth={"cause": "aborted", "node": "gpu7"},
    ),
    "horovodrun names a worker and its code": Scenario(
        {
            "out.log": "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing the job to be "
            "terminated. The first process to do so was:\nProcess name: train-worker-1[0]\nExit code: 137\n"
        },
        truth={"cause": "signal-9-likely-out-of-memory", "node": "train-worker-1", "confidence": "low"},
    ),
    "a code of the shell is a signal too": Scenario(
        {"out.log": "Process 3 exit with status code 139.\n"}, truth={"cause": "segmentation-fault", "rank": 3}
    ),
    "a console numbers its lines": Scenario(
        {
            "out.log": "".join(
                f"[{80700 + at}] {line}\n"
                for at, line in enumerate((watchdog(0) + watchdog(4).splitlines()[0] + "\n" + watchdog(3)).splitlines())
            )
        },
        found=False,
        truth={"victims": [0, 3, 4], "rank": None},
    ),
    "a line broken by the terminal": Scenario(
        {
            "out.log": "Exception raised from ncclCommWatchdog at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1186 (mo\nst recent call first):\n"
            "[2024-02-01 10:00:05,778] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -6)\n local_rank: 0 (pid: 223) of binary\n"
        },
        found=False,
    ),
}  # fmt: skip
