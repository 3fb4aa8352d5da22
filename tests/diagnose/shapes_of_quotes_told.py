"""Shapes of logs in public issues: quoted, indented and wrapped ones, strangers' prefixes, ends that launchers tell, harmless warnings.

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


def wrap(text: str, width: int = 80) -> str:
    """As a console of that width shows it."""
    return "".join(
        f"{line[at : at + width]}\n" for line in text.splitlines() for at in range(0, max(1, len(line)), width)
    )


told(
    "wrapped console",
    wrap(
        TRACEBACK
        + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.80 GiB already allocated)"
    ),
    cause="cuda-out-of-memory",
)
told(
    "wrapped watchdog",
    wrap(
        "[E ProcessGroupNCCL.cpp:475] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1001, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1801226 milliseconds before timing out."
    ),
    found=False,
)
told(
    "markdown quoted",
    prefixed("> ", TRACEBACK + "ValueError: bad thing"),
    cause="python-exception",
    text="ValueError: bad thing",
)
told("indented issue", prefixed("    ", TRACEBACK + "ValueError: bad thing"), cause="python-exception")
told(
    "code fence",
    "```\n" + TRACEBACK + "ValueError: bad thing\n```\n",
    cause="python-exception",
    text="ValueError: bad thing",
)
told(
    "partial tb no header",
    """  File "/workspace/run.py", line 61, in main
    loss.backward()
  File "/opt/conda/lib/python3.10/site-packages/torch/_tensor.py", line 487, in backward
    torch.autograd.backward(
RuntimeError: Trying to backward through the graph a second time
""",
    found=True,
)
told(
    "ranks out of one tee",
    '[0] Traceback (most recent call last):\n[1] Traceback (most recent call last):\n[0]   File "/workspace/run.py", line 61, in main\n[1]   File "/workspace/run.py", line 70, in main\n[1]     x()\n[0]     y()\n[1] KeyError: \'one\'\n[0] RuntimeError: Connection reset by peer\n',
    cause="python-exception",
    rank=1,
    text="KeyError: 'one'",
)
told(
    "jsrun prefix gpu",
    prefixed("gpu03: ", TRACEBACK + "RuntimeError: CUDA error: an illegal memory access was encountered"),
    cause="gpu-illegal-access",
    node="gpu03",
)
told(
    "kubectl prefix",
    prefixed("[pod/train-worker-1/pytorch] ", TRACEBACK + "ValueError: bad thing"),
    cause="python-exception",
    text="ValueError: bad thing",
)
told("stern", prefixed("train-worker-1 pytorch ", TRACEBACK + "ValueError: bad thing"), cause="python-exception")
told(
    "gha",
    prefixed("2023-08-01T10:00:00.1234567Z ", TRACEBACK + "ValueError: bad thing"),
    cause="python-exception",
    text="ValueError: bad thing",
)
told(
    "level prefix",
    prefixed("2023-08-01 10:00:00,123 - train - ERROR - ", TRACEBACK + "ValueError: bad thing"),
    cause="python-exception",
    text="ValueError: bad thing",
)
told("error:root", "ERROR:root:Training failed\n" + TRACEBACK + "ValueError: bad thing\n", cause="python-exception")
told(
    "hydra",
    "Error executing job with overrides: ['model=x']\n"
    + TRACEBACK
    + "ValueError: bad thing\n\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
    cause="python-exception",
    text="ValueError: bad thing",
)
told(
    "omegaconf multi",
    "Error executing job with overrides: []\nError executing job with overrides: []\n"
    + TRACEBACK
    + "omegaconf.errors.ConfigAttributeError: Key 'lr' is not in struct\n    full_key: optim.lr\n    object_type=dict\n",
    cause="python-exception",
)
told("assert no message", TRACEBACK + "AssertionError\n", cause="python-exception", text="AssertionError")
told(
    "multi-line exc",
    TRACEBACK
    + "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: copying a param with shape torch.Size([10, 5]) from checkpoint, the shape in current model is torch.Size([11, 5]).\n",
    cause="checkpoint-mismatch",
)
told(
    "recursion",
    TRACEBACK + "  [Previous line repeated 970 more times]\nRecursionError: maximum recursion depth exceeded\n",
    cause="python-exception",
    text="RecursionError: maximum recursion depth exceeded",
)
told(
    "exception group",
    '  + Exception Group Traceback (most recent call last):\n  |   File "/workspace/run.py", line 61, in main\n  | ExceptionGroup: many (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File "/workspace/run.py", line 62, in main\n    | ValueError: bad thing\n    +------------------------------------\n',
    cause="python-exception",
)
told(
    "spawn",
    "W0501 10:00:00.1 140 torch/multiprocessing/spawn.py:146] Terminating process 101 via signal SIGTERM\n"
    + TRACEBACK.replace("/workspace/run.py", "/opt/conda/lib/python3.10/site-packages/torch/multiprocessing/spawn.py")
    + "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 3 terminated with the following error:\n"
    + TRACEBACK
    + "ValueError: bad thing\n\n",
    cause="python-exception",
    text="ValueError: bad thing",
    rank=3,
)
told(
    "spawn sig",
    TRACEBACK.replace("/workspace/run.py", "/opt/conda/lib/python3.10/site-packages/torch/multiprocessing/spawn.py")
    + "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGSEGV\n",
    cause="segmentation-fault",
    rank=1,
)
told(
    "new torchrun format",
    """W0612 10:11:12.131000 140 torch/distributed/elastic/multiprocessing/api.py:858] Sending process 71 closing signal SIGTERM
E0612 10:11:13.131000 140 torch/distributed/elastic/multiprocessing/api.py:833] failed (exitcode: -11) local_rank: 1 (pid: 72) of binary: /opt/conda/bin/python
""",
    cause="segmentation-fault",
    rank=1,
)
told(
    "nccl timeout seq diff",
    "[rank0]:[E612 10:11:12.1 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=20, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n[rank0]:[E612 10:11:12.1 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 0] Exception (either an error or timeout) detected by watchdog at work: 20, last enqueued NCCL work: 22, last completed NCCL work: 19.\n[rank1]:[E612 10:11:12.1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=20, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n[rank1]:[E612 10:11:12.1 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 1] Exception (either an error or timeout) detected by watchdog at work: 20, last enqueued NCCL work: 22, last completed NCCL work: 19.\n[rank2]:[E612 10:11:12.1 ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=18, OpType=ALLGATHER, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n[rank2]:[E612 10:11:12.1 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 2] Exception (either an error or timeout) detected by watchdog at work: 18, last enqueued NCCL work: 18, last completed NCCL work: 17.\n",
    cause="rank-did-not-join",
    rank=2,
)
told(
    "hvd oom rank",
    prefixed("[1,2]<stderr>:", TRACEBACK + "tensorflow.python.framework.errors_impl.InternalError: GPU sync failed")
    + "[1,0]<stderr>:horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on one of the ranks\n",
    rank=2,
)
told(
    "mpi abort",
    "--------------------------------------------------------------------------\nMPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n\nNOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n--------------------------------------------------------------------------\n",
    found=False,
    rank=5,
)
told(
    "mpi abort with exc",
    prefixed("", TRACEBACK + "ValueError: bad thing")
    + "--------------------------------------------------------------------------\nMPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n",
    cause="python-exception",
    rank=5,
)
told(
    "intel mpi",
    "===================================================================================\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 3 PID 4242 RUNNING AT node-1\n=   KILLED BY SIGNAL: 9 (Killed)\n===================================================================================\n",
    cause="signal-9-likely-out-of-memory",
    rank=3,
    node="node-1",
)
told(
    "mpich",
    "===================================================================================\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 4242 RUNNING AT node-1\n=   EXIT CODE: 139\n=   CLEANING UP REMAINING PROCESSES\n=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n===================================================================================\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)\n",
    cause="segmentation-fault",
    node="node-1",
)
told(
    "prterun",
    "--------------------------------------------------------------------------\nprterun noticed that process rank 2 with PID 812 on node n1 exited on\nsignal 7 (Bus error).\n--------------------------------------------------------------------------\n",
    cause="shared-memory-exhausted",
    rank=2,
    node="n1",
)
told(
    "mpirun nonzero v4",
    "--------------------------------------------------------------------------\nmpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[1234,1],3]\n  Exit code:    1\n--------------------------------------------------------------------------\n",
    found=False,
    rank=3,
)
told(
    "mpirun nonzero with exc",
    prefixed("[1,3]<stderr>:", TRACEBACK + "ValueError: bad thing")
    + "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[1234,1],3]\n  Exit code:    1\n",
    cause="python-exception",
    rank=3,
)
told(
    "mpirun nonzero unprefixed exc",
    TRACEBACK
    + "ValueError: bad thing\n"
    + "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[1234,1],3]\n  Exit code:    1\n",
    cause="python-exception",
    rank=3,
)
told(
    "ib port inactive",
    "node-3:12:99 [0] transport/net_ib.cc:94 NCCL WARN NET/IB : Got async event : port error\n",
    cause="infiniband-link",
    node="node-3",
)
told(
    "azure mlflow timeout",
    TRACEBACK
    + "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='westeurope.api.azureml.ms', port=443): Read timed out. (read timeout=120)\n",
    cause="service-timeout",
)
told(
    "no infini + mlflow",
    "b0220:38:38 [0] NCCL INFO NET/IB : No device found.\nb0220:38:38 [0] NCCL INFO Using network Socket\n"
    + TRACEBACK
    + "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='westeurope.api.azureml.ms', port=443): Read timed out. (read timeout=120)\n",
    cause="service-timeout",
)
told(
    "ds inflight loss",
    "[2023-05-01 10:00:00,123] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"
    * 4,
    found=False,
)
told(
    "retry worked",
    "ConnectionError: retrying in 5s\nWARNING: attempt 1 failed: 503 Server Error\nstep 100\nstep 200\nTraining finished\n",
    found=False,
)
told(
    "slow loader warn",
    "/opt/conda/lib/python3.10/site-packages/torch/utils/data/dataloader.py:561: UserWarning: This DataLoader will create 12 worker processes in total. Our suggested max number of worker in current system is 6, which is smaller than what this DataLoader is going to create. Please be aware that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid potential slowness/freeze if necessary.\n",
    found=False,
)
