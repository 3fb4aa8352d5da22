"""Lines of runs that end well and read like errors: alone they are no cause, and they hide none."""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from shapes import TRACEBACK, prefixed

from amlstack.diagnose import diagnose

if TYPE_CHECKING:
    from pathlib import Path

LINES = (
    "wandb: Network error (ReadTimeout), entering retry loop.",
    "wandb: Network error resolved after 0:00:31.105733, resuming normal operation.",
    "INFO:azure.core.pipeline.policies.http_logging_policy:Response status: 404",
    'DEBUG:urllib3.connectionpool:https://x:443 "GET /a HTTP/1.1" 404 None',
    "2023-01-01 10:00:00,100 - WARNING - Retrying (Retry(total=4, connect=None, read=None)) after connection broken by 'ReadTimeoutError(\"Read timed out. (read timeout=10)\")': /simple/torch/",
    "epoch 3 error 0.123 val_error 0.2 timeout 30 killed 0",
    "{'eval_loss': 0.3, 'eval_error_rate': 0.05, 'failed': 0}",
    "Validation error: 0.21",
    "mean absolute error: 3.2",
    "Error rate: 0.1 %",
    "WARNING:root:NaN in batch 3 skipped",
    "[W ProcessGroupNCCL.cpp:1569] Rank 0 using best-guess GPU 0 to perform barrier as devices used by this process are currently unknown. This can potentially cause a hang if this rank to GPU mapping is incorrect. Specify device_ids in barrier() to force use of a particular device.",
    "[W socket.cpp:601] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99 - Cannot assign requested address).",
    "[W socket.cpp:663] [c10d] The client socket has failed to connect to [node-0]:29500 (errno: 111 - Connection refused).",
    "*****************************************",
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded, please further tune the variable for optimal performance in your application as needed.",
    "WARNING:torch.distributed.run:",
    "[2023-05-01 10:00:00,123] [WARNING] [stage3.py:1850:step] 1 pytorch allocator cache flushes since last step. this happens when there is high memory pressure and is detrimental to performance.",
    "[2023-05-01 10:00:00,123] [INFO] [launch.py:428:main] Process 1234 exits successfully.",
    "[2023-05-01 10:00:00,123] [INFO] [config.py:1003:print]   fp16_enabled ................. False",
    "No hostfile specified, using local",
    "[WARNING] [runner.py:196:fetch_hostfile] Unable to find hostfile, will proceed with training with local resources only.",
    "[INFO] [runner.py:550:main] cmd = /usr/bin/python -u -m deepspeed.launcher.launch --world_info=eyJ --master_addr=127.0.0.1 --master_port=29500",
    "I0501 tensorflow/core/platform/cpu_feature_guard.cc:182] This TensorFlow binary is optimized to use available CPU instructions",
    "2023-01-01 10:00:00.1: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT",
    "2023-01-01 10:00:00.1: E tensorflow/compiler/xla/stream_executor/cuda/cuda_dnn.cc:9342] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
    "2023-01-01 10:00:00.1: E tensorflow/core/common_runtime/..: failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
    "--------------------------------------------------------------------------",
    "WARNING: No preset parameters were found for the device that Open MPI",
    "detected:",
    "",
    "  Local host:            node1",
    "  Device name:           mlx5_0",
    "By default, for Open MPI 4.0 and later, infiniband ports on a device",
    "are not used by default.  The intent is to use UCX for these devices.",
    "WARNING: There was an error initializing an OpenFabrics device.",
    "[node1:1234] 3 more processes have sent help message help-mpi-btl-openib.txt / error in device init",
    '[node1:1234] Set MCA parameter "orte_base_help_aggregate" to 0 to see all help / error messages',
    "Read -1, expected 4096, errno = 1",
    "Some weights of BertForSequenceClassification were not initialized from the model checkpoint at bert and are newly initialized: ['classifier.bias']",
    "/opt/conda/lib/python3.10/site-packages/transformers/optimization.py:391: FutureWarning: This implementation of AdamW is deprecated",
    "libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'.",
    "NCCL version 2.14.3+cuda11.7",
    "node-0:1:2 [0] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v6 symbol.",
    "node-0:1:2 [0] NCCL INFO comm 0x7f rank 0 nranks 8 cudaDev 0 busId 100000 - Abort COMPLETE",
    "node-0:1:2 [0] NCCL INFO [Service thread] Connection closed by localRank 0",
    "Checkpoint saved; keeping at most 3 checkpoints, oldest was killed",
    "Loaded checkpoint, missing keys: [] unexpected keys: []",
    "Downloading: 100%|##########| 1/1 [00:00<00:00, 12.1it/s]",
    "The module name is valid. exit status: 0",
    "Process finished with exit code 0",
    "distributed run exited normally",
    "assert passed: no error",
    "Using /home/azureuser/.cache/torch_extensions as PyTorch extensions root...",
    "ninja: no work to do.",
    "Time to load fused_adam op: 0.08 seconds",
    "huggingface_hub.utils: Ignored error while writing commit hash to /home/azureuser/.cache: [Errno 30] Read-only file system",
    "Error in atexit._run_exitfuncs: ",
    "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>",
    "AssertionError: can only test a child process",
    "bash: cannot set terminal process group (1): Inappropriate ioctl for device",
    "bash: no job control in this shell",
    "warn: 'nvidia-smi' not found",
    "cat: /sys/module/nvidia/version: No such file or directory",
    "mkdir: cannot create directory '/outputs': File exists",
    "rm: cannot remove 'x': No such file or directory",
    "Cleaning up all outstanding Run operations, waiting 300.0 seconds",
    "2 items cleaning up...",
    "Cleanup took 0.1 seconds",
)


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_a_healthy_run_is_no_cause(line: str, tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text(f"step 1\n{line}\nstep 2\nstep 3 loss 0.2\n")
    assert not diagnose([tmp_path]).found


def test_all_of_them_together_hide_no_exception(tmp_path: Path) -> None:
    healthy = "".join(f"step 1\n{line}\n" for line in LINES)
    (tmp_path / "out.log").write_text(healthy)
    assert not diagnose([tmp_path]).found
    (tmp_path / "out.log").write_text(healthy + prefixed("[rank3]: ", TRACEBACK + "KeyError: 'x'"))
    verdict = diagnose([tmp_path])
    assert (verdict.cause, verdict.rank, verdict.text) == ("python-exception", 3, "KeyError: 'x'")
