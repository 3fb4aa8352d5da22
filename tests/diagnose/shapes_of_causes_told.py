"""Shapes of logs in public issues: causes by name, from the fabric to the quota.

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
    "hf tokenizer fork + oom killed",
    "huggingface/tokenizers: The current process just got forked, after parallelism has already been used.\n 10%|# | 10/100\nKilled\n",
    cause="signal-9-likely-out-of-memory",
)
told(
    "elastic restart",
    "INFO:torch.distributed.elastic.agent.server.api:[default] Worker group FAILED. 3/3 attempts left; will restart worker group\n[default0]:"
    + "\n[default0]:".join((TRACEBACK + "ValueError: bad thing").splitlines())
    + "\n",
    cause="python-exception",
    rank=0,
)
told(
    "rendez timeout",
    TRACEBACK.replace("/workspace/run.py", "/opt/conda/bin/torchrun")
    + "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n",
    cause="rendezvous-timeout",
)
told(
    "store barrier",
    prefixed(
        "[rank0]: ",
        TRACEBACK
        + "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1 (world_size=8, worker_count=4, timeout=0:30:00)",
    ),
    cause="world-size-mismatch",
    rank=None,
)
told(
    "waiting clients",
    prefixed(
        "[rank0]: ",
        TRACEBACK
        + "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
    ),
    cause="rendezvous-timeout",
)
told("port in use old", TRACEBACK + "RuntimeError: Address already in use\n", cause="port-in-use")
told("oserror 98", TRACEBACK + "OSError: [Errno 98] Address already in use\n", cause="port-in-use")
told(
    "ds zero ckpt",
    TRACEBACK
    + "deepspeed.runtime.zero.utils.ZeRORuntimeException: The checkpoint being loaded used a DP world size of 8 but the current world size is 4. Automatic adjustment of ZeRO's optimizer state partitioning with a new world size is not currently supported.\n",
    cause="checkpoint-mismatch",
)
told(
    "ds batch",
    TRACEBACK
    + "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 32 != 4 * 1 * 4\n",
    cause="deepspeed-config",
)
told(
    "cublas alloc",
    prefixed(
        "[rank0]: ",
        TRACEBACK + "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ),
    cause="cuda-out-of-memory",
)
told("cudnn", TRACEBACK + "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED\n", found=True)
told(
    "nvml mismatch",
    TRACEBACK
    + "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination\n",
    found=True,
)
told(
    "not initialised fabric",
    TRACEBACK + "RuntimeError: CUDA error: system not yet initialized\n",
    cause="gpu-unavailable",
)
told(
    "nvlink",
    "node-2: NVRM: Xid (PCI:0003:00:00): 74, pid=1, NVLink: fatal error detected on link 6\n",
    cause="gpu-xid",
    node="node-2",
)
told(
    "xid 13",
    "[Mon May  1 10:00:00 2023] NVRM: Xid (PCI:0000:3b:00): 13, pid=55, Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0): Out Of Range Address\n",
    cause="gpu-xid",
)
told(
    "ib retry mpi",
    "[node-1:77:0:90] ib_mlx5_log.c:143  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)\n[node-1:77:0:90] ib_mlx5_log.c:143  RC QP 0x1 wqe[2]: RDMA_READ\n==== backtrace (tid:  77) ====\n",
    cause="infiniband-link",
    node="node-1",
)
told(
    "openib wr",
    "[[1,1],3][btl_openib_component.c:3645:handle_wc] from node-1 to: node-2 error polling LP CQ with status RETRY EXCEEDED ERROR status number 12 for wr_id 7 opcode 1 vendor error 129 qp_idx 0\n",
    cause="infiniband-link",
    node="node-1",
)
told(
    "memlock",
    "The OpenFabrics (openib) BTL failed to initialize while trying to\nallocate some locked memory.  This typically can indicate that the\nmemlock limits are set too low.\n",
    cause="memlock-limit",
)
told(
    "hvd ext",
    TRACEBACK
    + "ImportError: Extension horovod.torch has not been built: /opt/conda/lib/python3.8/site-packages/horovod/torch/mpi_lib_v2.so not found\nIf this is not expected, reinstall Horovod with HOROVOD_WITH_PYTORCH=1 to debug the build error.\n",
    cause="horovod-not-built",
)
told(
    "hvd mismatch",
    prefixed(
        "[1,0]<stderr>:",
        TRACEBACK
        + "horovod.common.exceptions.HorovodInternalError: Mismatched allreduce tensor shapes: One rank sent a tensor of shape [4, 2], but another rank sent a tensor of shape [4, 3].",
    ),
    cause="horovod-mismatch",
)
told(
    "horovodrun slot",
    "[3]<stderr>:Traceback (most recent call last):\n[3]<stderr>:  File \"/workspace/run.py\", line 61, in main\n[3]<stderr>:    f()\n[3]<stderr>:KeyError: 'q'\nProcess 3 exit with status code 1.\nTerminating remaining workers after failure of Process 3.\nProcess 0 exit with status code 143.\n",
    cause="python-exception",
    rank=3,
)
told(
    "horovodrun rank exit",
    'Traceback (most recent call last):\n  File "/usr/local/bin/horovodrun", line 8, in <module>\n    sys.exit(run_commandline())\nRuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing the job to be terminated. The first process to do so was:\nProcess name: 2\nExit code: 1\n',
    found=False,
    rank=2,
)
told(
    "lightning misconf",
    TRACEBACK
    + "lightning.fabric.utilities.exceptions.MisconfigurationException: You requested gpu: [0, 1]\n But your machine only has: [0]\n",
    cause="lightning-config",
)
told("acc fp16", TRACEBACK + "ValueError: fp16 mixed precision requires a GPU (not 'cpu').\n", found=True)
told(
    "aml data missing",
    TRACEBACK
    + "azureml.dataprep.api.errorhandlers.ExecutionError: \nError Code: ScriptExecution.StreamAccess.NotFound\nNative Error: error in streaming from input data sources\n",
    cause="data-mount",
)
told(
    "aml sp",
    "azure.core.exceptions.ClientAuthenticationError: DefaultAzureCredential failed to retrieve a token from the included credentials.\n",
    cause="authentication",
)
told(
    "quota ci",
    "Job failed: Not enough quota available for Standard_ND96asr_v4 in region. Current usage/limit: 0/0\n",
    cause="quota",
)
told(
    "aml resize",
    "Failed to resize: AllocationFailed: Allocation failed. We do not have sufficient capacity for the requested VM size in this region.\n",
    cause="quota",
)
told("aml preempt v1", "Run was preempted because the low priority node was evicted\n", cause="node-preempted")
