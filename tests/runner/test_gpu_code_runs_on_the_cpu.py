"""Training code for GPUs, unchanged, on a machine without a GPU."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox import contract, gpu_code
from amlstack.sandbox.scale import RehearsalScale
from tests.support.runner.gpu_snippets import PROGRAM, SNIPPETS
from tests.support.runner.runner_lab import CURATED

if TYPE_CHECKING:
    from tests.support.runner.runner_lab import Lab

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(contract.gpus_here() > 0, reason="this machine has a GPU, on which nothing is carried"),
]

# As many tutorials have it: nothing in it runs without CUDA.
CUDA_ONLY = """
import os, sys
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

assert torch.cuda.is_available(), "this script needs GPUs"
dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
device = torch.device("cuda", local_rank)
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).cuda()
model = DDP(model, device_ids=[local_rank], output_device=local_rank)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.cuda.amp.GradScaler()
torch.manual_seed(dist.get_rank())
for step in range(5):
    x = torch.randn(32, 8).pin_memory().to(device, non_blocking=True)
    y = x.sum(1, keepdim=True)
    with torch.autocast(device_type="cuda", dtype=torch.float16):
        loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    mean = loss.detach().clone()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    torch.cuda.synchronize()
    if dist.get_rank() == 0:
        print(f"loss {mean.item():.9f}", flush=True)
part = torch.empty(2, device=device)
dist.reduce_scatter_tensor(part, torch.arange(2 * dist.get_world_size(), dtype=torch.float32, device=device))
assert part.tolist() == [dist.get_world_size() * (2 * dist.get_rank() + at) for at in (0, 1)], part
size, rank = dist.get_world_size(), dist.get_rank()
parts = [torch.zeros(1, device=device) for _ in range(size)]
dist.all_to_all(parts, [torch.full((1,), float(10 * rank + to), device=device) for to in range(size)])
assert [part.item() for part in parts] == [10 * peer + rank for peer in range(size)], parts
dist.barrier(device_ids=[local_rank])
group = dist.new_group(backend="nccl")
dist.all_reduce(torch.ones(1).cuda(), group=group)
assert torch.cuda.device_count() == 2
print("compiler imported", "torch._dynamo.utils" in sys.modules)
print("devices", torch.cuda.device_count(), "peak", torch.cuda.max_memory_allocated())
from amlcpu import communication
print("waits at its end", communication._registered)
dist.destroy_process_group()
"""
OLD = """
import amlcpu.devices
amlcpu.devices._device_module = lambda: None
import torch
from torch.utils import _device
for name, size in (("zeros", (2,)), ("full", ((2,), 1.0)), ("arange", (3,)), ("tensor", ([1, 2],)), ("randperm", (2,))):
    assert getattr(torch, name)(*size, device="cuda").device.type == "cpu", name
known = {each.__name__ for each in _device._device_constructors()}
assert {*amlcpu.devices._FACTORIES} <= known | {"asarray"}, {*amlcpu.devices._FACTORIES} - known
F = torch.nn.functional
del F.scaled_dot_product_attention
from deepspeed.profiling.flops_profiler import profiler
profiler._patch_functionals()
assert hasattr(F, "scaled_dot_product_attention")
profiler._reload_functionals()
assert not hasattr(F, "scaled_dot_product_attention")
"""
FOR_CPU = (
    CUDA_ONLY.replace('assert torch.cuda.is_available(), "this script needs GPUs"\n', "")
    .replace('"nccl"', '"gloo", init_method=init_method, rank=rank, world_size=world_size')
    .replace("torch.cuda.set_device(local_rank)\n", "")
    .replace('torch.device("cuda", local_rank)', 'torch.device("cpu")')
    .replace("torch.cuda.manual_seed_all(0)\n", "")
    .replace(".cuda()", "")
    .replace(", device_ids=[local_rank], output_device=local_rank", "")
    .replace("torch.cuda.amp.GradScaler()", "torch.amp.GradScaler('cpu', enabled=False)")
    .replace(".pin_memory()", "")
    .replace('torch.autocast(device_type="cuda", dtype=torch.float16)', "torch.autocast('cpu', enabled=False)")
    .replace("op=dist.ReduceOp.AVG)", "op=dist.ReduceOp.SUM); mean /= 2")
    .replace("    torch.cuda.synchronize()\n", "")
)
FOR_CPU = FOR_CPU[: FOR_CPU.index("part = torch")] + "dist.destroy_process_group()\n"
AFTER_IT = """
import runpy
store = {"init_method": f"file://{os.getcwd()}/store", "rank": rank, "world_size": size}
runpy.run_path("cpu.py", store)
"""
TORCHRUN = (
    "export PYTHONPATH=. && torchrun --nnodes $AZUREML_NODE_COUNT --nproc_per_node $(nvidia-smi -L | wc -l) "
    "--node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT train.py"
)


def losses(text: str) -> list[str]:
    return re.findall(r"loss ([\d.]+)", text)


def test_a_script_for_cuda_trains_as_the_same_script_for_a_cpu_and_nvidia_smi_counts_its_ranks(lab: Lab) -> None:
    """Both by torchrun below a PYTHONPATH of the job's own, one after the other in the same ranks."""
    assert "cuda" not in FOR_CPU
    code = lab.code({"train.py": CUDA_ONLY + AFTER_IT, "cpu.py": FOR_CPU})
    job = lab.job(TORCHRUN.replace("$AZUREML_NODE_COUNT", "1"), codeId=code, environmentId=CURATED)
    lab.store.scales.put(job, RehearsalScale(1, 2))
    assert lab.run(job).status == "Completed", lab.log(job)
    text = lab.log(job)
    assert len(losses(text)) == 10
    assert losses(text)[:5] == losses(text)[5:]
    assert "devices 2 peak 0" in text
    assert "compiler imported False" in text
    assert "waits at its end True" in text
    assert sorted(gpu_code.joined(lab.folder(job)) or ()) == [(rank, 2) for rank in (0, 0, 1, 1)]
    notes = (lab.folder(job) / "runner.log").read_text()
    assert notes.count(gpu_code.LINE) == 1
    assert "DS_ACCELERATOR=cpu" in notes


def test_an_older_torch_lists_no_factories_and_lacks_what_the_profiler_counts(lab: Lab) -> None:
    code = lab.code({"train.py": OLD})
    job = lab.run(lab.job("python train.py", codeId=code, environmentId=CURATED))
    assert job.status == "Completed", lab.log(job.id)


def test_without_the_shim_the_script_fails_as_torch_says(lab: Lab) -> None:
    code = lab.code({"train.py": "import torch\ntorch.ones(1).cuda()\n"})
    job = lab.job("python train.py", codeId=code, environmentId=CURATED)
    gpu_code.keep_off(lab.home, "job")

    ended = lab.run(job)

    assert ended.status == "Failed"
    assert re.search("NVIDIA driver|not compiled with CUDA|No CUDA GPUs", lab.log(job))
    assert gpu_code.LINE not in (lab.folder(job) / "runner.log").read_text()


@pytest.fixture(scope="module")
def kept() -> dict[str, str]:
    """The results of the snippets: they run in one process, once for all tests."""
    return {}


@pytest.mark.parametrize("name", sorted(SNIPPETS))
def test_a_call_of_code_for_gpus_runs_on_the_cpu(lab: Lab, kept: dict[str, str], name: str) -> None:
    if not kept:
        files = {f"snippets/{each}.py": text for each, text in SNIPPETS.items()}
        code = lab.code({"all.py": PROGRAM, **files})
        # Of the compiler that libraries bring along, no processes of its own.
        alone = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
        job = lab.job("python all.py", codeId=code, environmentId=CURATED, environmentVariables=alone)
        lab.store.scales.put(job, RehearsalScale(1, 2))
        ended = lab.run(job)
        assert ended.status == "Completed", lab.log(job)
        kept.update(json.loads((lab.folder(job) / "outputs" / "found.json").read_text()))
    assert kept[name] == ""
