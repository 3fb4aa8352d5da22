"""A job file's inputs as a rehearsal finds them, in a folder that has neither data nor mapping files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.catalog import clock
from amlstack.cli import targets
from amlstack.cli.jobfiles.judgement import check_file, plan_gate
from amlstack.cli.rehearsal import inputs, mapping_file

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    import jobs


def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for job files, with no settings of a user's own beside it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def plan(file: Path) -> jobs.Planned:
    """The one job of a file, planned as the verb plans it."""
    where = targets.find(None, None)
    (found,) = check_file(file, where, gate=plan_gate(where, clock.today())).plans
    return found


def data(file: Path, *options: str, put: tuple[str, ...] = ()) -> inputs.Data:
    """The places of its inputs and outputs, with these options of ``--input`` and ``--output``."""
    planned, mapped = plan(file), mapping_file.read_all(file)
    chosen, wrong = inputs.options(options, (planned,))
    written, also_wrong = inputs.options(put, (planned,), "outputs")
    assert (*wrong, *also_wrong) == ()
    puts = inputs.Puts(written, mapped.outputs)
    return inputs.resolve(planned, chosen, mapped.inputs, file, lambda _: False, put=puts)


def made(folder: Path, *names: str) -> None:
    """Makes files, and folders for names without an ending."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if "." in path.name:
            path.write_text("x")
        else:
            path.mkdir()
