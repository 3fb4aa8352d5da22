"""A conda file's packages as pip's requirements.

Azure ML makes a new conda environment from the file, in which the image's own Python packages are not seen; so nothing
but the file counts here, whatever the image is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.images.absent import Absent
from amlstack.sandbox.images.declared import twins
from amlstack.sandbox.images.declared.pip_lines import PipLines

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGE = re.compile(r"^(?:[^\s:\[]+::)?(?P<name>[A-Za-z0-9_.-]+)\s*(?P<rule>.*)$")
_BRACKETS = re.compile(r"\[(?P<fields>[^\]]*)\]\s*$")
_FIELD = re.compile(r"(?P<key>\w+)\s*=\s*(?P<value>'[^']*'|\"[^\"]*\"|[^,\s]+)")
_NO_CONDA = "it is no Python package, and this machine has no conda"


class CondaFileError(Exception):
    """The conda file is not one; the message says what was found."""


def read(text: str, folder: Path | None = None) -> tuple[str, PipLines]:
    """What a conda file declares.

    Args:
        text: The conda file, as YAML.
        folder: Where it lies, when that is known: paths in its pip section start there.

    Returns:
        The Python that it asks for, as pip writes versions, ``""`` for none; and its packages.

    Raises:
        CondaFileError: It is no YAML, or its ``dependencies`` are not a list of packages.
    """
    python, found = "", PipLines()
    for one in _dependencies(text):
        if isinstance(one, dict):
            for line in one.get("pip") or []:
                found.read(str(line), folder)
            continue
        declared = package(str(one))
        if declared is None:
            message = f"The conda file's `dependencies` must name packages, got `{one}`."
            raise CondaFileError(message)
        name, rule = declared
        if name == "python":
            python = rule.removeprefix("==").removesuffix(".*")
        else:
            add(found, name, rule)
    return python, found


def package(text: str) -> tuple[str, str] | None:
    """The name and pip's version rule in one conda requirement; None for what is none."""
    found = _PACKAGE.match(text.strip().strip("\"'"))
    if found is None:
        return None
    rule = found["rule"]
    if (bracket := _BRACKETS.search(rule)) is not None:
        fields = {each["key"]: each["value"].strip("'\"") for each in _FIELD.finditer(bracket["fields"])}
        rule = fields.get("version", rule[: bracket.start()])
    return found["name"].lower(), pip_rule(rule.strip())


def add(found: PipLines, name: str, rule: str) -> None:
    """Adds one conda package to what was found, under PyPI's name; or to what cannot be had."""
    twin = twins.CONDA.get(name, name)
    if name in twins.LEFT_OUT:
        found.notes.append(f"without {name}: wheels bring it along, or the machine has its own")
    elif not twin or twins.NO_PYTHON.match(name):
        found.absent.append(Absent(name, _NO_CONDA))
    else:
        found.one(twin + rule, lambda _path: None)


def pip_rule(rule: str) -> str:
    """A conda version rule in pip's words: ``=1.2`` is any 1.2, a build at the end is dropped."""
    rule = rule.split(maxsplit=1)[0] if rule[:1].isdigit() else "".join(rule.split())
    rule = rule.split("|", 1)[0]  # of alternatives the first
    if not rule or rule == "*" or rule.startswith("=*"):
        return ""
    if rule.startswith("=") and not rule.startswith("=="):
        version, _, build = rule[1:].partition("=")
        return f"=={version}" if build or version.endswith("*") else f"=={version}.*"
    if rule.startswith("=="):
        return "==" + rule[2:].partition("=")[0]
    if rule[0].isdigit():
        return "==" + rule.partition("=")[0]
    return rule


def _dependencies(text: str) -> list[Any]:
    import yaml  # noqa: PLC0415 - few environments have a conda file, and yaml takes a while to import

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
