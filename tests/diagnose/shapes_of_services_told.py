"""Shapes of logs in public issues: what services, NCCL, Open MPI and launchers say when it is somebody else's fault, or everybody's.

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
    "posix_fallocate",
    "node-1:88:120 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\nnode-1:88:120 [1] NCCL INFO include/shm.h:41 -> 2\n\nnode-1:88:120 [1] include/shm.h:48 NCCL WARN Error while creating shared memory segment nccl-shm-recv-5e6 (size 9637888)\n"
    + TRACEBACK
    + "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:911, unhandled system error, NCCL version 2.7.8\nncclSystemError: System call (socket, malloc, munmap, etc) failed.\n",
    cause="nccl-shared-memory",
)
told(
    "last error shm",
    prefixed(
        "[rank1]: ",
        TRACEBACK
        + "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.18.1\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. \nLast error:\nError while creating shared memory segment /dev/shm/nccl-fUJkEY (size 5767520)",
    ),
    cause="nccl-shared-memory",
)
told(
    "sighup",
    "WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers\nWARNING:torch.distributed.elastic.multiprocessing.api:Sending process 123 closing signal SIGHUP\nWARNING:torch.distributed.elastic.multiprocessing.api:Sending process 124 closing signal SIGHUP\n"
    + TRACEBACK.replace("/workspace/run.py", "/opt/conda/bin/torchrun")
    + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 99 got signal: 1\n",
    cause="hangup",
)
told(
    "hvd nccl sys",
    prefixed(
        "[1,2]<stderr>:",
        TRACEBACK + "horovod.common.exceptions.HorovodInternalError: ncclCommInitRank failed: unhandled system error",
    ),
    cause="nccl-system-error",
    rank=2,
)
told(
    "mpi tcp firewall",
    """--------------------------------------------------------------------------
A process or daemon was unable to complete a TCP connection
to another process:
  Local host:    node1
  Remote host:   node2
This is usually caused by a firewall on the remote host. Please
check that any firewall (e.g., iptables) has been disabled and
try again.
--------------------------------------------------------------------------
""",
    cause="network-unreachable",
)
told(
    "mpi unexpected identifier",
    "[node1][[30561,1],0][btl_tcp_endpoint.c:626:mca_btl_tcp_endpoint_recv_connect_ack] received unexpected process identifier [[30561,1],2]\n",
    cause="mpi-interface",
)
told(
    "ompi no peer entry",
    """--------------------------------------------------------------------------
Open MPI detected an inbound MPI TCP connection request from a peer
that appears to be part of this MPI job (i.e., it identified itself as
part of this Open MPI job), but it is from an IP address that is
unexpected.  This is highly unusual.
--------------------------------------------------------------------------
""",
    cause="mpi-interface",
)
told(
    "elastic -9",
    """ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 3 (pid: 2311) of binary: /usr/bin/python3
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
=====================================================
run.py FAILED
-----------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
-----------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2023-05-21_14:28:17
  host      : vm1
  rank      : 3 (local_rank: 3)
  exitcode  : -9 (pid: 2311)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 2311
=====================================================
""",
    cause="signal-9-likely-out-of-memory",
    rank=3,
    node="vm1",
)
told(
    "aml disk full",
    "AzureMLCompute job failed. DiskFullError: Disk full while running job. Please consider reducing amount of data accessed, or upgrading VM SKU. Total space: 63 GiB, available space: 0 MiB (under AZ_BATCH_NODE_ROOT_DIR).\n",
    cause="disk-full",
)
told(
    "aml exit 1 rank",
    "Execution failed. User process 'Rank 1' exited with status code 1. Please check log file 'user_logs/std_log_process_01.txt' for error details.\n",
    found=False,
    rank=1,
)
told(
    "aml exit -9 rank",
    "Execution failed. User process 'Rank 2' exited with status code -9. Please check log file 'user_logs/std_log_process_02.txt' for error details.\n",
    cause="signal-9-likely-out-of-memory",
    rank=2,
)
told(
    "aml inline tb",
    "Execution failed. User process 'Rank 0' exited with status code 1. Please check log file 'user_logs/std_log_process_00.txt' for error details. Error: Traceback (most recent call last):\n  File \"run.py\", line 61, in main\n    x = d['k']\nKeyError: 'k'\n",
    cause="python-exception",
    text="KeyError: 'k'",
    rank=0,
)
told(
    "aml json msg",
    '{"error": {"code": "UserError", "message": "{\\"NonCompliant\\":\\"Process \'worker 3\' exited with code 1 and error message \'Execution failed. Process exited with status code 1. Error: Traceback (most recent call last):\\\\n  File \\\\\\"run.py\\\\\\", line 61, in main\\\\n    x = d[0]\\\\nIndexError: list index out of range\\\\n\'\\"}"}}\n',
    cause="python-exception",
    at=("run.py", 61, "main"),
)
told(
    "bash bus",
    "/bin/bash: line 1:  1234 Bus error               (core dumped) python run.py\n",
    cause="shared-memory-exhausted",
)
told(
    "nccl cuda oom warn",
    "node-1:88:120 [1] enqueue.cc:215 NCCL WARN Cuda failure 'out of memory'\nnode-1:88:120 [1] NCCL INFO init.cc:98 -> 1\n",
    cause="cuda-out-of-memory",
)
told(
    "nccl ordinal warn",
    "node-1:88:120 [1] init.cc:215 NCCL WARN Cuda failure 'invalid device ordinal'\n",
    cause="invalid-device-ordinal",
)
told(
    "nccl abort connect",
    prefixed(
        "[rank1]: ",
        TRACEBACK
        + "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, unhandled system error, NCCL version 2.18.1\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. It can be also caused by unexpected exit of a remote peer, you can check NCCL warnings for failure reason and see if there is connection closure by a peer.\nLast error:\nsocketStartConnect: Connect to 172.17.0.2<40211> failed : Software caused connection abort",
    ),
    cause="network-unreachable",
)
told(
    "modify_qp",
    "node-1:88:120 [1] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out\n",
    cause="infiniband-setup",
)
told(
    "name res",
    "[W socket.cpp:601] [c10d] The IPv6 network addresses of (host1, 29500) cannot be retrieved (gai error: -2 - Name or service not known).\n"
    * 3,
    cause="name-not-resolved",
)
told(
    "env rank missing",
    TRACEBACK
    + "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set\n",
    cause="launch-variable-missing",
)
told(
    "io error mount",
    TRACEBACK
    + "OSError: [Errno 5] Input/output error: '/mnt/azureml/cr/j/abc/cap/data-capability/wd/data/train.bin'\n",
    cause="data-mount",
)
told(
    "all ranks oom",
    "".join(
        prefixed(
            f"[rank{r}]: ",
            TRACEBACK
            + f"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU {r}; 39.59 GiB total capacity)",
        )
        for r in range(4)
    ),
    cause="cuda-out-of-memory",
    rank=None,
)
told(
    "all ranks same exc",
    {
        f"user_logs/std_log_process_{r:02d}.txt": TRACEBACK + "ValueError: batch size must be divisible"
        for r in range(4)
    },
    cause="python-exception",
    rank=None,
)
told(
    "one rank key error others victims",
    {
        f"user_logs/std_log_process_{r:02d}.txt": TRACEBACK
        + (
            "KeyError: 'x'"
            if r == 2
            else "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, remote process exited or there was a network error, NCCL version 2.18.1\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
        )
        for r in range(4)
    },
    cause="python-exception",
    rank=2,
)
told(
    "worker exited unexpectedly with key",
    'Traceback (most recent call last):\n  File "/opt/conda/lib/python3.10/site-packages/torch/utils/data/dataloader.py", line 1133, in _try_get_data\n    data = self._data_queue.get(timeout=timeout)\nRuntimeError: DataLoader worker (pid 812) is killed by signal: Segmentation fault. \n\nThe above exception was the direct cause of the following exception:\n\n'
    + TRACEBACK
    + "RuntimeError: DataLoader worker (pid(s) 812) exited unexpectedly\n",
    cause="segmentation-fault",
)
told(
    "launch.py old",
    "subprocess.CalledProcessError: Command '['/usr/bin/python3', '-u', 'run.py', '--local_rank=3']' returned non-zero exit status 1.\n",
    found=False,
)
told(
    "kill victims",
    "Killing subprocess 1\nKilling subprocess 2\n" + TRACEBACK + "KeyError: 'q'\n",
    cause="python-exception",
    text="KeyError: 'q'",
)
told(
    "exc then killing",
    TRACEBACK
    + "KeyError: 'q'\nKilling subprocess 1\nKilling subprocess 2\nTraceback (most recent call last):\n  File \"/opt/conda/lib/python3.8/site-packages/torch/distributed/launch.py\", line 320, in sigkill_handler\n    raise subprocess.CalledProcessError(returncode=last_return_code, cmd=cmd)\nsubprocess.CalledProcessError: Command '['/usr/bin/python3', '-u', 'run.py', '--local_rank=3']' returned non-zero exit status 1.\n",
    cause="python-exception",
    text="KeyError: 'q'",
)
told(
    "elastic warn then exc",
    "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 1 closing signal SIGTERM\n"
    "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 2 (pid: 6) of binary: /usr/bin/python\n",
    found=False,
    rank=2,
)
told(
    "exc then sigterm",
    prefixed("", TRACEBACK + "AttributeError: 'NoneType' object has no attribute 'shape'")
    + "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 1 closing signal SIGTERM\nERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 2 (pid: 6) of binary: /usr/bin/python\n",
    cause="python-exception",
    rank=2,
)
told(
    "wandb noise",
    "wandb: ERROR Error while calling W&B API: rate limit exceeded\nwandb: WARNING retrying\nstep 1\nstep 2\n"
    + TRACEBACK
    + "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0\n",
    found=True,
)
told(
    "tf coord",
    "2023-06-01 10:00:00.123456: E tensorflow/core/distributed_runtime/coordination/coordination_service_agent.cc:494] Failed to disconnect from coordination service with status: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: Shutdown::1 [type.googleapis.com/tensorflow.CoordinationServiceError='']\nProceeding with agent shutdown anyway.\n",
    found=False,
)
told(
    "tf task down",
    "tensorflow.python.framework.errors_impl.UnavailableError: Graph execution error:\n\ntask /job:worker/replica:0/task:2 heartbeat timeout. This indicates that the remote task has failed, got preempted, or crashed unexpectedly.\n",
    found=False,
)
told(
    "aml preempt",
    "2023-01-01T10:00:00Z Node was preempted, Job will be requeued. Please see https://aka.ms/azureml-vm-preemption\n",
    cause="node-preempted",
)
told(
    "oom dmesg",
    "[12345.678] Out of memory: Killed process 4242 (python) total-vm:123456kB, anon-rss:99999kB\n[12345.679] oom_reaper: reaped process 4242 (python)\n",
    cause="host-out-of-memory",
)
told(
    "conda env",
    "Pip subprocess error:\nERROR: Could not find a version that satisfies the requirement torch==9.9 (from versions: 1.0)\nERROR: No matching distribution found for torch==9.9\n\nCondaEnvException: Pip failed\n",
    cause="environment-build",
)
told("deepspeed slot", TRACEBACK + "ValueError: No slot '4' specified on host 'worker-0'\n", cause="python-exception")
told("ds mpi4py", TRACEBACK + "ModuleNotFoundError: No module named 'mpi4py'\n", cause="missing-module")
told(
    "world size mismatch hang",
    "".join(
        f"[E ProcessGroupGloo.cpp:137] Rank 0 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank {r}. Please check rank {r} logs for faulty rank.\n"
        for r in (3,)
    ),
    cause="rank-did-not-join",
    rank=3,
)
told(
    "monitored",
    TRACEBACK
    + "RuntimeError: Rank 3 failed to pass monitoredBarrier in 30000 ms\n Original exception: \n[../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 30000ms for recv operation to complete\n",
    cause="rank-did-not-join",
    rank=3,
)
told(
    "flight dump",
    "[rank0]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 0] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=3\n[rank0]:[F ProcessGroupNCCL.cpp:1153] [PG 0 Rank 0] [PG 0 Rank 0] ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress in monitoring enqueued collectives.\n",
    found=False,
)
