"""Shapes of logs in public issues: boxes, dumps, wrapped and glued lines, what services say.

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
    "loguru",
    """2023-04-01 10:00:00.123 | ERROR    | __main__:<module>:90 - An error has been caught in function '<module>', process 'MainProcess' (123), thread 'MainThread' (1403):
Traceback (most recent call last):

> File "/workspace/run.py", line 90, in <module>
    main()
    └ <function main at 0x7f>

  File "/workspace/run.py", line 61, in main
    x = batch["labels"]
        └ {'input_ids': 1}

KeyError: 'labels'
""",
    cause="python-exception",
    text="KeyError: 'labels'",
    at=("/workspace/run.py", 61, "main"),
)
told(
    "faulthandler",
    """Fatal Python error: Segmentation fault

Current thread 0x00007f1c2a7fc700 (most recent call first):
  File "/opt/conda/lib/python3.10/site-packages/torch/autograd/__init__.py", line 200 in backward
  File "/workspace/run.py", line 61 in main
  File "/workspace/run.py", line 88 in <module>
""",
    cause="segmentation-fault",
    at=("/workspace/run.py", 61, "main"),
)
told(
    "nccl cuda oom",
    prefixed(
        "[rank0]: ",
        TRACEBACK
        + "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.18.1\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 'out of memory'",
    ),
    cause="cuda-out-of-memory",
    rank=0,
)
told(
    "nccl internal recv",
    prefixed(
        "[rank2]: ",
        TRACEBACK
        + "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, internal error - please report this issue to the NCCL developers, NCCL version 2.18.1\nncclInternalError: Internal check failed.\nLast error:\nSocket recv failed while polling for opId=0x7f9d5c0b3d10",
    ),
    found=False,
)
told(
    "gloo iface",
    TRACEBACK
    + "RuntimeError: [enforce fail at /opt/conda/conda-bld/pytorch/work/third_party/gloo/gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: eth1\n",
    cause="no-socket-interface",
)
told(
    "nccl bootstrap iface",
    "node-1:41:41 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found\nnode-1:41:41 [0] NCCL INFO init.cc:98 -> 3\n",
    cause="no-socket-interface",
)
told(
    "ds return -9",
    """[2023-05-01 10:00:00,123] [INFO] [launch.py:314:sigkill_handler] Killing subprocess 2311
[2023-05-01 10:00:00,124] [INFO] [launch.py:314:sigkill_handler] Killing subprocess 2312
[2023-05-01 10:00:00,125] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python3', '-u', 'run.py', '--local_rank=1', '--deepspeed', 'ds.json'] exits with return code = -9
""",
    cause="signal-9-likely-out-of-memory",
)
told(
    "srun oom",
    """slurmstepd: error: Detected 1 oom_kill event in StepId=1234.0. Some of the step tasks have been OOM Killed.
srun: error: node012: task 5: Out Of Memory
srun: Terminating StepId=1234.0
""",
    cause="host-out-of-memory",
    rank=5,
    node="node012",
)
told(
    "srun exit",
    """srun: error: gpu-3: task 9: Exited with exit code 1
srun: launch/slurm: _step_signal: Terminating StepId=77.0
slurmstepd: error: *** STEP 77.0 ON gpu-1 CANCELLED AT 2023-05-01T10:00:00 ***
srun: error: gpu-1: tasks 0-7: Terminated
""",
    found=False,
    rank=9,
)
told(
    "k8s evicted",
    "Status:  Failed\nReason:  Evicted\nMessage: Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.\n",
    cause="disk-full",
)
told(
    "lightning unused",
    TRACEBACK
    + "RuntimeError: It looks like your LightningModule has parameters that were not used in producing the loss returned by training_step. If this is intentional, you must enable the detection of unused parameters in DDP, either by setting the string value `strategy='ddp_find_unused_parameters_true'` or by setting the flag in the strategy with `strategy=DDPStrategy(find_unused_parameters=True)`.\n",
    cause="ddp-unused-parameters",
)
told(
    "tf oom",
    TRACEBACK
    + "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:\n\nDetected at node 'model/dense/MatMul' defined at (most recent call last):\n    File \"/workspace/run.py\", line 61, in main\n      model.fit(ds)\nNode: 'model/dense/MatMul'\nOOM when allocating tensor with shape[4096,65536] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n\t [[{{node model/dense/MatMul}}]]\n",
    cause="cuda-out-of-memory",
)
told(
    "ompi segv",
    """[node-3:12345] *** Process received signal ***
[node-3:12345] Signal: Segmentation fault (11)
[node-3:12345] Signal code: Address not mapped (1)
[node-3:12345] Failing at address: 0x8
[node-3:12345] [ 0] /lib/x86_64-linux-gnu/libpthread.so.0(+0x12980)[0x7f2c1a5f4980]
[node-3:12345] *** End of error message ***
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
mpirun noticed that process rank 6 with PID 12345 on node node-3 exited on signal 11 (Segmentation fault).
""",
    cause="segmentation-fault",
    rank=6,
    node="node-3",
)
told(
    "ucx retry",
    "[1700000000.123456] [node-3:1234 :0]    ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_ib0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)\n[1700000000.123457] [node-3:1234 :0]    ib_mlx5_log.c:171  RC QP 0x2b1 wqe[11]: SEND s-e [inl len 26]\n",
    cause="infiniband-link",
    node="node-3",
)
told(
    "worker bus error",
    "[rank2]: ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
    + prefixed(
        "[rank2]: ",
        TRACEBACK
        + "RuntimeError: DataLoader worker (pid 8123) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
    ),
    rank=2,
    cause="shared-memory-exhausted",
)
told(
    "hub offline",
    TRACEBACK
    + "requests.exceptions.ConnectionError: (MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /bert-base-uncased/resolve/main/config.json (Caused by NewConnectionError('<urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno 101] Network is unreachable'))\"), '(Request ID: 1)')\n\nDuring handling of the above exception, another exception occurred:\n\n"
    + TRACEBACK
    + "OSError: We couldn't connect to 'https://huggingface.co' to load this file, couldn't find it in the cached files and it looks like bert-base-uncased is not the path to a directory containing a file named config.json.\n",
    cause="service-timeout",
)
told(
    "watchdog illegal",
    "[rank4]:[E1112 10:11:12.131 ProcessGroupNCCL.cpp:1414] [PG 0 Rank 4] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered\n[rank4]: CUDA kernel errors might be asynchronously reported at some other API call\nterminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [PG 0 Rank 4] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered\n[rank5]:[E1112 10:11:14.131 ProcessGroupNCCL.cpp:563] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE) ran for 600000 milliseconds before timing out.\n",
    rank=4,
    cause="gpu-illegal-access",
)
told(
    "client timeout",
    TRACEBACK
    + "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.4, 29500).\n",
    cause="rendezvous-timeout",
)
told(
    "accelerate sigkill",
    "subprocess.CalledProcessError: Command '['/opt/conda/bin/python', 'run.py', '--fp16']' died with <Signals.SIGKILL: 9>.\n",
    cause="signal-9-likely-out-of-memory",
)
told(
    "tqdm glued",
    " 45%|████▌     | 45/100 [00:01<00:02, 32.10it/s]"
    + TRACEBACK
    + "AssertionError: grad_norm is None\n 45%|████▌     | 45/100 [00:02<00:02, 20.10it/s]\n",
    text="AssertionError: grad_norm is None",
    at=("/workspace/run.py", 61, "main"),
)
told(
    "ray",
    prefixed("(RayTrainWorker pid=1203, ip=10.0.0.9) ", TRACEBACK + "ValueError: empty shard")
    + "ray.exceptions.RayTaskError(ValueError): ray::RayTrainWorker.execute() (pid=1203, ip=10.0.0.9)\n",
    text="ValueError: empty shard",
    node="10.0.0.9",
)
told(
    "timestamps k8s",
    prefixed(
        "2023-05-10T12:00:00.123456789Z stderr F ",
        TRACEBACK + "TypeError: forward() got an unexpected keyword argument 'labels'",
    ),
    text="TypeError: forward() got an unexpected keyword argument 'labels'",
    at=("/workspace/run.py", 61, "main"),
)
told("default+rank", prefixed("[default1]:[rank5]: ", TRACEBACK + "ZeroDivisionError: float division by zero"), rank=5)
told(
    "mpi tag + rank",
    prefixed("[1,3]<stderr>:[rank3]: ", TRACEBACK + "ZeroDivisionError: float division by zero")
    + prefixed(
        "[1,1]<stderr>:", TRACEBACK + "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down."
    ),
    rank=3,
)
told(
    "orte lost",
    """--------------------------------------------------------------------------
ORTE has lost communication with a remote daemon.

  HNP daemon   : [[31303,0],0] on node head
  Remote daemon: [[31303,0],2] on node worker-2

This is usually due to either a failure of the TCP network
connection to the node, or possibly an internal failure of
the daemon itself. We cannot recover from this failure, and
therefore will terminate the job.
--------------------------------------------------------------------------
""",
    cause="mpi-daemon-lost",
    node="worker-2",
)
told(
    "aml v1 driver tail",
    {
        "azureml-logs/70_driver_log_0.txt": """[2021-05-01T10:00:00.123456] Entering context manager injector.
Starting the daemon thread to refresh tokens in background for process with pid = 120
"""
        + TRACEBACK
        + """RuntimeError: CUDA error: no kernel image is available for execution on the device
[2021-05-01T10:05:00.123456] Finished context manager injector with Exception.
2021/05/01 10:05:01 logger.go:297: Failed to run the wrapper cmd with err: exit status 1
""",
        "azureml-logs/75_job_post-tvmps.txt": "[2021-05-01T10:05:02] Job release has failed? no\n",
    },
    cause="no-kernel-image",
    rank=0,
)
told(
    "healthy nccl info",
    """node-0:100:100 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.4<0>
node-0:100:100 [0] NCCL INFO NET/IB : Using [0]mlx5_ib0:1/IB [1]mlx5_ib1:1/IB ; OOB eth0:10.0.0.4<0>
[rank0]:[W1112 10:00:00.1 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL. On normal program exit, the application should call destroy_process_group
/opt/conda/lib/python3.10/site-packages/torch/functional.py:504: UserWarning: torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.
{'train_runtime': 120.3, 'train_loss': 0.4, 'epoch': 3.0}
""",
    found=False,
)
told(
    "store get timeouts",
    prefixed(
        "[rank3]: ",
        TRACEBACK
        + "torch.distributed.DistBackendError: [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer",
    ),
    found=False,
)
told(
    "no socket 111",
    prefixed("[rank1]: ", TRACEBACK + "torch.distributed.DistNetworkError: Connection refused"),
    found=False,
)
told(
    "bf16 nan",
    prefixed(
        "[rank0]: ",
        TRACEBACK + "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
    ),
    cause="loss-not-finite",
)
told(
    "hf arg",
    TRACEBACK
    + "ValueError: Target modules {'q_proj'} not found in the base model. Please check the target modules and try again.\n",
    cause="python-exception",
)
told(
    "ssh refused mpirun",
    "ssh: connect to host node-4 port 22: Connection refused\n--------------------------------------------------------------------------\nORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n* not finding the required libraries\n",
    cause="mpi-ssh",
    node="node-4",
)
told(
    "container exit",
    "Error response from daemon: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown\n",
    cause="no-gpu-visible",
)
told(
    "aml prereq",
    "2022-10-01T10:00:00Z executor: AzureMLCompute job failed\nFailedPullingImage: Unable to pull docker image\n\timageName: x.azurecr.io/azureml/y\n\tReason: Error response from daemon: manifest unknown\n",
    cause="image-pull",
)
told(
    "py-spy irrelevant: eval error",
    "2023-01-01 10:00:00,100 INFO worker 0: error rate 0.5, failed samples: 0\n" * 3,
    found=False,
)
told("exit code table of amlt", "Job exited with code 1\n", found=False)
