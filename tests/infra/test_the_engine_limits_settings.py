"""The engine hands all settings to the program in one string: how long it is, when it does not fit, and what then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base import paths
from amlstack.cli.commands.stacks import up
from infra.settings import checks, read_file, stackfile
from tests.support import yaml_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.harness import Stack
    from tests.support.running import MakeStack

PROGRAM = """\
import os
import pulumi

pulumi.export("length", len(os.fsencode(f"PULUMI_CONFIG={os.environ['PULUMI_CONFIG']}")) + 1)
"""
ODD = {"a": '<&> \u2028 ü \\ " \t', "b": [1, 2.5, True, None, {"c": "é" * 40}], "d": "2026-01-01", "e": -1}


def write(path: Path, **settings: Any) -> Path:
    config = {f"amlstack:{key}": value for key, value in settings.items()}
    path.write_text(yaml_files.dump({"config": config}))
    return path


def length(path: Path) -> int:
    file, _ = stackfile.read(path)
    assert file is not None
    return checks.length(file.config)


def clusters(count: int) -> list[dict[str, Any]]:
    return [{"name": f"c-{number:06}", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}} for number in range(count)]


def test_a_stack_file_that_does_not_fit_is_a_finding_with_the_remedy(tmp_path: Path) -> None:
    path = write(tmp_path / "Pulumi.team.yaml", location="westeurope", workspace="aml-team", clusters=clusters(2_000))
    (finding,) = read_file(path).findings
    assert (finding.code, finding.line) == ("settings-too-large", 4)
    assert "Move entries of `amlstack:clusters` to a file" in finding.remedy
    fits = write(tmp_path / "Pulumi.less.yaml", location="westeurope", workspace="aml-team", clusters=clusters(1_000))
    assert read_file(fits).findings == ()


def test_up_reports_settings_that_do_not_fit_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "Pulumi.sandbox.yaml", location="westeurope", workspace="aml-team", clusters=clusters(2_000))
    (tmp_path / "Pulumi.yaml").write_text("name: amlstack\n")
    monkeypatch.setattr(paths, "PROJECT", tmp_path)
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    assert up() == 1
    assert "settings-too-large" in capsys.readouterr().out
    assert not (tmp_path / "home").exists()


@pytest.mark.engine
def test_the_length_is_what_the_engine_hands_over_and_the_limit_is_where_it_starts_no_program(stack: MakeStack) -> None:
    one = stack(PROGRAM)
    one.set("amlstack:odd", ODD, path=False).set("azure-native:location", "westeurope").set("amlstack:plain", 5)
    secret = ("amlstack:key=a secret text", "amlstack:clusters[0].tags.key=another one")
    one.pulumi("config", "set-all", "--path", *(word for each in secret for word in ("--secret", each))).ok()

    def filled(size: int) -> Stack:
        one.set("amlstack:text", "")
        one.set("amlstack:text", "x" * (size - length(one.settings)))
        assert length(one.settings) == size
        return one

    assert filled(checks.limit()).up().ok()
    assert one.outputs()["length"] == checks.limit()
    refused = filled(checks.limit() + 1).preview()
    assert refused.code
    assert "argument list too long" in refused.output
