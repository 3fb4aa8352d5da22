"""Nebula is no longer there to be imported."""

from __future__ import annotations

import re

from amlstack.base.findings import Finding
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule

RULE = Rule(
    code="nebula-gone",
    title="Nothing rests on Nebula, which is deprecated and no longer in the images.",
    what=(
        "Flags a job whose command names `nebulaml` or `torch_nebula`, and an environment whose conda file asks for "
        "it. `amlstack check` looks besides into the scripts and JSON files of the code that the command names: for an "
        "import of it, and for a DeepSpeed configuration with `nebula: {enabled: true}`."
    ),
    why=(
        "Azure ML's fast checkpoints were deprecated in 2025, and the current ACPT images come without them: the "
        "import fails on every rank, and so does DeepSpeed's Nebula engine. Tags of the images still name it."
    ),
    example=job(command="pip install nebulaml && python train.py"),
    instead=job(),
    level="advisory",
    not_exported=NO_JOB,
)

REMEDY = "Save with torch.distributed.checkpoint (async_save) to a mounted output, in DeepSpeed without `nebula`"
_NAMED = re.compile(r"(?<![\w-])(?:nebulaml|torch_nebula)(?![\w-])")
_IMPORTED = re.compile(r"^[ \t]*(?:import|from)[ \t]+(?P<name>nebulaml|torch_nebula)\b", re.MULTILINE)
_ENABLED = re.compile(r"\"nebula\"\s*:\s*\{[^{}]*\"enabled\"\s*:\s*true\b")


def check(text: str, *, what: str = "The command", where: str = "command") -> Finding | None:
    """Judge a text in which packages are named.

    Args:
        text: A command line, or a conda file.
        what: What it is, in words.
        where: Its path in the declaration.
    """
    found = _NAMED.search(text)
    return None if found is None else _finding(f"{what} names `{found[0]}`", where)


def check_file(text: str, *, name: str, where: str = "command") -> Finding | None:
    """Judge a file of the code.

    Args:
        text: Its content.
        name: Its name in the code folder; one that ends in ``.json`` is a configuration, another one a script.
        where: Path of what names it in the declaration.
    """
    if name.endswith(".json"):
        return _finding(f"`{name}` has `nebula` enabled", where) if _ENABLED.search(text) else None
    found = _IMPORTED.search(text)
    return None if found is None else _finding(f"`{name}` imports `{found['name']}`", where)


def _finding(seen: str, where: str) -> Finding:
    rule = "Nebula is deprecated, and the current images of Azure ML come without it"
    return Finding(RULE.code, where, seen=seen, rule=rule, remedy=REMEDY)
