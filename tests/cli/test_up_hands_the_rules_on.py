"""``amlstack up`` gives the pack the configuration of the stack's settings, unless one is given from outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from amlstack.base import paths
from amlstack.cli import stack_files
from amlstack.cli.main import main
from amlstack.cli.policy_pack import CONFIG_VARIABLE, PACK_VARIABLE, GivenRules
from amlstack.engine import Engine
from policies.config import BUILT_IN

STACK = "config:\n  amlstack:location: westeurope\n  amlstack:workspace: aml-team\n"


def rules_of_the_stack() -> Path | None:
    return stack_files.judge_settings("sandbox", {}).rules


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "PROJECT", tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: amlstack\n")
    (tmp_path / "rules.json").write_text("{}")
    (tmp_path / "Pulumi.sandbox.yaml").write_text(STACK)
    return tmp_path


def test_the_file_of_the_settings_is_the_pack_s(project: Path) -> None:
    (project / "Pulumi.sandbox.yaml").write_text(f"{STACK}  amlstack:policies: rules.json\n")

    assert rules_of_the_stack() == project / "rules.json"


@pytest.mark.parametrize("policies", ["", "  amlstack:policies: none.json\n"])
def test_without_one_the_pack_has_its_own(project: Path, policies: str) -> None:
    (project / "Pulumi.sandbox.yaml").write_text(STACK + policies)

    assert rules_of_the_stack() is None


@pytest.mark.parametrize(
    ("pack", "config", "words"),
    [
        (True, True, ("PACK", "--policy-pack-config", "given.json")),
        (True, False, ("PACK",)),
        (False, True, ("OWN", "--policy-pack-config", "given.json")),
    ],
)
def test_what_is_given_from_outside_wins_over_the_settings(
    project: Path, monkeypatch: pytest.MonkeyPatch, pack: bool, config: bool, words: tuple[str, ...]
) -> None:
    """Also where the engine's own variables give it, which the engine would count beside the options."""
    for name in (PACK_VARIABLE, CONFIG_VARIABLE):
        monkeypatch.setenv(name, "elsewhere")
    monkeypatch.setenv(paths.POLICY_CONFIG, "elsewhere")
    (project / "given.json").write_text("{}")
    (project / "pack").mkdir()
    (project / "pack" / "PulumiPolicy.yaml").write_text("")
    engine = Engine((), "3", official=True)
    rules = GivenRules.taken(project / "pack" if pack else None, project / "given.json" if config else None)

    said = rules.words(engine, project / "rules.json")

    names = {str(project / "pack"): "PACK", str(engine.pack): "OWN", str(project / "given.json"): "given.json"}
    assert tuple(names.get(word, word) for word in said) == ("--policy-pack", *words)
    assert PACK_VARIABLE not in os.environ
    assert CONFIG_VARIABLE not in os.environ
    assert os.environ[paths.POLICY_CONFIG] == (str(project / "given.json") if config else "")


@pytest.mark.parametrize(
    ("option", "words"), [("--policy-pack", "must be a policy pack"), ("--policy-config", "There is no file")]
)
def test_what_is_no_pack_and_no_file_is_said_before_anything_starts(
    project: Path, capsys: pytest.CaptureFixture[str], option: str, words: str
) -> None:
    assert main(["up", "--stack", "prod", "--preview", option, str(project / "none")]) == 2
    assert words in capsys.readouterr().err


def test_check_judges_by_the_pack_that_is_given_and_not_by_the_settings(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(stack_files.__file__).parents[2]
    shutil.copytree(root / "policies", project / "pack" / "policies", ignore=shutil.ignore_patterns("__pycache__"))
    (project / "pack" / "PulumiPolicy.yaml").write_text("")
    (project / "pack" / "policies" / BUILT_IN.name).write_text('{"node-ceiling": {"nodes": 1}}')
    (project / "lax.json").write_text('{"node-ceiling": "disabled"}')
    cluster = "  amlstack:clusters: [{name: abc, size: Standard_ND96asr_v4, nodes: {min: 0, max: 2}}]\n"
    (project / "Pulumi.prod.yaml").write_text(f"{STACK}{cluster}  amlstack:policies: lax.json\n")

    words = ["check", "--stack", "prod"]
    monkeypatch.chdir(project)
    assert main(words) == 0
    assert "[node-ceiling]" not in capsys.readouterr().out
    # The modules of the pack that is given are imported in place of this process's own.
    command = [sys.executable, "-m", "amlstack.cli.main", *words, "--policy-pack", "pack"]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=False)
    assert "[node-ceiling]" in done.stdout
