"""Lines as frameworks, drivers and services write them, by the code that they must give. Written for these tests."""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

LINES: dict[str, tuple[str, ...]] = {
    "cuda-out-of-memory": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.15 GiB",
        "RuntimeError: CUDA error: out of memory",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[64,1024,1024]",
    ),
    "host-out-of-memory": (
        "MemoryError",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 37.3 GiB for an array with shape (5000000, 1000)",
        "[81234.5] Memory cgroup out of memory: Killed process 4711 (python) total-vm:201326592kB",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:83] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes",
    ),
    "shared-memory-exhausted": (
        "RuntimeError: unable to open shared memory object </torch_71_2468_0> in read-write mode: No space left on device (28)",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        "RuntimeError: unable to write to file </torch_812_1_4>",
        "OSError: [Errno 28] No space left on device: '/dev/shm/sem.mp-x2b1'",
        "[node7:4711] Signal: Bus error (7)",
        "RuntimeError: DataLoader worker (pid 812) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
    ),
    "nccl-shared-memory": (
        "gpu3:81:133 [3] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-A7xK2m to 33030532 bytes",
        "gpu3:81:133 [3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device, Error while creating shared memory segment nccl-shm-recv-1 (size 9637888)",
    ),
    "data-loader-worker-killed": (
        "RuntimeError: DataLoader worker (pid(s) 91, 92) exited unexpectedly",
        "RuntimeError: DataLoader worker (pid 4410) is killed by signal: Aborted.",
    ),
    "memlock-limit": (
        "gpu1:55:90 [1] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
        "mlx5_ib0: ibv_create_cq(cqe=4096) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)",
    ),
    "duplicate-gpu": (
        "gpu1:55:90 [0] init.cc:872 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 100000",
        "Duplicate GPU detected : rank 5 and rank 4 both on CUDA device 2000",
    ),
    "invalid-device-ordinal": ("RuntimeError: CUDA error: invalid device ordinal",),
    "no-gpu-visible": (
        "RuntimeError: No CUDA GPUs are available",
        "AssertionError: Torch not compiled with CUDA enabled",
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
        "ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
    ),
    "nccl-version-mismatch": ("gpu1:55:90 [0] NCCL WARN NCCL version mismatch: 2.18.5 against 2.20.3",),
    "no-socket-interface": (
        "gpu1:55:90 [0] bootstrap.cc:40 NCCL WARN Bootstrap : no socket interface found",
        "gpu1:55:90 [0] misc/socket.cc:458 NCCL WARN No interface found in the same subnet",
    ),
    "nccl-topology": ("gpu1:55:90 [0] graph/xml.cc:306 NCCL WARN Could not open XML topology file /opt/topo.xml",),
    "nccl-watchdog-timeout": (
        "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=811, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.",
        "[PG ID 0 PG GUID 0(default_pg) Rank 2] Exception (either an error or timeout) detected by watchdog at work: 811, last enqueued NCCL work: 815, last completed NCCL work: 810.",
    ),
    "nccl-heartbeat": (
        "[Rank 4] Received a dump signal due to a collective timeout from rank 2 and we will try our best to dump the debug info.",
        "[Rank 1] To avoid data inconsistency, we are taking the entire process down.",
    ),
    "peer-gone": (
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.5]:41712",
        "gpu1:55:90 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer gpu2<45010>",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "BrokenPipeError: [Errno 32] Broken pipe",
        "torch.distributed.DistNetworkError: failed to recv, got 0 bytes",
        "RuntimeError: NCCL communicator was aborted on rank 3.",
    ),
    "network-unreachable": (
        "gpu1:55:90 [0] include/socket.h:409 NCCL WARN Net : Connect to 10.0.0.9<54263> failed : No route to host",
        "gpu1:55:90 [0] misc/socket.cc:480 NCCL WARN socketStartConnect: Connect to 10.0.0.9<38007> failed : Software caused connection abort",
        "gpu1:55:90 [0] include/socket.h:360 WARN Call to connect failed : Connection timed out",
        "OSError: [Errno 113] No route to host",
    ),
    "nccl-call-failed": (
        "gpu1:55:90 [0] misc/socket.cc:538 NCCL WARN Net : Connection from 10.0.0.7<40212> failed : Software caused connection abort",
        "gpu1:55:90 [3] proxy.cc:1085 NCCL WARN Proxy Call to rank 1 failed (Connect)",
    ),
    "nccl-warning": ("gpu1:47:213 [3] include/alloc.h:48 NCCL WARN [Rem Allocator] Allocation failed (segment 0, fd 94)",),
    "hangup": (
        "W0920 09:10:41.195000 84933 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 85005 closing signal SIGHUP",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 792735 got signal: 1",
    ),
    "gloo-timeout": (
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 30000ms for recv operation to complete",
        "RuntimeError: Gloo connectFullMesh failed with [../gloo/transport/tcp/pair.cc:144] no error",
    ),
    "barrier-not-joined": (
        "RuntimeError: [Rank 0]: Ranks 5, 6 failed to pass monitoredBarrier in 60000 ms",
        "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 5000 ms",
    ),
    "collective-mismatch": (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(OpType=ALLREDUCE)",
        "RuntimeError: DDP expects same model across all ranks, but Rank 1 has 12 params, while rank 0 has inconsistent 14 params. verifies params",
    ),
    "ddp-unused-parameters": (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.",
        "RuntimeError: Expected to mark a variable ready only once. This error is caused by reentrant backward passes",
    ),
    "nccl-invalid-usage": ("ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",),
    "nccl-system-error": (
        "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1269, unhandled system error, NCCL version 2.14.3",
        "ncclInternalError: Internal check failed.",
    ),
    "infiniband-link": (
        "gpu1:55:90 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<40212> with error 12, opcode 0, len 0, vendor err 129",
        "[gpu1:4711:0:4711] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_ib2:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)",
        "gpu1:55:90 [0] transport/net_ib.cc:97 NCCL WARN NET/IB : mlx5_ib1:1 async fatal event: local work queue error",
        "Completion with status IBV_WC_RETRY_EXC_ERR",
    ),
    "infiniband-setup": (
        "gpu1:55:90 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
        "gpu1:55:90 [0] NCCL WARN Call to ibv_create_qp failed",
    ),
    "ucx-error": ("[1700000000.123456] [gpu1:4711:0]  select.c:514  UCX  ERROR   no active messages transport to gpu2",),
    "hcoll-error": ("Error: coll_hcoll_module.c:310 - mca_coll_hcoll_comm_query() Hcol library init failed",),
    "no-infiniband": (
        "gpu1:55:90 [0] NCCL INFO NET/IB : No device found.",
        "gpu1:55:90 [0] NCCL INFO Using network Socket",
        "gpu1:55:90 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.",
        "gpu1:55:90 [0] NCCL INFO NET/IB : Using [0]mlx5_an0:1/RoCE [RO]; OOB eth0:10.0.0.6<0>",
        "gpu1:55:90 [0] NCCL INFO Failed to open libibverbs.so[.1]",
    ),
    "gpu-fell-off-the-bus": (
        "[  912.1] NVRM: GPU at PCI:0000:17:00: GPU-1a has fallen off the bus.",
        "NVRM: Xid (PCI:0001:00:00): 79, pid=4711, GPU has fallen off the bus.",
    ),
    "gpu-ecc": (
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "NVRM: Xid (PCI:0001:00:00): 48, pid=811, An uncorrectable double bit error (DBE) has been detected: DBE detected",
    ),
    "gpu-xid": ("kernel: NVRM: Xid (PCI:0002:00:00): 31, pid=4711, name=python, Ch 00000008",),
    "gpu-illegal-access": (
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: device-side assert triggered",
        "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed.",
    ),
    "no-kernel-image": ("RuntimeError: CUDA error: no kernel image is available for execution on the device",),
    "gpu-unavailable": (
        "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
    ),
    "illegal-instruction": ("/bin/bash: line 1:  4711 Illegal instruction     (core dumped) python train.py",),
    "port-in-use": (
        "OSError: [Errno 98] Address already in use",
        "RuntimeError: The server socket has failed to listen on any local network address. useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use",
        "[E socket.cpp:923] [c10d] The server socket has failed to bind to 0.0.0.0:29500 (errno: 98 - Address already in use).",
    ),
    "name-not-resolved": (
        "socket.gaierror: [Errno -2] Name or service not known",
        "[E socket.cpp:957] [c10d] The IPv6 network addresses of (node-0.train, 29500) cannot be retrieved (gai error: -2 - Name or service not known).",
    ),
    "launch-variable-missing": (
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable MASTER_ADDR expected, but not set",
        "KeyError: 'LOCAL_RANK'",
        "KeyError: 'OMPI_COMM_WORLD_RANK'",
        "KeyError: 'AZ_BATCH_MASTER_NODE'",
    ),
    "world-size-mismatch": (
        "torch.distributed.DistStoreError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1 (world_size=8, worker_count=6, timeout=0:30:00)",
        "ValueError: invalid rank 8 for a world_size of 8: rank must be less than world_size",
    ),
    "rendezvous-timeout": (
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.",
        "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/2 clients joined.",
        "[E socket.cpp:793] [c10d] The client socket has timed out after 60s while trying to connect to (10.0.0.4, 29400).",
    ),
    "connection-refused": ("ConnectionRefusedError: [Errno 111] Connection refused",),
    "missing-launcher": ("/bin/bash: line 1: torchrun: command not found",),
    "signal-9-likely-out-of-memory": (
        "mpirun noticed that process rank 5 with PID 812 on node gpu2 exited on signal 9 (Killed).",
        "prterun noticed that process rank 5 with PID 812 on node gpu2 exited on signal 9 (Killed).",
        "/bin/bash: line 1:   812 Killed                  python train.py",
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 2 (pid: 812) of binary: /opt/conda/bin/python",
        "[2024-02-01 10:00:00,000] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=3'] exits with return code = -9",
        "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL",
        "command terminated with exit code 137",
        "subprocess.CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.",
    ),
    "mpi-process-failed": (
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
        "Primary job  terminated normally, but 1 process returned",
        "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
    ),
    "mpi-slots": ("There are not enough slots available in the system to satisfy the 16",),
    "mpi-peer-disconnected": (
        "An MPI communication peer process has unexpectedly disconnected.  This",
        "[gpu1][[6410,1],3][btl_tcp_frag.c:241:mca_btl_tcp_frag_recv] mca_btl_tcp_frag_recv: readv failed: Connection reset by peer (104)",
    ),
    "mpi-daemon-lost": ("ORTE has lost communication with a remote daemon.",),
    "mpi-ssh": ("ssh: connect to host 10.0.0.5 port 22: Connection refused", "Host key verification failed."),
    "mpi-executable-missing": ("mpirun was unable to find the specified executable file, and therefore",),
    "mpi-root-refused": ("mpirun has detected an attempt to run as root.",),
    "mpi-error": ("*** An error occurred in MPI_Allreduce", "*** MPI_ERR_TRUNCATE: message truncated"),
    "horovod-shutdown": (
        "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on one of the ranks",
    ),
    "horovod-mismatch": ("HorovodInternalError: Mismatched allreduce tensor shapes: One rank sent a tensor of shape [8, 10], but another rank sent a tensor of shape [7, 10].",),
    "horovod-stalled": ("HorovodAllreduce_grads_3 [missing ranks: 2, 5]",),
    "horovod-not-built": ("ImportError: Extension horovod.torch has not been built.",),
    "torchrun-child-failed": (
        "E0801 13:23:20.000000 3297 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 3 (pid: 33054) of binary: /usr/bin/python3",
    ),
    "told-to-stop": (
        "W0801 13:23:17.366000 3297 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 33051 closing signal SIGTERM",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 71 got signal: 15",
        "[2024-02-01 10:00:00,000] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 3966",
    ),
    "interrupted": ("KeyboardInterrupt",),
    "deepspeed-child-failed": ("['/usr/bin/python', '-u', 'train.py', '--local_rank=1'] exits with return code = 1",),
    "segmentation-fault": (
        "Fatal Python error: Segmentation fault",
        "[gpu1:4711] Signal: Segmentation fault (11)",
        "mpirun noticed that process rank 1 with PID 0 on node gpu1 exited on signal 11 (Segmentation fault).",
        "[gpu1:29733:0:29762] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x7f)",
    ),
    "deepspeed-config": (
        "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 32 != 4 * 1 * 4",
        "deepspeed.runtime.config_utils.DeepSpeedConfigError: zero stage must be below 4",
    ),
    "deepspeed-hostfile": ("ValueError: Hostfile is not formatted correctly, unable to proceed with training.",),
    "deepspeed-op-build": (
        "RuntimeError: Error building extension 'cpu_adam'",
        "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 12.4 does not match",
    ),
    "mpi-interface": (
        "[node1][[30561,1],0][btl_tcp_endpoint.c:626:mca_btl_tcp_endpoint_recv_connect_ack] received unexpected process identifier [[30561,1],2]",
        "WARNING: Open MPI accepted a TCP connection from what appears to be a",
    ),
    "slurm-step-ended": (
        "slurmstepd: error: *** STEP 812.0 ON gpu1 CANCELLED AT 2024-02-01T10:00:00 ***",
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    ),
    "slurm-task-failed": ("srun: error: gpu3: task 9: Exited with exit code 1",),
    "lightning-child-failed": (
        "[rank: 1] Child process with PID 30211 terminated with code 1. Forcefully terminating all other processes",
    ),
    "remote-shell-ended": ("pdsh@head: worker-1: ssh exited with exit code 1",),
    "wrong-arguments": ("train.py: error: unrecognized arguments: --local-rank=0",),
    "tensorflow-cluster-config": ("ValueError: TF_CONFIG is invalid: no task in it",),
    "tensorflow-peer-lost": (
        "2024-05-25 11:10:57.934361: E tensorflow/core/common_runtime/base_collective_executor.cc:249] BaseCollectiveExecutor::StartAbort DEADLINE_EXCEEDED: Deadline Exceeded",
        "tensorflow.python.framework.errors_impl.UnavailableError: failed to connect to all addresses",
        "E external/local_tsl/coordination_service.cc:1210] /job:worker/replica:0/task:1 unexpectedly disconnected: UNAVAILABLE: the worker is down",
    ),
    "accelerate-config": ("ValueError: You must configure this first: run accelerate config",),
    "lightning-config": ("lightning.fabric.utilities.exceptions.MisconfigurationException: You requested gpu: [0, 1, 2, 3]",),
    "node-preempted": (
        "AzureMLCompute job failed. PreemptionError: Nodes of this job got pre-empted. Reason: Received pre-emption warning signal",
        "Node 1 was lost while the job ran; its outputs/ are gone.",
    ),
    "quota": (
        "JobNodeCountExceedsCoreQuota: the job asks for 4 nodes of 96 cores",
        "Operation could not be completed as it results in exceeding approved standardNDASv4 Family Cores quota",
    ),
    "image-pull": (
        'Error response from daemon: manifest for myregistry.azurecr.io/train:1 not found: manifest unknown',
        "Failed to pull Docker image myregistry.azurecr.io/train:1",
    ),
    "environment-build": ("ERROR: Could not find a version that satisfies the requirement torch==9.9",),
    "data-mount": (
        "Failed to mount input data: StreamAccessException was caused by AuthenticationException",
        "OSError: [Errno 107] Transport endpoint is not connected: '/mnt/azureml/cr/j/data'",
        "AuthorizationPermissionMismatch: This request is not authorized to perform this operation using this permission.",
    ),
    "authentication": (
        "azure.core.exceptions.ClientAuthenticationError: DefaultAzureCredential failed to retrieve a token from the included credentials.",
        "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/api/models/x",
    ),
    "service-timeout": (
        "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='westeurope.api.azureml.ms', port=443): Read timed out. (read timeout=120)",
        "urllib3.exceptions.MaxRetryError: HTTPSConnectionPool(host='x', port=443): Max retries exceeded with url: /api",
    ),
    "job-timeout": ("JobTimeout: The job ran longer than its limit of 60 s (limits.timeout) and was cancelled.",),
    "compute-gone": ("The compute gpu-cluster was deleted while the job was queued",),
    "job-cancelled": ("Run was canceled by the user", "slurmstepd: error: *** JOB 812 ON gpu1 CANCELLED AT 2024-02-01T10:00:00 ***"),
    "azureml-user-error": (
        "AzureMLCompute job failed. ExecutionFailed: [REDACTED] exit_codes: 1",
        "Execution failed: rank 2 of 4 (node 1, local rank 0) exited with code 1",
        "Submitted script failed with a non-zero exit code; see the driver log file for details.",
    ),
    "missing-module": ("ModuleNotFoundError: No module named 'apex'",),
    "library-mismatch": (
        "ImportError: /opt/conda/lib/python3.10/site-packages/flash_attn_2_cuda.so: undefined symbol: _ZN2at4_ops5zeros4callE",
        "ImportError: cannot import name 'amp' from 'apex' (unknown location)",
        "OSError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
    ),
    "disk-full": (
        "OSError: [Errno 122] Disk quota exceeded: '/home/user/.cache'","OSError: [Errno 28] No space left on device", "RuntimeError: [enforce fail at inline_container.cc:424] . unexpected pos 512 vs 400"),
    "permission-denied": ("PermissionError: [Errno 13] Permission denied: '/mnt/data/out.pt'",),
    "file-missing": (
        "FileNotFoundError: [Errno 2] No such file or directory: '/mnt/data/train.bin'",
        "python: can't open file '/workspace/tarin.py': [Errno 2] No such file or directory",
    ),
    "too-many-open-files": ("OSError: [Errno 24] Too many open files", "RuntimeError: received 0 items of ancdata"),
    "threads-exhausted": ("RuntimeError: can't start new thread",),
    "checkpoint-mismatch": (
        "RuntimeError: Error(s) in loading state_dict for GPT:",
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
        "_pickle.UnpicklingError: invalid load key, '\\x0a'.",
    ),
    "loss-not-finite": (
        "ValueError: Loss is nan, stopping training",
        "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.",
        "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
    ),
    "aborted": ("python: malloc.c:2617: double free or corruption (!prev)", "terminate called after throwing an instance of 'std::out_of_range'"),
    "launcher-wrapper": (
        "subprocess.CalledProcessError: Command '['/usr/bin/python', 'train.py']' returned non-zero exit status 1.",
        "torch.multiprocessing.spawn.ProcessRaisedException:",
    ),
}  # fmt: skip

HARMLESS = (
    "Epoch 3: 100%|██████████| 512/512 [00:41<00:00, 12.4it/s, loss=0.213, v_num=7]",
    "step 200 loss 2.1331 lr 0.0003 tokens/s 181223",
    "INFO:root:saved checkpoint outputs/step_200.pt",
    "val_error 0.23 top1 failure rate 0.01",
    "mean squared error: 0.031",
    "Training finished without errors.",
    "0 failed, 3 retried, nothing missing",
    "[INFO] error_rate=0.01 signal-to-noise 12.1",
    "gpu1:55:90 [0] NCCL INFO NET/IB : Using [0]mlx5_ib0:1/IB [RO]; OOB eth0:10.0.0.4<0>",
    "gpu1:55:90 [0] NCCL INFO Using network IB",
    "gpu1:55:90 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared object file: No such file or directory",
    "WARNING:urllib3.connectionpool:Retrying (Retry(total=4, connect=5, read=4)) after connection broken by 'ReadTimeoutError(...)': /api",
    "  if error: raise RuntimeError('never printed by itself')",
)
"""Lines of healthy runs: none of them is a cause."""
