"""Results of the steps of a pull request's checks, as plain values; each may be missing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class ResultsError(Exception):
    """A file is not what a step writes; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Results:
    """The results of one commit.

    Attributes:
        check: Of ``amlstack check --json``; None where it was not run.
        rehearsals: Job file → what ``amlstack rehearse --json`` printed.
        review: Of ``amlstack up --sandbox --json``; None where it was not run.
        preview: Of ``amlstack up --preview --json``; None where it was not run.
        guards: Of ``amlstack gitops guards``; None where it was not run.
    """

    check: Mapping[str, Any] | None
    rehearsals: Mapping[str, Mapping[str, Any]]
    review: Mapping[str, Any] | None
    preview: Mapping[str, Any] | None
    guards: Mapping[str, Any] | None = None


def read(folder: Path) -> Results:
    """Read ``check.json``, ``rehearsal/**/*.json``, ``review.json``, ``preview.json``, ``guards.json`` of a folder.

    The file of a rehearsal lies where its job file lies in the repository, with ``.json`` behind its name.

    Raises:
        ResultsError: The folder is missing, or a file holds something else.
    """
    if not folder.is_dir():
        message = f"There is no folder {folder} with results"
        raise ResultsError(message)
    below = folder / "rehearsal"
    rehearsals = {}
    for file in sorted(below.rglob("*.json")):
        if (content := _read(file)) is not None:
            rehearsals[str(file.relative_to(below)).removesuffix(".json")] = content
    review, preview, guards = (_read(folder / f"{name}.json") for name in ("review", "preview", "guards"))
    return Results(_read(folder / "check.json"), rehearsals, review, preview, guards)


def _read(file: Path) -> Mapping[str, Any] | None:
    """A JSON object; None where there is no file, or an empty one: its step ended before it could write."""
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        message = f"{file} cannot be read: {error}"
        raise ResultsError(message) from None
    if not text.strip():
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        message = f"{file} must be a JSON object as amlstack's verbs print it with `--json`"
        raise ResultsError(message)
    return content
