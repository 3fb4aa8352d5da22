"""The process groups that ranks joined, beside the ranks that a rehearsal started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.cli.rehearsal.scale import Extent, worlds_of
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TOGETHER = [(rank, 4) for rank in range(4)]
CASES: dict[str, tuple[str, list[tuple[int, int]], str, str]] = {
    "all in one group": ("torchrun", TOGETHER, "", ""),
    "once more after a restart": ("torchrun", TOGETHER * 2, "", ""),
    "and each a group of its own later": ("pytorch", [*TOGETHER, (0, 1), (0, 1)], "", ""),
    "more ranks than were meant": ("torchrun", [(rank, 8) for rank in range(8)], "", ""),
    "a group for each node": ("torchrun", [(0, 2), (1, 2)] * 2, "2 groups", ""),
    "each rank alone": ("pytorch", [(0, 1)] * 4, "4 groups", ""),
    "fewer ranks": ("deepspeed", [(0, 2), (1, 2)], "had 2 (one)", ""),
    "no group": ("torchrun", [], "", "no process joined"),
    "no group under a launcher that makes it": ("accelerate", [], "no process joined", ""),
    "no group of torch": ("mpirun", [], "", ""),
    "lonely processes of MPI": ("mpi", [(0, 1)] * 4, "4 groups", ""),
    "lonely processes of mpirun in a command": ("mpirun", [(0, 1)] * 4, "4 groups", ""),
    "MPI where Azure ML starts ranks of torch": ("pytorch", [(0, 1)] * 4, "4 groups", ""),
    "a world of MPI, and its ranks' groups of torch": ("mpi", [(0, 2), (1, 2), *TOGETHER], "", ""),
    "workers of TensorFlow without TF_CONFIG": ("tensorflow", [(0, 1), (0, 1)], "2 groups", ""),
    "fewer workers of TensorFlow than the nodes hold": ("tensorflow", [(rank, 3) for rank in range(3)], "", ""),
    "parameter servers": ("tensorflow", [], "", ""),
    "a count that nobody states": ("", [(0, 1)], "", ""),
}


def folder_with(path: Path, joined: Sequence[tuple[int, int]]) -> Path:
    (path / "worlds").mkdir(parents=True)
    for at, (rank, size) in enumerate(joined):
        (path / "worlds" / f"{at:03}").write_text(f"{rank} {size}\n")
    return path


@for_each("case", CASES)
def test_ranks_that_do_not_train_together_are_named(case: str, tmp_path: Path) -> None:
    starter, joined, error, unproven = CASES[case]
    extent = Extent("", (4, 8), (2, 2), 1, starter=starter)
    found = list(worlds_of([("", folder_with(tmp_path, joined))], [extent]))
    errors, notes = "".join(each.error for each in found), "".join(each.unproven for each in found)
    assert error in errors
    assert unproven in notes
    assert (bool(errors), bool(notes)) == (bool(error), bool(unproven))


def test_each_trial_and_step_is_held_against_its_own_part(tmp_path: Path) -> None:
    folders = [(label, folder_with(tmp_path / label, [(0, 1)])) for label in ("prepare", "train", "tune trial 3")]
    extents = [
        Extent("jobs.prepare", (1, 1), (1, 1), 1, starter="pytorch"),
        Extent("jobs.train", (2, 1), (2, 1), 1, starter="pytorch"),
        Extent("jobs.tune", (1, 2), (1, 2), 1, starter="torchrun"),
    ]
    assert [(each.label, bool(each.error)) for each in worlds_of(folders, extents)] == [
        ("train", True),
        ("tune trial 3", True),
    ]


def test_where_nobody_looked_nothing_is_said(tmp_path: Path) -> None:
    assert list(worlds_of([("", tmp_path)], [Extent("", (2, 2), (2, 2), 1, starter="torchrun")])) == []
