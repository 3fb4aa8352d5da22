"""The resolution of a declared environment from text alone: no network, nothing built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.images import building, environments, standins
from amlstack.images.dockerfile import read_dockerfile
from amlstack.images.requirements import PipLines, latest_wins
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


@for_each(
    "written",
    [
        {"reference": "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest"},
        {"reference": "azureml:AzureML-acpt-pytorch-2.8-cuda12.6@latest"},
        {"image": "mcr.microsoft.com/azureml/curated/acpt-pytorch-2.8-cuda12.6:7"},
        {"image": "pytorch/pytorch:2.8.0-cuda12.6-cudnn9-runtime"},
        {"image": "nvcr.io/nvidia/pytorch:25.01-py3"},
    ],
)
def test_every_spelling_of_a_pytorch_image_has_the_pytorch_stand_in(written: dict[str, str]) -> None:
    answer = environments.answer(environments.Declared(**written))
    assert answer.standin is not None
    assert answer.standin.name == "pytorch"


def test_an_unknown_image_is_answered_with_the_lines_that_help() -> None:
    answer = environments.answer(environments.Declared(reference="azureml:team-env@latest"))
    assert answer.state == "unavailable"
    assert "no stand-in for the environment 'team-env'" in answer.why
    assert '[stand_in."azureml:team-env@latest"]' in answer.remedy


def test_a_users_own_stand_in_answers_for_every_version_of_a_name() -> None:
    own = {"azureml:team-env": environments.OwnStandIn(requirements=("tabulate==0.10.0",), origin="rehearsal.toml:1")}
    for reference in (
        "azureml:team-env@latest",
        "azureml:team-env:3",
        "azureml://registries/r/environments/team-env/versions/1",
    ):
        answer = environments.answer(environments.Declared(reference=reference), own)
        assert answer.standin is not None, answer.why
        assert answer.standin.requirements == ("tabulate==0.10.0",)


def test_a_dockerfile_gives_its_image_its_packages_and_what_is_not_built(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("tabulate==0.10.0  # a table\n-c pins.txt\n")
    (tmp_path / "pins.txt").write_text("numpy<2\n")
    (tmp_path / "Dockerfile").write_text(
        """
        ARG TAG=2.8
        FROM mcr.microsoft.com/azureml/curated/acpt-pytorch-${TAG}-cuda12.6:latest
        ENV WANTED=hjson==3.1.0
        WORKDIR /tmp/build
        COPY . /tmp/build
        RUN apt-get update && apt-get install -y --no-install-recommends libgl1 \\
            && rm -rf /var/lib/apt/lists/*
        RUN pip install --no-cache-dir -r requirements.txt "${WANTED}" 'deepspeed>=0.12'
        RUN git clone https://example.invalid/kernels && make -C kernels
        """
    )
    standin = environments.standin_of(environments.Declared(context=tmp_path))
    assert standin.base is not None
    assert standin.base.name == "pytorch"
    assert standin.requirements == ("tabulate==0.10.0", "hjson==3.1.0", "deepspeed>=0.12")
    assert standin.constraints == "numpy<2"
    assert [each.what for each in standin.absent if each.why] == [
        "RUN apt-get install libgl1",
        "RUN git clone https://example.invalid/kernels",
        "RUN make -C kernels",
    ]


def test_an_environment_that_is_copied_from_another_stage_counts(tmp_path: Path) -> None:
    (tmp_path / "env.yml").write_text("dependencies: [python=3.11, {pip: [tabulate==0.10.0]}]\n")
    text = """
        FROM condaforge/mambaforge AS made
        COPY env.yml .
        RUN mamba env create --name core --file env.yml
        FROM ubuntu:22.04
        COPY --from=made {} /opt/
        """
    for source, requirements in (("/opt/conda", ("tabulate==0.10.0",)), ("/opt/tools", ())):
        (tmp_path / "Dockerfile").write_text(text.format(source))
        assert environments.standin_of(environments.Declared(context=tmp_path)).requirements == requirements


def test_the_last_stage_of_a_dockerfile_counts(tmp_path: Path) -> None:
    text = """
        FROM golang AS tools
        RUN go build
        FROM python:3.11 AS base
        RUN ["pip", "install", "tabulate"]
        FROM base
        COPY --from=tools /a /b
        RUN <<END
        pip install hjson
        END
        """
    found = read_dockerfile(text, tmp_path)
    assert (found.image, found.packages.requirements, found.skipped) == ("python:3.11", ["tabulate", "hjson"], [])


@for_each(
    "run, requirements",
    [
        ("python3 -m pip install --upgrade pip wheel", ["pip", "wheel"]),
        (
            "/opt/miniconda/bin/pip install -U 'torch==2.2.0+cu121' -f https://download.pytorch.org/whl",
            ["torch==2.2.0"],
        ),
        ("conda run -n ptca --no-capture-output pip install tabulate", ["tabulate"]),
        ("conda install -y -c conda-forge 'numpy>=1.22' pytorch=2.2 cudatoolkit", ["numpy>=1.22", "torch==2.2.*"]),
        ("bash -c 'pip install hjson && echo done'", ["hjson"]),
        ("PIP_NO_CACHE_DIR=1 uv pip install --system tabulate", ["tabulate"]),
        ("pip install git+https://github.com/huggingface/transformers@main", ["transformers"]),
        ("pip download tabulate", []),
    ],
)
def test_install_commands_become_requirements(tmp_path: Path, run: str, requirements: list[str]) -> None:
    assert read_dockerfile(f"FROM python:3.11\nRUN {run}", tmp_path).packages.requirements == requirements


def test_requirement_files_keep_markers_and_name_what_cannot_be_had(tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("hjson\n-r base.txt\n")
    (tmp_path / "base.txt").write_text("-r more.txt\n")
    wheel = tmp_path / "mine-1.0-py3-none-any.whl"
    wheel.touch()
    found = PipLines()
    text = f"""
        tabulate[widechars]==0.10.0 ; python_version < "3.13" --hash=sha256:00
        tensorflow[and-cuda]==2.16.2
        --extra-index-url=https://index.example/simple
        -r more.txt
        ./{wheel.name}
        -e ./absent
        flash_attn>=2
        """
    found.read(text, tmp_path)
    assert found.requirements == [
        'tabulate[widechars]==0.10.0 ; python_version < "3.13"',
        "tensorflow==2.16.2",
        "hjson",
        str(wheel),
    ]
    assert found.options == ["--extra-index-url", "https://index.example/simple"]
    assert [each.what for each in found.absent] == ["-r more.txt", "./absent", "flash_attn"]
    assert found.absent[-1].consequence == "`import flash_attn` fails"


@for_each(
    "image, torch, python",
    [
        ("pytorch/pytorch:2.3.1-cuda12.1-cudnn8-runtime", "2.3.1", ""),
        ("mcr.microsoft.com/aifx/acpt/stable-ubuntu2004-cu117-py38-torch1131:biweekly.202301.2", "1.13.1", "3.8"),
        ("mcr.microsoft.com/azureml/curated/acpt-pytorch-1.11-py38-cuda11.3-gpu:latest", "1.11.*", "3.8"),
        ("mcr.microsoft.com/azureml/curated/acpt-pytorch-1.13-cuda11.7", "1.13.1", "3.8"),
        ("acpt-pytorch-2.2-cuda12.1", "2.8.0", ""),
    ],
)
def test_an_image_that_names_its_pytorch_gets_that_one(image: str, torch: str, python: str) -> None:
    standin = standins.resolve(image)
    assert standin.requirements[0] == f"torch=={torch}"
    assert standin.python == python
    assert bool(standin.as_of) == (torch != "2.8.0")


def test_what_differs_from_a_curated_image_is_one_line() -> None:
    line = environments.line(standins.resolve("azureml:AzureML-acpt-pytorch-2.2-cuda12.1@latest"))
    assert "torch 2.8.0 for 2.10.0" in line
    assert "without nebulaml, azureml-core" in line
    assert "\n" not in line


def test_what_a_dockerfile_adds_is_no_longer_missing(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM nvcr.io/nvidia/pytorch:25.01-py3\nRUN pip install tabulate\n")
    standin = environments.standin_of(environments.Declared(context=tmp_path))
    assert "apex" in {each.what for each in standin.absent}
    (tmp_path / "Dockerfile").write_text("FROM acpt-pytorch-2.8-cuda12.6\nRUN pip install azureml-core\n")
    standin = environments.standin_of(environments.Declared(context=tmp_path))
    assert "azureml-core" not in {each.what for each in standin.absent}


def test_a_release_that_no_cpu_can_run_is_raised_and_named() -> None:
    standin = environments.from_conda("dependencies: [python, {pip: [deepspeed==0.12.6, tabulate==0.9.0]}]")
    assert standin.requirements == ("deepspeed==0.14.5", "tabulate==0.9.0")
    assert environments.line(standin) == "deepspeed 0.14.5 for 0.12.6"
    later = environments.from_conda("dependencies: [python, {pip: [deepspeed==0.16.1]}]")
    assert later.requirements == ("deepspeed==0.16.1",)


def test_a_later_line_replaces_an_earlier_one() -> None:
    assert latest_wins(["a==1", "b", "A==2", "b==3", "a"]) == ("A==2", "b==3")


@for_each(
    "rule, version, suits",
    [
        ("3.10", (3, 10), True),
        ("3.10.13", (3, 10), True),
        ("3.8", (3, 10), False),
        (">=3.9,<3.12", (3, 11), True),
        (">=3.9,<3.12", (3, 12), False),
        ("~=3.9", (3, 11), True),
        ("~=3.9.1", (3, 11), False),
        ("3", (3, 11), True),
        ("!=3.11", (3, 11), False),
        ("<3.11.5", (3, 11), True),
    ],
)
def test_a_python_suits_a_rule(rule: str, version: tuple[int, int], *, suits: bool) -> None:
    assert building.suits(rule, version) is suits
