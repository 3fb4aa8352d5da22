"""A table in one test: what pytest does around a test costs more than most rows do."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


def for_each(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As ``pytest.mark.parametrize``, in one test that goes on after a row that fails, and names all that did.

    A test's ``tmp_path`` is a folder of the row's own. Every other fixture is shared by all rows.
    """
    wanted = [name.strip() for name in names.split(",")]
    table = list(rows)

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        def every_row(**given: Any) -> None:
            failed = []
            for number, row in enumerate(table):
                if "tmp_path" in given:
                    given["tmp_path"] = _folder(given["tmp_path"], number)
                try:
                    test(**given, **dict(zip(wanted, row if len(wanted) > 1 else [row], strict=True)))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are told of at the end
                    error.add_note(f"row {number} of {names}: {row!r:.300}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(table)} rows failed", failed)

        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in wanted]
        every_row.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        every_row.__doc__, every_row.__module__ = test.__doc__, test.__module__
        every_row.__name__, every_row.__qualname__ = test.__name__, test.__qualname__
        return every_row

    return decorated


def _folder(before: Path, number: int) -> Path:
    made = (before.parent if number else before) / f"row-{number}"
    made.mkdir()
    return made
