"""From the input to mini-batches: files by number, rows of a table by size or by the values of columns."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from amlparallel import tables

if TYPE_CHECKING:
    from amlparallel.arguments import StepSettings

FILES = 1
"""Files of a mini-batch where the step does not say."""
BYTES = 1 << 20
"""Bytes of a table in a mini-batch where the step does not say."""


class InputError(Exception):
    """The input cannot be split as the step asks; the message says why."""


class MiniBatch(NamedTuple):
    """One mini-batch, as it goes to a worker.

    Attributes:
        number: Its number, from 0.
        files: Paths below the input; of a table its files.
        part, parts: Of one file of a table, which share of its rows.
        keys: Of a table that is split by columns, their values as text.
        table: It is a table: ``run()`` gets a pandas DataFrame.
    """

    number: int
    files: list[str]
    part: int = 0
    parts: int = 1
    keys: dict[str, str] | None = None
    table: bool = False

    def wire(self) -> dict[str, Any]:
        """As JSON holds it."""
        return dict(self._asdict())


def split(settings: StepSettings) -> list[MiniBatch]:
    """The mini-batches of a step, in a fixed order.

    Raises:
        InputError: There is nothing, or it cannot be split so.
    """
    table = tables.find(settings.input_data)
    if table is None:
        if settings.partition_keys:
            raise InputError("`partition_keys` splits a table: `input_data` must be an mltable that reads one")
        files = below(settings.input_data)
        size = settings.mini_batch_size or FILES
        found = [MiniBatch(0, files[at : at + size]) for at in range(0, len(files), size)]
    elif not table.readers:
        if settings.partition_keys:
            raise InputError("`partition_keys` needs an mltable that reads a table (a transformation such as "
                             "read_delimited); this one lists files")  # fmt: skip
        size = settings.mini_batch_size or FILES
        found = [MiniBatch(0, table.files[at : at + size]) for at in range(0, len(table.files), size)]
    elif settings.partition_keys:
        groups = tables.groups(table, settings.partition_keys)
        found = [MiniBatch(0, files, keys=keys, table=True) for keys, files in groups]
    else:
        found = _by_size(table, settings.mini_batch_size or BYTES)
    if not found:
        raise InputError("the input has no file: there is nothing to split into mini-batches")
    return [batch._replace(number=number) for number, batch in enumerate(found)]


def below(place: str) -> list[str]:
    """Files at or below a place, as paths relative to it (empty for the place itself), in order."""
    if os.path.isfile(place):
        return [""]
    found = []
    for folder, _, names in os.walk(place):
        found += [os.path.relpath(os.path.join(folder, name), place) for name in names]
    return sorted(found)


def _by_size(table: tables.Table, size: int) -> list[MiniBatch]:
    """Small files together, the rows of a large one in shares of about the size."""
    found: list[MiniBatch] = []
    together: list[str] = []
    held = 0
    for file in table.files:
        of_it = os.path.getsize(os.path.join(table.folder, file))
        if together and held + of_it > size:
            found.append(MiniBatch(0, together, table=True))
            together, held = [], 0
        if of_it > size:
            parts = -(-of_it // size)
            found += [MiniBatch(0, [file], part, parts, table=True) for part in range(parts)]
        else:
            together.append(file)
            held += of_it
    if together:
        found.append(MiniBatch(0, together, table=True))
    return found
