"""Names of public images, and the GPUs on which their makers say that they run."""

from __future__ import annotations

from typing import NamedTuple

from amlstack.catalog import files, images
from amlstack.catalog.images import read, version
from tests.support.rows import for_each

NVIDIA = "NVIDIA"


class ImageName(NamedTuple):
    vendor: str
    cuda: str | None = None
    torch: str | None = None
    least: str | None = None


@for_each(
    "image, expected",
    [
        ("nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04", ImageName(NVIDIA, "12.4")),
        ("docker.io/nvidia/cuda:12.4.1-base-ubuntu22.04@sha256:" + "0" * 64, ImageName(NVIDIA, "12.4")),
        ("nvcr.io/nvidia/cuda:13.0.0-devel-ubuntu24.04", ImageName(NVIDIA, "13.0")),
        ("nvidia/cuda", ImageName(NVIDIA)),
        ("nvidia/cuda:latest", ImageName(NVIDIA)),
        ("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", ImageName(NVIDIA, "12.4", torch="2.5.1")),
        ("docker.io/pytorch/pytorch:2.9.0-cuda12.8-cudnn9-devel", ImageName(NVIDIA, "12.8", torch="2.9.0")),
        ("pytorch/pytorch:latest", None),
        ("mirror.example.org/pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", ImageName(NVIDIA, "12.4")),
        ("nvcr.io/nvidia/pytorch:24.05-py3", ImageName(NVIDIA, "12.4", least="6.0")),
        ("nvcr.io/nvidia/pytorch:25.03-py3", ImageName(NVIDIA, None, least="7.5")),
        ("nvcr.io/nvidia/tensorflow:22.05-tf2-py3", ImageName(NVIDIA, "11.7", least="6.0")),
        ("nvcr.io/nvidia/pytorch:18.01-py3", ImageName(NVIDIA)),
        ("mcr.microsoft.com/azureml/openmpi4.1.0-cuda11.8-cudnn8-ubuntu22.04:20240709.v1", ImageName(NVIDIA, "11.8")),
        ("mcr.microsoft.com/aifx/acpt/stable-ubuntu2204-cu126-py310-torch280:latest", ImageName(NVIDIA, "12.6")),
        (
            "1.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training:2.1.0-transformers4.36.0-gpu-py310-cu121",
            ImageName(NVIDIA, "12.1"),
        ),
        ("huggingface/transformers-pytorch-gpu:4.41.2", None),
        ("team.azurecr.io/train-cuda118:7", ImageName(NVIDIA, "11.8")),
        ("team.azurecr.io/train:cuda12", ImageName(NVIDIA)),
        ("localhost:5000/train:cuda-12.1", ImageName(NVIDIA, "12.1")),
        ("rocm/pytorch:rocm6.2_ubuntu22.04_py3.10_pytorch_release_2.3.0", ImageName("AMD")),
        ("team.azurecr.io/train:cu124-rocm6.2", None),
        ("team.azurecr.io/barracuda12.4:1", None),
        ("python:3.11-slim", None),
        ("team.azurecr.io/focus121:1", None),
        ("", None),
    ],
)
def test_the_name_of_an_image_says_what_its_makers_document(image: str, expected: ImageName | None) -> None:
    found = read(image)
    assert (found and ImageName(str(found.vendor), found.cuda, found.build, found.least)) == expected


@for_each(
    "torch, cuda, capability, runs",
    [
        ("2.5.1", "12.4", "10.0", False),  # before 2.7 no build had Blackwell
        ("2.6.0", "12.6", "12.0", False),
        ("2.5.1", "12.4", "9.0", None),
        ("2.7.1", "12.6", "12.0", False),
        ("2.8.0", "12.6", "9.0", True),
        ("2.7.1", "12.8", "12.0", None),  # no table was read
        ("2.9.1", "12.8", "10.3", True),
        ("2.9.1", "12.8", "7.0", True),
        ("2.11.0", "12.8", "7.0", False),
        ("2.10.0", "12.8", "7.0", None),
        ("2.12.0", "13.0", "7.0", False),
        ("2.12.0", "13.0", "12.0", True),
        ("2.12.0", "13.0", "12.1", True),
        ("2.12.0", "13.0", "13.0", True),  # by PTX
        ("2.12.0", "13.0", "10.3", True),
        ("2.14.1", "13.2", "8.6", True),
        ("2.15.0", "13.2", "8.6", None),
    ],
)
def test_a_build_of_pytorch_runs_on_what_its_tables_list(
    torch: str, cuda: str, capability: str, *, runs: bool | None
) -> None:
    assert images.runs_on(torch, cuda, capability) is runs


def test_an_image_under_a_conda_environment_says_nothing_of_what_runs() -> None:
    image = images.named("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime")

    assert image is not None
    assert (image.build, image.vendor, image.architectures) == ("2.5.1", NVIDIA, ())
    under = image.under_conda()
    assert (under.build, under.vendor, under.cuda) == (None, None, "12.4")
    known = {"e/1": images.Registered(image.name), "f/1": images.Registered(image.name, conda=True)}
    assert images.image_of("azureml:e:1", known) == image
    assert images.image_of("azureml:f:1", known) == under


def test_releases_stand_in_order_and_builds_do_not_overlap() -> None:
    releases = [version(row["release"]) for row in files.load("ngc_releases")]
    assert releases == sorted(set(releases))
    taken = set()
    for row in files.load("torch_builds"):
        assert (row["capabilities"] is None) == (row["highest"] is not None) == (row["cuda"] is None)
        first, last = version(row["torch_from"]), version(row["torch_until"])
        assert first <= last
        # One row speaks of a release, of all its builds or of one.
        for minor in range(first[1], last[1] + 1) if first[0] == last[0] else ():
            key = (first[0], minor, row["cuda"])
            assert key not in taken
            taken.add(key)
