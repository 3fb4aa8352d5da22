"""The parts of docs that are made from the code: ``python -m tools.docs`` writes them, ``--check`` verifies them.

A page is written by hand. Tables stand in it between ``<!-- table: NAME -->`` and ``<!-- end -->``, and are filled.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT
from amlstack.cli.commands.schema import printed
from infra.settings.model.stack import stack_file_schema
from jobs.azureml.schema import job_files
from tools.docs import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MARKED = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n)(?:.*?\n)??(<!-- end -->)", re.DOTALL)


def filled(name: str, made: Mapping[str, Callable[[], str]]) -> str:
    """The text of a page with its tables as they are now.

    Raises:
        ValueError: The page lacks a table, or has one that nothing makes.
    """
    text = (PROJECT / "docs" / name).read_text("utf-8")
    marked = [found["name"] for found in _MARKED.finditer(text)]
    if sorted(marked) != sorted(made):
        message = f"docs/{name} has the tables {sorted(marked)}, made are {sorted(made)}"
        raise ValueError(message)
    return _MARKED.sub(lambda found: f"{found[1]}{made[found['name']]().strip()}\n{found[3]}", text)


PAGES: dict[str, Callable[[], str]] = {
    **{name: partial(filled, name, made) for name, made in {**tables.TABLES, **tables.MODEL_TABLES}.items()},
    "schema/job.schema.json": lambda: f"{printed(job_files(), 'definitions')}\n",
    "schema/stack.schema.json": lambda: f"{printed(stack_file_schema(), '$defs')}\n",
    "../amlstack/resources/classes.pyi": tables.typed_resources,
}
"""File, from docs on → what renders its whole content."""
