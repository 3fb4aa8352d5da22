"""The cost per hour of a stack's clusters as another checkout declares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base import paths

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def of_folder(stack: str, folder: Path | None) -> Mapping[str, Any] | None:
    """The cost as ``amlstack up --json`` has it; None where there is no such stack, or its settings are of no use.

    Args:
        stack: Its name; organization and project may stand before it.
        folder: The checkout; None for this one.
    """
    from amlstack.cli.stack import cost
    from infra.settings import read_file

    file = (paths.PROJECT if folder is None else folder) / f"Pulumi.{stack.rpartition('/')[2]}.yaml"
    if not file.is_file():
        return None
    settings = read_file(file).partial
    return None if settings is None else cost.as_dict(cost.costs_of(settings))
