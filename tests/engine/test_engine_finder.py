"""The engine finder on the command line, and its pins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT
from tests.support.engine.engine_machine import PINNED

if TYPE_CHECKING:
    from tests.support.engine.engine_machine import Machine


def test_plain_output_is_ready_for_path(machine: Machine) -> None:
    machine.install_go()
    (folder,) = machine.run().stdout.splitlines()
    assert (Path(folder) / "pulumi").is_file()


def test_a_cache_that_cannot_be_written_is_named(machine: Machine) -> None:
    machine.install_go()
    (machine.root / "file").write_text("")
    machine.environ["AMLSTACK_CACHE"] = str(machine.root / "file")
    done = machine.run()
    assert done.returncode == 1
    assert "Set AMLSTACK_CACHE" in done.stderr


def test_an_unknown_source_is_wrong_use(machine: Machine) -> None:
    machine.environ["AMLSTACK_ENGINE"] = "sources"
    done = machine.run()
    assert done.returncode == 2
    assert "sources is none of path, release, build" in done.stderr


def test_the_module_locks_name_the_pinned_version() -> None:
    modules = PROJECT / "tools" / "engine" / "modules"
    assert f"github.com/pulumi/pulumi/pkg/v3 v{PINNED}" in (modules / "cli" / "go.mod").read_text()
    for lock in ("cli", "python_host"):
        assert "github.com/pulumi/pulumi/sdk/v3" in (modules / lock / "go.sum").read_text()
