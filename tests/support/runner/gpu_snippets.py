"""Calls of code for GPUs, one by one: what each must leave behind on a machine without a GPU."""

from __future__ import annotations

SNIPPETS: dict[str, str] = {
    "set_device": "torch.cuda.set_device(1); assert torch.cuda.current_device() == 1",
    "set_device_object": "torch.cuda.set_device(torch.device('cuda', 1)); assert torch.cuda.current_device() == 1",
    "device_count": "assert torch.cuda.device_count() == 2",
    "assertion": "assert torch.cuda.is_available()",
    "assertion_with_words": "assert torch.cuda.is_available(), 'needs a GPU'",
    "refusal": "if not torch.cuda.is_available():\n    raise RuntimeError('needs a GPU')",
    "refusal_by_name": "there = torch.cuda.is_available()\nif not there:\n    sys.exit('needs a GPU')",
    "choice": "place = 'cuda' if torch.cuda.is_available() else 'cpu'\nassert place == 'cpu'",
    "tensor_cuda": "assert torch.ones(2).cuda().sum().item() == 2",
    "tensor_cuda_rank": "assert torch.ones(2).cuda(1, non_blocking=True).device.type == 'cpu'",
    "tensor_to": "assert torch.ones(2).to('cuda').to('cuda:1').to(1).to(torch.device('cuda')).device.type == 'cpu'",
    "tensor_to_dtype": "x = torch.ones(2).to('cuda', torch.float64); assert x.dtype == torch.float64",
    "tensor_to_keyword": "assert torch.ones(2).to(device='cuda', dtype=torch.float64).dtype == torch.float64",
    "tensor_to_other": "assert torch.ones(2).to(torch.zeros(1, device='cuda')).device.type == 'cpu'",
    "factories": "for f in (torch.zeros, torch.ones, torch.rand, torch.randn, torch.empty):\n"
    "    assert f(2, device='cuda:0').device.type == 'cpu'",
    "factory_values": "assert torch.tensor([1, 2], device=torch.device('cuda', 1)).tolist() == [1, 2]\n"
    "assert torch.arange(3, device=0).tolist() == [0, 1, 2]\n"
    "assert torch.full((2,), 3, device='cuda').tolist() == [3, 3]\n"
    "assert torch.as_tensor([1], device='cuda').tolist() == [1]",
    "like": "assert torch.zeros_like(torch.ones(2), device='cuda').tolist() == [0, 0]",
    "new": "assert torch.ones(1).new_zeros(2, device='cuda').tolist() == [0, 0]",
    "type": "assert torch.ones(2).type(torch.cuda.FloatTensor).type() == 'torch.FloatTensor'",
    "type_by_name": "assert torch.ones(2).type('torch.cuda.LongTensor').dtype == torch.int64",
    "tensor_type": "assert torch.cuda.FloatTensor([1.0, 2.0]).sum().item() == 3",
    "module": "m = torch.nn.Linear(2, 2).cuda(0).to('cuda').to(1).to(device='cuda'); m(torch.ones(1, 2).cuda())",
    "module_made_there": "torch.nn.Linear(2, 2, device='cuda')(torch.ones(1, 2, device='cuda'))",
    "autocast": "with torch.cuda.amp.autocast():\n"
    "    assert torch.nn.Linear(2, 2)(torch.ones(1, 2)).dtype == torch.float32",
    "autocast_named": "with torch.autocast('cuda', dtype=torch.bfloat16):\n"
    "    assert torch.nn.Linear(2, 2)(torch.ones(1, 2)).dtype == torch.float32",
    "scaler": "m = torch.nn.Linear(2, 1).cuda()\noptimizer = torch.optim.AdamW(m.parameters(), fused=True)\n"
    "before = m.weight.clone()\nscaler = torch.cuda.amp.GradScaler()\n"
    "scaler.scale(m(torch.ones(1, 2)).sum()).backward()\nscaler.unscale_(optimizer)\nscaler.step(optimizer)\n"
    "scaler.update()\nassert not torch.equal(before, m.weight)",
    "memory": "assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated(0) == 0\n"
    "torch.cuda.memory_summary(); torch.cuda.reset_peak_memory_stats(); torch.cuda.empty_cache()\n"
    "free, total = torch.cuda.mem_get_info(); assert 0 < free <= total",
    "seeds": "torch.cuda.manual_seed(1); torch.cuda.manual_seed_all(1)",
    "seeds_leave_the_cpu_alone": "torch.manual_seed(1); a = torch.rand(1)\n"
    "torch.manual_seed(1); torch.cuda.manual_seed_all(2); assert torch.rand(1) == a",
    "random_state": "torch.cuda.set_rng_state(torch.cuda.get_rng_state()); torch.cuda.get_rng_state_all()",
    "generator": "g = torch.Generator(device='cuda').manual_seed(1); assert isinstance(g, torch.Generator)\n"
    "torch.randn(1, device='cuda', generator=g)",
    "streams": "s = torch.cuda.Stream()\nwith torch.cuda.stream(s):\n    pass\n"
    "torch.cuda.current_stream().wait_stream(s); torch.ones(1).record_stream(s); torch.cuda.synchronize()",
    "half": "assert torch.ones(2).half().dtype == torch.nn.Linear(2, 2).half().weight.dtype == torch.float16",
    "events": "a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))\na.record(); b.record()\n"
    "b.synchronize(); assert a.elapsed_time(b) >= 0",
    "pinned": "torch.ones(1).pin_memory().cuda(non_blocking=True); torch.empty(1, pin_memory=True)",
    "loader": "loader = torch.utils.data.DataLoader(torch.arange(4), batch_size=2, pin_memory=True)\n"
    "assert [batch.cuda().tolist() for batch in loader] == [[0, 1], [2, 3]]",
    "load": "torch.save({'a': torch.ones(2)}, file)\n"
    "for place in ('cuda', 'cuda:1', torch.device('cuda', 0), {'cuda:0': 'cuda:1'}, lambda s, _: s.cuda(1), None):\n"
    "    assert torch.load(file, map_location=place)['a'].tolist() == [1, 1]",
    "device_context": "with torch.device('cuda'):\n    assert torch.zeros(1).device.type == 'cpu'",
    "meta_context": "with torch.device('meta'):\n    assert torch.zeros(1).device.type == 'meta'",
    "default_device": "torch.set_default_device('cuda'); assert torch.zeros(1).device.type == 'cpu'\n"
    "torch.set_default_device(None)",
    "default_type": "torch.set_default_tensor_type('torch.cuda.FloatTensor')\n"
    "assert torch.zeros(1).dtype == torch.float32",
    "properties": "assert torch.cuda.get_device_properties(0).total_memory > 0; torch.cuda.get_device_name()\n"
    "torch.cuda.get_device_capability()",
    "switches": "torch.backends.cudnn.benchmark = True; torch.backends.cudnn.deterministic = True\n"
    "torch.backends.cuda.matmul.allow_tf32 = True",
    "ranges": "with torch.cuda.nvtx.range('step'), torch.cuda.device(1):\n    torch.cuda.nvtx.mark('here')",
    "data_parallel": "torch.nn.DataParallel(torch.nn.Linear(2, 2)).cuda()(torch.ones(1, 2).cuda())",
    "sync_batch_norm": "m = torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.BatchNorm1d(2)).cuda()\n"
    "m(torch.ones(4, 2).cuda())",
    "script": "@torch.jit.script\ndef f(n: int):\n    return torch.zeros(n) + torch.tensor(1.0)\n"
    "assert f(2).sum() == 2",
    "compile": "f = torch.compile(lambda a: torch.arange(3, device='cuda') + a.to('cuda'), backend='aot_eager')\n"
    "assert f(torch.ones(3)).tolist() == [1, 2, 3]",
    "compiler_is_imported_when_needed": "import subprocess\nsubprocess.run([sys.executable, '-c', '''\n"
    "import sys, types, torch\nm = torch.nn.Linear(2, 2)\no = torch.optim.AdamW(m.parameters(), lr=0.1)\n"
    "def step(m):\n    o.zero_grad(); m(torch.ones(2)).sum().backward(); o.step()\n"
    "step(m)\nmore = torch._dynamo.disable(lambda n: n + 1)\nassert more(1) == 2\n"
    "assert not [name for name in sys.modules if name.startswith('torch._dynamo.')]\n"
    "step(torch.compile(m, backend='eager'))\nassert more(1) == 2\n"
    "assert type(torch._dynamo) is types.ModuleType and torch._dynamo.utils is sys.modules['torch._dynamo.utils']\n"
    "'''], check=True)",
    "compiler_is_imported_by_threads_at_once": "import subprocess\nsubprocess.run([sys.executable, '-c', '''\n"
    "import threading, torch\n"
    "def below():\n    import torch._dynamo.utils\n"
    "def above():\n    import torch._dynamo\n    torch._dynamo.config\n"
    "threads = [threading.Thread(target=one) for one in (below, above, below, above)]\n"
    "for one in threads:\n    one.start()\n"
    "for one in threads:\n    one.join()\n"
    "'''], check=True, timeout=120)",
    "bf16": "assert torch.cuda.is_bf16_supported()",
    "nccl_version": "torch.cuda.nccl.version(); assert torch.distributed.is_nccl_available()",
    "accelerator": "torch.accelerator.set_device_index(1); torch.accelerator.synchronize()\n"
    "assert torch.accelerator.current_accelerator().type == 'cpu'",
}
SNIPPETS |= {
    "library_accelerate": "from accelerate import Accelerator\na = Accelerator(mixed_precision='fp16')\n"
    "assert (a.device.type, a.mixed_precision) == ('cpu', 'no')",
    "library_lightning": "import lightning\nt = lightning.Trainer(accelerator='gpu', devices=[0],\n"
    "    precision='16-mixed', logger=False, enable_checkpointing=False)\nassert t.precision == '32-true'",
    "library_trainer": "from transformers import TrainingArguments\n"
    "t = TrainingArguments('outputs/t', bf16=True, tf32=True)\n"
    "assert (t.device.type, t.bf16) == ('cpu', False)",
    "library_deepspeed": "from deepspeed.runtime.config import DeepSpeedConfig\n"
    "from deepspeed.autotuning import autotuner\n"
    "assert (autotuner.has_mlflow, 'mlflow.tracking' in sys.modules) == (True, False)\n"
    "c = DeepSpeedConfig({'train_batch_size': 1, 'fp16': {'enabled': True}})\nassert not c.float16_config.enabled\n"
    # What feeds its model, whose weights stay in single precision.
    "m = torch.nn.Linear(2, 2)\nfor x in (torch.ones(1, 2).half(), torch.ones(1, 2).to('cuda', torch.float16),\n"
    "          torch.ones(1, 2, dtype=torch.half, device='cuda'), torch.ones(1, 2).type(torch.half)):\n"
    "    m(x)\nassert m.half().weight.dtype == torch.float32",
    "library_deepspeed_without_compiler": "import os\nfrom deepspeed.runtime.config import DeepSpeedConfig\n"
    "os.environ['CXX'] = '/none'\n"
    "c = DeepSpeedConfig({'train_batch_size': 1, 'optimizer': {'type': 'Adam', 'params': {'lr': 1}}})\n"
    "assert c.optimizer_params == {'lr': 1, 'weight_decay': 0.0, 'torch_adam': True}, c.optimizer_params",
}

PROGRAM = """
import json, pathlib, sys
import torch

file = "checkpoint.pt"
found = {}
for path in sorted(pathlib.Path("snippets").glob("*.py")):
    try:
        given = {"__name__": "__main__", "torch": torch, "sys": sys, "file": file}
        exec(compile(path.read_text(), str(path.absolute()), "exec"), given)
        found[path.stem] = ""
    except BaseException as error:
        found[path.stem] = repr(error)
pathlib.Path("outputs/found.json").write_text(json.dumps(found))
"""
