"""Shapes of logs in public issues: several files, tables, and who of several is to blame.

The words are of these tests' own; the forms are those of the programs.
"""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

from typing import TYPE_CHECKING

from shapes import TRACEBACK, prefixed, teller

if TYPE_CHECKING:
    from logtexts import Scenario

SCENARIOS: dict[str, Scenario] = {}
told = teller(SCENARIOS)

told(
    "aml v1 mpi two logs",
    {
        "azureml-logs/70_mpi_log.txt": "--------------------------------------------------------------------------\nmpirun noticed that process rank 3 with PID 0 on node 10.0.0.5 exited on signal 9 (Killed).\n--------------------------------------------------------------------------\n",
        "azureml-logs/70_driver_log_0.txt": "This is an MPI job. Rank:0\nstep 1\n",
        "azureml-logs/70_driver_log_3.txt": "This is an MPI job. Rank:3\nstep 1\n",
    },
    cause="signal-9-likely-out-of-memory",
    rank=3,
)
told(
    "nccl wt one completes",
    {
        f"user_logs/std_log_process_{r:02d}.txt": (
            "Training done\n"
            if r == 0
            else f"[rank{r}]:[E ProcessGroupNCCL.cpp:523] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800131 milliseconds before timing out.\n"
        )
        for r in range(4)
    },
    cause="rank-did-not-join",
    rank=0,
)
told(
    "val error rank0 only, others watchdog",
    {
        f"user_logs/std_log_process_{r:02d}.txt": (
            TRACEBACK + "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/ckpt/latest'\n"
            if r == 0
            else f"[rank{r}]:[E ProcessGroupNCCL.cpp:523] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800131 milliseconds before timing out.\n"
        )
        for r in range(4)
    },
    cause="file-missing",
    rank=0,
)
told(
    "node lost mid",
    {
        "user_logs/std_log_process_00.txt": "step 5\n"
        + TRACEBACK
        + "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, remote process exited or there was a network error, NCCL version 2.18.1\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\nLast error:\nNET/IB : Got completion from peer 10.0.0.6<41500> with error 12, opcode 32601, len 32600, vendor err 129\n"
    },
    cause="infiniband-link",
)
told(
    "net socket closed",
    {
        "out.log": "node-0:1:2 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.0.0.6<41500> failed : Connection refused\nnode-0:1:2 [0] proxy.cc:1119 NCCL WARN [Proxy Service 0] Failed to execute operation Connect from rank 0, retcode 6\n"
        + TRACEBACK
        + "torch.distributed.DistBackendError: NCCL error: remote process exited\n"
    },
    found=False,
)
told(
    "elastic mix table -9 root + others -15",
    """torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
======================================================
run.py FAILED
------------------------------------------------------
Failures:
[1]:
  time      : 2023-05-21_14:28:19
  host      : vm1
  rank      : 1 (local_rank: 1)
  exitcode  : -15 (pid: 12)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 12
------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2023-05-21_14:28:17
  host      : vm1
  rank      : 0 (local_rank: 0)
  exitcode  : -11 (pid: 11)
  error_file: <N/A>
  traceback : Signal 11 (SIGSEGV) received by PID 11
======================================================
""",
    cause="segmentation-fault",
    rank=0,
)
told(
    "table prefixed by rank tee",
    "[default0]:"
    + TRACEBACK.splitlines()[0]
    + "\n"
    + prefixed("[default0]:", "\n".join(TRACEBACK.splitlines()[1:]) + "\nKeyError: 'k'")
    + "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 6) of binary: /usr/bin/python\n",
    rank=0,
    text="KeyError: 'k'",
)
told(
    "two tb same rank consequence",
    prefixed("[rank0]: ", TRACEBACK + "ValueError: bad thing")
    + prefixed(
        "[rank0]: ",
        'Traceback (most recent call last):\n  File "/workspace/run.py", line 90, in <module>\n    dist.barrier()\nRuntimeError: Socket Timeout',
    ),
    cause="python-exception",
    text="ValueError: bad thing",
    rank=0,
)
told(
    "timestamps decide",
    {
        "user_logs/std_log_process_00.txt": "2024-02-01 10:00:09,1 step\n" + TRACEBACK + "KeyError: 'late'\n",
        "user_logs/std_log_process_01.txt": "2024-02-01 10:00:01,1 step\n" + TRACEBACK + "KeyError: 'early'\n",
    },
    rank=1,
)
told(
    "cuda init fork",
    TRACEBACK
    + "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method\n",
    cause="python-exception",
)
told(
    "tf ps",
    {
        "user_logs/std_log_process_00.txt": TRACEBACK
        + "tensorflow.python.framework.errors_impl.InvalidArgumentError: Incompatible shapes: [32,10] vs. [31,10]\n",
        "user_logs/std_log_process_01.txt": TRACEBACK
        + "tensorflow.python.framework.errors_impl.UnavailableError: Socket closed\nAdditional GRPC error information from remote target /job:worker/replica:0/task:0:\n",
    },
    cause="python-exception",
    rank=0,
)
told("sagemaker-ish json", '{"level":"ERROR","msg":"worker failed","rank":3}\n', found=False)
told(
    "nccl warn mix cuda",
    "node-0:77:90 [3] NCCL INFO Channel 00 : 0 1 2\nnode-0:77:90 [3] transport/p2p.cc:134 NCCL WARN Cuda failure 'API call is not supported in the installed CUDA driver'\n",
    found=True,
)
told(
    "peer access",
    "node-0:77:90 [3] init.cc:1320 NCCL WARN Mismatched collective detected, please check your collective calls at and around rank 3. You can use NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL to see the collective logs\n",
    cause="collective-mismatch",
)
told(
    "horovod cycle",
    "[1,1]<stderr>:terminate called after throwing an instance of 'gloo::IoException'\n[1,1]<stderr>:  what():  [/tmp/gloo/transport/tcp/pair.cc:575] Connection closed by peer [10.0.0.4]:3333\n",
    found=False,
)
told(
    "lightning oom kill",
    "/bin/bash: line 1:  4711 Killed                  python run.py\n",
    cause="signal-9-likely-out-of-memory",
)
told(
    "k8s exit 137 no reason",
    "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    137\n",
    cause="signal-9-likely-out-of-memory",
)
told(
    "azcopy sas",
    TRACEBACK
    + "azure.core.exceptions.HttpResponseError: This request is not authorized to perform this operation using this permission.\nRequestId:1\nErrorCode:AuthorizationPermissionMismatch\n",
    cause="data-mount",
)
told(
    "conda missing lib",
    TRACEBACK + "OSError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n",
    cause="library-mismatch",
)
told(
    "glibc",
    "python: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.28' not found (required by /x/lib.so)\n",
    cause="library-mismatch",
)
told(
    "hf shard json",
    TRACEBACK + "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n",
    cause="python-exception",
)
told("nan guard", prefixed("[rank0]: ", TRACEBACK + "ValueError: Loss is NaN at step 200"), found=True)
told(
    "amp scaler overflow healthy",
    "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\nstep 200 loss nan?\n",
    found=False,
)
