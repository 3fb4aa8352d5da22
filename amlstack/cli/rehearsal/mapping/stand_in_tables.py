"""Tables ``[stand_in."ENVIRONMENT"]`` of `rehearsal.toml`: what an environment holds, as its user knows it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding
from amlstack.base.near_misses import did_you_mean
from amlstack.base.paths import is_file
from amlstack.cli.rehearsal.mapping.toml_lines import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from amlstack.sandbox.images.own import OwnStandIn

CODE = "rehearsal-file"
KEYS = ("requirements", "requirements_file", "python", "like")
EXAMPLE = '`[stand_in."azureml:my-env"]`, below it `requirements = ["torch==2.8.0"]`'
_PYTHON = re.compile(r"3\.\d+(\.\d+)?|[<>=!~].*")


def read(file: Path, tables: object, lines: Sequence[str]) -> tuple[dict[str, OwnStandIn], tuple[Finding, ...]]:
    """The stand-ins of one file by the environment that they are for, and what is wrong with them.

    Args:
        file: The file; its folder is where paths start from.
        tables: What it holds under `stand_in`.
        lines: Its lines.
    """
    if not tables:
        return {}, ()
    if not isinstance(tables, dict):
        at = line_of(lines, "stand_in")
        return {}, (
            Finding(
                CODE,
                "stand_in",
                f"`stand_in` must be a table, got `{tables}`",
                "",
                f"Write {EXAMPLE}.",
                file=str(file),
                line=at,
            ),
        )
    from amlstack.sandbox.images.own import OwnStandIn

    found: dict[str, OwnStandIn] = {}
    wrong: list[Finding] = []
    for name, table in tables.items():
        at = line_of(lines, name) or 1
        mistakes = [
            Finding(
                CODE,
                f"stand_in.{name}{'.' if key else ''}{key}",
                seen,
                rule,
                remedy,
                file=str(file),
                line=_place(lines, key, at),
            )
            for key, seen, rule, remedy in _mistakes(file, name, table)
        ]
        wrong += mistakes
        if not mistakes:
            listed = table.get("requirements_file")
            found[name] = OwnStandIn(
                tuple(table.get("requirements", ())),
                table.get("python", ""),
                None if listed is None else (file.parent / listed).absolute(),
                table.get("like", ""),
                file.parent.absolute(),
                f"{file}:{at}",
            )
    return found, tuple(wrong)


def _place(lines: Sequence[str], key: str, at: int) -> int:
    return (line_of(lines, key, at) if key else None) or at


def _mistakes(file: Path, name: str, table: object) -> Iterator[tuple[str, str, str, str]]:
    """Key, what was seen, the rule, the remedy."""
    if not isinstance(table, dict):
        yield "", f"`stand_in.{name}` must be a table, got `{table}`", "", f"Write {EXAMPLE}."
        return
    for key in table:
        if key not in KEYS:
            yield key, f"`{key}` is no key of a stand-in", f"It has {', '.join(KEYS)}", did_you_mean(key, KEYS)
    if not table.keys() & {"requirements", "requirements_file", "like"}:
        rule = "A stand-in has `requirements`, a `requirements_file`, or is `like` another one"
        yield "", f"`stand_in.{name}` says nothing of what the environment holds", rule, f"Write {EXAMPLE}."
    yield from _wrong_values(file, table)


def _wrong_values(file: Path, table: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    given = table.get("requirements", [])
    if not isinstance(given, list) or not all(isinstance(each, str) and each.strip() for each in given):
        rule = "Each is a requirement as pip takes it"
        yield "requirements", f"`requirements` must be a list of texts, got `{given}`", rule, f"Write {EXAMPLE}."
    for key in ("requirements_file", "like"):
        value = table.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            yield key, f"`{key}` must be a text, got `{value}`", "", f'Write `{key} = "…"`.'
    listed = table.get("requirements_file")
    if isinstance(listed, str) and listed and not is_file(file.parent / listed):
        yield (
            "requirements_file",
            f"`{listed}` does not exist: {file.parent / listed}",
            "It lies beside the file",
            "Correct the path.",
        )
    python = table.get("python")
    if python is not None and (not isinstance(python, str) or not _PYTHON.fullmatch(python)):
        yield "python", f"`python` must be a version in quotes, got `{python}`", "", 'Write `python = "3.10"`.'
    like = table.get("like")
    if isinstance(like, str) and like:
        from amlstack.sandbox.images.resolving import find

        if find(like) is None:
            rule = "It names a curated environment or an image that has a stand-in"
            yield "like", f"`{like}` has no stand-in of its own", rule, 'Write `like = "acpt-pytorch-2.8-cuda12.6"`.'
