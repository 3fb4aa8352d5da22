"""The stand-in for an environment of one's own: what its conda file declares, from PyPI.

Azure ML makes a new conda environment from the file, in which the image's own Python packages are not seen; so nothing
but the file counts here, whatever the image is.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from amlstack.sandbox.images.standins import OPENMPI, StandIn

TWINS = {"pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch", "py-opencv": "opencv-python-headless"}
"""Conda packages that PyPI has under another name."""

_CUDA = ("cpuonly", "cuda", "cuda-toolkit", "cudatoolkit", "cudatoolkit-dev", "cudnn", "nccl", "pytorch-cuda")
_LIBRARIES = ("blas", "ca-certificates", "libblas", "libgcc", "libgcc-ng", "libstdcxx-ng", "mkl", "openssl")
_PROGRAMS = ("c-compiler", "compilers", "conda", "cuda-nvcc", "cxx-compiler", "gcc", "git", "gxx", "make")
LEFT_OUT = frozenset({"pytorch-mutex", *_CUDA, *_LIBRARIES, *_PROGRAMS})
"""Conda packages that are no Python packages: on PyPI wheels bring them along, or the machine has its own."""

_PACKAGE = re.compile(r"^(?:[^\s:]+::)?(?P<name>[A-Za-z0-9_.-]+)\s*(?P<rule>.*)$")
_PIP_NAME = re.compile(r"^[A-Za-z0-9_.-]+")


class CondaFileError(Exception):
    """The conda file is not one; the message says what was found."""


def from_conda(text: str) -> StandIn:
    """The stand-in with a conda file's packages.

    Args:
        text: The conda file, as YAML.

    Raises:
        CondaFileError: It is no YAML, or its ``dependencies`` are not a list of packages.
    """
    requirements, left_out, python = list[str](), list[str](), ""
    for one in _dependencies(text):
        if isinstance(one, dict):
            for line in one.get("pip") or []:
                (left_out if str(line).startswith("-") else requirements).append(str(line).split(" #")[0].strip())
            continue
        found = _PACKAGE.match(str(one).strip())
        if found is None:
            message = f"The conda file's `dependencies` must name packages, got `{one}`."
            raise CondaFileError(message)
        name, rule = found["name"].lower(), _pip_rule(found["rule"])
        if name == "python":
            python = rule.removeprefix("==").removesuffix(".*")
        elif name in LEFT_OUT:
            left_out.append(name)
        else:
            requirements.append(TWINS.get(name, name) + rule)
    if any(_name(requirement) in ("openmpi", "mpi4py") for requirement in requirements):
        requirements = [*(each for each in requirements if _name(each) != "openmpi"), OPENMPI]
    absent = f"; left out: {', '.join(left_out)}" if left_out else ""
    return StandIn(
        name="declared",
        summary=f"what the conda file declares ({len(requirements)} packages), from PyPI",
        names=(),
        requirements=tuple(requirements),
        constraints="",
        differs=f"PyPI's packages instead of conda's; nothing of the image itself{absent}",
        python=python,
    )


def _dependencies(text: str) -> list[Any]:
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        message = f"The conda file is no YAML: {' '.join(str(error).split())}"
        raise CondaFileError(message) from None
    found = data.get("dependencies", []) if isinstance(data, dict) else None
    if not isinstance(found, list):
        message = "The conda file must have a list of packages under `dependencies`."
        raise CondaFileError(message)
    return found


def _pip_rule(rule: str) -> str:
    """A conda version rule in pip's words: ``=1.2`` is any 1.2, a build at the end is dropped."""
    rule = rule.split(maxsplit=1)[0] if rule[:1].isdigit() else "".join(rule.split())
    if not rule or rule == "*":
        return ""
    if rule.startswith("=") and not rule.startswith("=="):
        version, _, build = rule[1:].partition("=")
        return f"=={version}" if build or version.endswith("*") else f"=={version}.*"
    if rule.startswith("=="):
        return "==" + rule[2:].partition("=")[0]
    return f"=={rule}" if rule[0].isdigit() else rule


def _name(requirement: str) -> str:
    found = _PIP_NAME.match(requirement)
    return found[0].lower() if found else ""
