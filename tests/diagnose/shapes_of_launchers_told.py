"""Shapes of logs in public issues: prefixes of launchers and clusters, watchdogs, tables, stalls.

The words are of these tests' own; the forms are those of the programs.
"""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from shapes import TRACEBACK, prefixed, teller

if TYPE_CHECKING:
    from logtexts import Scenario

SCENARIOS: dict[str, Scenario] = {}
told = teller(SCENARIOS)

told(
    "k8s describe oom",
    """Name:         bert-worker-2
Namespace:    jobs
    State:          Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Tue, 02 May 2023 10:11:12 +0000
""",
    cause="host-out-of-memory",
)
told(
    "watchdog of one rank only",
    """[rank2]:[E ProcessGroupNCCL.cpp:523] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800131 milliseconds before timing out.
[rank2]:[E ProcessGroupNCCL.cpp:537] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.
[rank2]:[E ProcessGroupNCCL.cpp:543] To avoid data inconsistency, we are taking the entire process down.
terminate called after throwing an instance of 'std::runtime_error'
  what():  [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800131 milliseconds before timing out.
""",
    found=False,
)
told(
    "device assert",
    """[rank1]: ../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.
"""
    + prefixed(
        "[rank1]: ",
        TRACEBACK
        + "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1.",
    )
    + """[rank0]:[E ProcessGroupNCCL.cpp:523] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800131 milliseconds before timing out.
""",
    cause="gpu-illegal-access",
    rank=1,
)
told(
    "pdsh oom",
    prefixed(
        "worker-1: [rank3]: ",
        TRACEBACK
        + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 39.59 GiB total capacity; 36.00 GiB already allocated; 1.1 GiB free)",
    )
    + prefixed(
        "worker-0: [rank0]: ",
        TRACEBACK
        + "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.1.0.5]:2311",
    ),
    cause="cuda-out-of-memory",
    rank=3,
    node="worker-1",
)
told(
    "pdsh without rank",
    prefixed("worker-1: ", TRACEBACK + "KeyError: 'labels'")
    + "worker-1: [2023-05-01 10:00:00,123] [INFO] [launch.py:314:sigkill_handler] Killing subprocess 2311\nworker-1: [2023-05-01 10:00:01,123] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python3', '-u', 'run.py', '--local_rank=3'] exits with return code = 1\npdsh@head: worker-1: ssh exited with exit code 1\n",
    cause="python-exception",
    node="worker-1",
    text="KeyError: 'labels'",
)
told(
    "duplicate gpu",
    """[rank1]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1331, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.19.3
[rank1]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
[rank1]: Last error:
[rank1]: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 100000
""",
    cause="duplicate-gpu",
    rank=None,
)
told(
    "addr in use",
    """[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
[E socket.cpp:462] [c10d] The server socket has failed to listen on any local network address.
"""
    + TRACEBACK
    + """RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use). The server socket has failed to bind to ?UNKNOWN? (errno: 98 - Address already in use).
""",
    cause="port-in-use",
)
told(
    "socket timeout of others",
    prefixed("[rank1]: ", TRACEBACK + "torch.distributed.DistStoreError: Socket Timeout")
    + prefixed("[rank3]: ", TRACEBACK + "torch.distributed.DistStoreError: Socket Timeout"),
    found=False,
)
told(
    "rdzv closed",
    TRACEBACK.replace("/workspace/run.py", "/opt/conda/bin/torchrun")
    + "torch.distributed.elastic.rendezvous.api.RendezvousClosedError\n",
    found=False,
)
told(
    "signal 15 to agent",
    TRACEBACK.replace("/workspace/run.py", "/opt/conda/bin/torchrun")
    + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4242 got signal: 15\n",
    cause="terminated-from-outside",
)
told(
    "childfailed error file",
    """torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
run.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2023-04-01_10:11:12
  host      : gpu-node-7
  rank      : 6 (local_rank: 2)
  exitcode  : 1 (pid: 991)
  error_file: /tmp/torchelastic_x/none_y/attempt_0/2/error.json
  traceback : Traceback (most recent call last):
    File "/opt/conda/lib/python3.10/site-packages/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 346, in wrapper
      return f(*args, **kwargs)
    File "/workspace/run.py", line 61, in main
      loader = build(cfg)
  ValueError: num_samples should be a positive integer value, but got num_samples=0

============================================================
""",
    cause="python-exception",
    rank=6,
    node="gpu-node-7",
)
told(
    "enospc checkpoint",
    prefixed(
        "[rank0]: ", TRACEBACK + "RuntimeError: [enforce fail at inline_container.cc:424] . unexpected pos 704 vs 598"
    ),
    cause="disk-full",
    rank=0,
)
told(
    "zip writer enospc",
    TRACEBACK
    + 'RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 3776 vs 3664\nTraceback (most recent call last):\n  File "/workspace/run.py", line 9, in save\n    torch.save(x)\nOSError: [Errno 28] No space left on device\n',
    cause="disk-full",
)
told(
    "aml user error json",
    """{
    "NonCompliant": "AzureMLCompute job failed.\\nJobFailed: Submitted script failed with a non-zero exit code; see the driver log file for details.\\n\\tReason: Job failed with non-zero exit Code"
}
""",
    found=False,
)
told(
    "aml jobexception",
    """2023-02-01T10:00:00.123456Z [error] Error: "UserError"
{"code": "ExecutionFailed", "target": "", "category": "UserError", "error_details": [{"key": "exit_codes", "value": "1"}]}
Marking the experiment as failed because initial child jobs have failed due to user error
""",
    found=False,
)
told(
    "horovod stall new",
    """[2021-03-01 10:00:00.123456: W /tmp/pip-install/horovod/horovod/common/stall_inspector.cc:105] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds. This may indicate that different ranks are trying to submit different tensors or that only subset of ranks is submitting tensors, which will cause deadlock.
Missing ranks:
2: [DistributedOptimizer_Allreduce/HorovodAllreduce_grads_0, DistributedOptimizer_Allreduce/HorovodAllreduce_grads_1 ...]
""",
    cause="rank-did-not-join",
    rank=2,
)
told(
    "horovod stall old",
    """[1,0]<stderr>:[2019-03-01 10:00:00.123456: W horovod/common/operations.cc:588] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.
[1,0]<stderr>:Stalled ops:
[1,0]<stderr>:HorovodBroadcast_global_step_0 [missing ranks: 1, 3]
[1,0]<stderr>:HorovodBroadcast_beta_0 [missing ranks: 1, 3]
""",
    cause="rank-did-not-join",
)
told(
    "horovod stall one",
    """[1,0]<stderr>:WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.
[1,0]<stderr>:Stalled ops:HorovodAllreduce_x [missing ranks: 3] [ready ranks: 0, 1, 2]
""",
    cause="rank-did-not-join",
    rank=3,
)
told(
    "tf unavailable",
    TRACEBACK
    + """tensorflow.python.framework.errors_impl.UnavailableError: {{function_node __wrapped__CollectiveReduceV2}} Collective ops is aborted by: failed to connect to all addresses
Additional GRPC error information from remote target /job:worker/replica:0/task:1:
:{"created":"@1650000000.1","description":"Failed to pick subchannel"}
The error could be from a previous operation. Restart your program to reset. [Op:CollectiveReduceV2]
""",
    found=False,
)
told(
    "dataset worker index",
    prefixed(
        "[rank0]: ",
        'Traceback (most recent call last):\n  File "/workspace/run.py", line 61, in main\n    for b in loader:\nIndexError: Caught IndexError in DataLoader worker process 2.\nOriginal Traceback (most recent call last):\n  File "/opt/conda/lib/python3.10/site-packages/torch/utils/data/_utils/worker.py", line 308, in _worker_loop\n    data = fetcher.fetch(index)\n  File "/workspace/data.py", line 33, in __getitem__\n    return self.items[i]\nIndexError: list index out of range',
    ),
    rank=0,
    text="IndexError: list index out of range",
    at=("/workspace/data.py", 33, "__getitem__"),
)
told(
    "tokenizers only",
    """huggingface/tokenizers: The current process just got forked, after parallelism has already been used. Disabling parallelism to avoid deadlocks...
To disable this warning, you can either:
\t- Avoid using `tokenizers` before the fork if possible
\t- Explicitly set the environment variable TOKENIZERS_PARALLELISM=(true | false)
  3%|▎         | 30/1000 [00:10<05:20,  3.02it/s]\r  3%|▎         | 31/1000 [00:10<05:20,  3.02it/s]\r
""",
    found=False,
)
told(
    "ib error 12",
    """node-7:1234:1300 [5] transport/net_ib.cc:829 NCCL WARN NET/IB : Got completion from peer 10.0.3.7<51110> with error 12, opcode 0, len 0, vendor err 129
node-7:1234:1300 [5] NCCL INFO include/net.h:32 -> 6
node-7:1234:1300 [5] NCCL INFO transport/net.cc:870 -> 6
node-7:1234:1300 [5] NCCL INFO proxy.cc:494 -> 6 [Proxy Thread]
"""
    + TRACEBACK
    + "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, remote process exited or there was a network error, NCCL version 2.18.1\n",
    cause="infiniband-link",
)
told(
    "ecc",
    prefixed("[default3]:", TRACEBACK + "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    cause="gpu-ecc",
)
told(
    "xid 79",
    "[ 1234.567890] NVRM: Xid (PCI:0001:00:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n[ 1234.567891] NVRM: GPU 0001:00:00.0: GPU has fallen off the bus.\n",
    cause="gpu-fell-off-the-bus",
)
told(
    "xid 48 syslog",
    "Mar  3 10:11:12 node-3 kernel: [ 9234.1] NVRM: Xid (PCI:000D:00:00): 48, pid=4321, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer.\n",
    cause="gpu-ecc",
    node="node-3",
)
told(
    "compose prefix",
    prefixed("trainer-2  | ", TRACEBACK + "ValueError: Expected input batch_size (32) to match target batch_size (31).")
    + prefixed("trainer-0  | ", TRACEBACK + "RuntimeError: Connection reset by peer"),
    rank=2,
    cause="python-exception",
)
told(
    "docker json",
    "".join(
        json.dumps(
            {"log": line + "\n", "stream": "stderr", "time": "2023-04-01T10:00:00.123456789Z"}, separators=(",", ":")
        )
        + "\n"
        for line in (TRACEBACK + "ValueError: bad shape").splitlines()
    ),
    text="ValueError: bad shape",
    cause="python-exception",
    at=("/workspace/run.py", 61, "main"),
)
told(
    "lightning child",
    prefixed(
        "[rank1]: ",
        TRACEBACK
        + "RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
    )
    + "[rank: 1] Child process with PID 30211 terminated with code 1. Forcefully terminating all other processes to avoid zombies 🧟\n",
    rank=1,
    cause="python-exception",
)
told(
    "lightning child only",
    "[rank: 1] Child process with PID 30211 terminated with code 1. Forcefully terminating all other processes to avoid zombies 🧟\n",
    found=False,
    rank=1,
)
told(
    "lightning child -9",
    "Epoch 0: 10%\n[rank: 3] Child process with PID 30211 terminated with code -9. Forcefully terminating all other processes to avoid zombies 🧟\n",
    found=True,
    rank=3,
)
told(
    "rich box",
    """╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /workspace/run.py:88 in <module>                                             │
│                                                                              │
│   85                                                                         │
│   86 if __name__ == "__main__":                                              │
│   87     torch.set_num_threads(1)                                            │
│ ❱ 88     main()                                                              │
│                                                                              │
│ /workspace/run.py:61 in main                                                 │
│                                                                              │
│ /opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py:1501 in   │
│ _call_impl                                                                   │
╰──────────────────────────────────────────────────────────────────────────────╯
RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)
""",
    cause="python-exception",
    text="RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)",
    at=("/workspace/run.py", 61, "main"),
)
