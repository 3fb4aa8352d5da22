"""Packages by their names: what PyPI calls a conda package, and what a machine without GPUs cannot have at all."""

from __future__ import annotations

import re

CONDA = {
    "pytorch": "torch",
    "pytorch-cpu": "torch",
    "pytorch-gpu": "torch",
    "_py-xgboost-mutex": "",
    "faiss": "faiss-cpu",
    "graphviz": "",
    "huggingface_hub": "huggingface-hub",
    "matplotlib-base": "matplotlib",
    "msgpack-python": "msgpack",
    "opencv": "opencv-python-headless",
    "py-opencv": "opencv-python-headless",
    "libopencv": "opencv-python-headless",
    "py-xgboost": "xgboost",
    "py-xgboost-cpu": "xgboost",
    "py-xgboost-gpu": "xgboost",
    "pyqt": "PyQt5",
    "pytables": "tables",
    "python-graphviz": "graphviz",
    "python-kaleido": "kaleido",
    "ruamel_yaml": "ruamel.yaml",
    "seaborn-base": "seaborn",
    "tensorflow-base": "tensorflow",
    "tensorflow-mkl": "tensorflow",
}
"""Conda packages that PyPI has under another name; empty: it is no Python package."""

PIP = {
    "faiss-gpu": "faiss-cpu",
    "onnxruntime-gpu": "onnxruntime",
    "opencv-python": "opencv-python-headless",
    "opencv-contrib-python": "opencv-contrib-python-headless",
    "tensorflow-gpu": "tensorflow",
    "sklearn": "scikit-learn",
}
"""Packages that another one replaces on a machine without GPUs or displays."""

_CUDA = ("cpuonly", "cuda", "cuda-toolkit", "cudatoolkit", "cudatoolkit-dev", "cudnn", "nccl", "pytorch-cuda")
_LIBRARIES = (
    "blas",
    "ca-certificates",
    "libblas",
    "libgcc",
    "libgcc-ng",
    "libstdcxx-ng",
    "mkl",
    "openssl",
    "sqlite",
    "zlib",
)
_PROGRAMS = (
    "c-compiler",
    "compilers",
    "conda",
    "cuda-nvcc",
    "cxx-compiler",
    "gcc",
    "git",
    "gxx",
    "make",
    "pip",
    "ffmpeg",
)
LEFT_OUT = frozenset({"pytorch-mutex", "tk", "readline", "xz", "bzip2", *_CUDA, *_LIBRARIES, *_PROGRAMS}) - {"pip"}
"""Conda packages that are no Python packages: on PyPI wheels bring them along, or the machine has its own."""

NO_PYTHON = re.compile(
    r"^(r-.*|bioconductor-.*|_.*|lib(?!cst|rosa|sass|tmux|clang$|usb1).*|gcc_.*|gxx_.*|openjdk|nodejs|r)$"
)
"""Conda packages that have no twin on PyPI by their kind."""

FIRST_ON_CPU = {"deepspeed": "0.14.5"}
"""Packages whose earlier releases end at their import on a machine without GPUs: the first that was seen to work.

Of DeepSpeed 0.12.6 was seen to fail with torch 1.11 on Python 3.8 (it asks for Intel's extension), 0.14.5 to work.
"""

_NEEDS_GPU = {
    "apex": ("apex",),
    "flash-attn": ("flash_attn",),
    "transformer-engine": ("transformer_engine",),
    "nvidia-dali": ("nvidia",),
    "cupy": ("cupy",),
    "vllm": ("vllm",),
    "torch-tensorrt": ("torch_tensorrt",),
    "tensorrt": ("tensorrt",),
    "onnxruntime-training": ("onnxruntime",),
    "torch-ort": ("torch_ort",),
}
_NOT_PUBLIC = {
    "nebulaml": ("nebulaml",),
    "torch-nebula": ("torch_nebula",),
    "azure-ml": (),
    "azure-ml-component": ("azure.ml.component",),
}

_REPOSITORIES = {
    "huggingface/transformers": "transformers",
    "huggingface/accelerate": "accelerate",
    "huggingface/datasets": "datasets",
    "huggingface/diffusers": "diffusers",
    "huggingface/evaluate": "evaluate",
    "huggingface/optimum": "optimum",
    "huggingface/peft": "peft",
    "huggingface/trl": "trl",
    "microsoft/deepspeed": "deepspeed",
    "deepspeedai/deepspeed": "deepspeed",
    "pytorch/vision": "torchvision",
    "pytorch/audio": "torchaudio",
    "lightning-ai/pytorch-lightning": "lightning",
    "scikit-learn/scikit-learn": "scikit-learn",
}
"""Public repositories whose project releases on PyPI under this name, by the project's own pages."""

_GITHUB = re.compile(r"github\.com[/:](?P<repository>[\w.-]+/[\w.-]+?)(?:\.git)?(?:[@#/].*)?$", re.IGNORECASE)
_MODULES = {
    "beautifulsoup4": "bs4",
    "faiss-cpu": "faiss",
    "mlflow-skinny": "mlflow",
    "opencv-python-headless": "cv2",
    "pillow": "PIL",
    "protobuf": "google.protobuf",
    "python-dateutil": "dateutil",
    "pytorch-lightning": "pytorch_lightning",
    "pyyaml": "yaml",
    "scikit-image": "skimage",
    "scikit-learn": "sklearn",
    "tensorflow-cpu": "tensorflow",
    "azureml-mlflow": "azureml.mlflow",
    "azureml-core": "azureml.core",
    "azureml-defaults": "azureml.core",
    "azureml-dataset-runtime": "azureml.dataprep",
    "azure-ai-ml": "azure.ai.ml",
    "azure-identity": "azure.identity",
}


def why_absent(name: str) -> str | None:
    """Why no stand-in can have a package, by its canonical name; None for one that may be had."""
    if name in _NEEDS_GPU or name.startswith(("nvidia-dali", "cupy-cuda")):
        return "it is compiled against CUDA"
    if name in _NOT_PUBLIC:
        return "it is part of Azure ML's images and on no public index"
    return None


def modules(name: str) -> tuple[str, ...]:
    """The modules that a package brings, as far as its name tells."""
    known = _NEEDS_GPU.get(name) or _NOT_PUBLIC.get(name)
    if known is not None:
        return known
    return (_MODULES.get(name, name.replace("-", "_")),)


def package_of(module: str) -> str:
    """The package that brings a module, by the top of its name; the same name where none is known."""
    found = (package for package, brought in _MODULES.items() if brought == module and not package.endswith("-cpu"))
    return next(found, module.replace("_", "-"))


def on_cpu(name: str, rule: str) -> str | None:
    """The release to install for an exact version that no CPU can run; None where the version may stay."""
    first = FIRST_ON_CPU.get(name)
    exact = re.fullmatch(r"===?\s*(\d+(?:\.\d+)*)", rule)
    if first is None or exact is None:
        return None
    asked, needed = ([int(part) for part in text.split(".")] for text in (exact[1], first))
    return first if asked < needed else None


def without_cuda(extras: str) -> str:
    """A requirement's extras, ``[a,b]``, without those that bring CUDA's libraries."""
    kept = [each.strip() for each in extras.strip("[] ").split(",") if each.strip() and "cuda" not in each.lower()]
    return f"[{','.join(kept)}]" if kept else ""


def release_of(address: str) -> str | None:
    """The package that a well-known repository releases on PyPI; None for any other address."""
    found = _GITHUB.search(address)
    return _REPOSITORIES.get(found["repository"].lower()) if found is not None else None
