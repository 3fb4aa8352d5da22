"""Code of a job that no CPU runs, found by reading it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox import gpu_code
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


def lines(folder: Path, *entries: str, **files: str) -> list[tuple[str, int]]:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path = path.with_name(path.name + ".py") if "." not in path.name else path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [(one.path, one.line) for one in gpu_code.read(folder, entries)]


@for_each(
    "code",
    [
        "import triton\nimport triton.language as tl\n@triton.jit\ndef kernel(): pass\n",
        "from apex import amp",
        "from flash_attn import flash_attn_func",
        "import bitsandbytes as bnb",
        "import cupy as cp",
        "from nvidia.dali import pipeline_def",
        "from torch.utils.cpp_extension import CUDAExtension",
        "import numba.cuda",
        "from torch.cuda import CUDAGraph",
        "import xformers.ops as xops",
        "import pynvml",
    ],
)
def test_an_import_that_needs_a_gpu_is_found_once(tmp_path: Path, code: str) -> None:
    assert lines(tmp_path, "train.py", train=code) == [("train.py", 1)]


@for_each(
    "call",
    [
        "g = torch.cuda.CUDAGraph()",
        "with torch.cuda.graph(g): pass",
        "torch.cuda.nccl.version()",
        "cpp.load(name='a', sources=['kernel.cu'])",
        "cpp.load_inline(name='a', cpp_sources='', cuda_sources='')",
        "cpp.CUDAExtension('a', [])",
        "ctypes.CDLL('libcudart.so.12')",
        "assert x.is_cuda",
    ],
)
def test_a_call_that_needs_a_gpu_is_found_at_its_line(tmp_path: Path, call: str) -> None:
    code = f"import ctypes\nimport torch\nimport torch.utils.cpp_extension as cpp\n\n{call}\n"
    assert lines(tmp_path, "train.py", train=code) == [("train.py", 5)]


@for_each(
    "code",
    [
        "import torch\nmodel.cuda()\ntorch.cuda.set_device(0)\nx = torch.zeros(1, device='cuda')\n",
        "try:\n    import apex\nexcept ImportError:\n    apex = None\nif apex:\n    apex.amp.initialize()\n",
        "import torch\nif torch.cuda.is_available():\n    g = torch.cuda.CUDAGraph()\n",
        "import torch\non = not off and torch.cuda.is_available()\nif on:\n    import cupy\n",
        "import torch.utils.cpp_extension as cpp\ncpp.load(name='a', sources=['kernel.cpp'])\n",
        "def broken(:\n",
    ],
)
def test_what_is_carried_or_guarded_is_no_finding(tmp_path: Path, code: str) -> None:
    assert lines(tmp_path, "train.py", train=code) == []


def test_only_what_the_entry_script_reaches_is_read(tmp_path: Path) -> None:
    found = lines(
        tmp_path,
        "run.sh",
        train="from lib.layers import Fast\nfrom . import beside\n",
        lib__layers="from .kernels import f\n",
        lib__kernels="import math\nimport triton\n",
        other="import cupy\n",
        **{"run.sh": "set -e\ntorchrun --nproc_per_node 8 train.py --lr 1\n"},
    )
    assert found == [("lib/kernels.py", 2)]


def test_without_entries_all_scripts_of_the_folder_are_read(tmp_path: Path) -> None:
    assert lines(tmp_path, a="import cupy\n", b="\nimport apex\n") == [("a.py", 1), ("b.py", 2)]


def test_a_module_of_the_code_folder_is_not_the_library_of_that_name(tmp_path: Path) -> None:
    assert lines(tmp_path, "train.py", train="from cuda import helpers\nimport awq\n", cuda__helpers="", awq="") == []


def test_entries_outside_of_the_folder_are_not_read(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (tmp_path / "train.py").write_text("import triton")
    assert gpu_code.read(code, ["../train.py", str(tmp_path / "train.py"), "absent.py"]) == ()


def test_a_line_in_a_function_is_not_certain_and_says_what_happens(tmp_path: Path) -> None:
    lines(
        tmp_path,
        train="import torch.nn as nn\ndef build(model):\n    return nn.SyncBatchNorm.convert_sync_batchnorm(model)\n",
    )
    (one,) = gpu_code.read(tmp_path, ["train.py"])
    assert (one.path, one.line, one.ends, one.certain) == ("train.py", 3, False, False)
    assert "SyncBatchNorm" in one.what
    assert "its own batch" in one.consequence
