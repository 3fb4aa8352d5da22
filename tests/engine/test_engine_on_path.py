"""An engine on PATH is used as it is, or passed over with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.engine.engine_machine import HOST, NAMES, PINNED, Machine, cli


@pytest.mark.parametrize("version", ["3.230.0", "3.259.0", "3.400.1", "4.0.0"])
def test_a_recent_engine_on_path_is_used_as_it_is(machine: Machine, version: str) -> None:
    for name in NAMES:
        machine.install(name, cli(version) if name == "pulumi" else HOST)
    done = machine.run("--json")
    assert json.loads(done.stdout) == {"version": version, "source": "path", "path": [str(machine.root / "bin")]}
    assert done.stderr == ""
    assert machine.cached == []


def test_an_engine_behind_a_link_finds_its_host_beside_itself(machine: Machine) -> None:
    for name in NAMES:
        machine.install(name, cli(PINNED) if name == "pulumi" else HOST, folder="opt")
    (machine.root / "bin" / "pulumi").symlink_to(machine.root / "opt" / "pulumi")
    assert machine.found() == ("path", PINNED)


def test_an_engine_of_the_cache_on_path_is_not_started_to_be_found(machine: Machine) -> None:
    machine.install_go()
    (folder,) = machine.run().stdout.splitlines()
    for name in NAMES:
        machine.install(name, "#!/bin/sh\nexit 1\n", folder)
    machine.environ["PATH"] = f"{folder}:{machine.root / 'bin'}"
    assert machine.found() == ("build", PINNED)

    (Path(folder) / "pulumi-language-python-exec").unlink()
    assert "does not tell its version" in machine.run("--source", "path").stderr


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "no pulumi on PATH"),
        ({"pulumi": cli("3.229.9"), "pulumi-language-python": HOST}, "is 3.229.9; at least 3.230.0 is needed"),
        ({"pulumi": "#!/bin/sh\nexit 1\n"}, "does not tell its version"),
        ({"pulumi": cli(PINNED)}, "no Python language host"),
        ({"pulumi": cli(PINNED), "pulumi-language-python": "#!/bin/sh\nexit 127\n"}, "no Python language host"),
        ({"pulumi": cli(PINNED), "pulumi-language-python": HOST}, "no pulumi-language-python-exec beside it"),
    ],
    ids=["none", "too-old", "broken", "no-host", "broken-host", "no-launcher"],
)
def test_an_engine_on_path_that_would_not_work_is_passed_over_with_the_reason(
    machine: Machine, files: dict[str, str], reason: str
) -> None:
    for name, text in files.items():
        machine.install(name, text)
    done = machine.run("--source", "path")
    assert done.returncode == 1
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
