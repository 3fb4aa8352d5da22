"""The archive of the pack runs by itself, is the same for the same sources, and holds nothing of a machine."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import sysconfig
import tarfile
from typing import TYPE_CHECKING

import grpc
import pytest
import yaml
from google.protobuf import empty_pb2
from pulumi.runtime import proto
from pulumi.runtime.proto import analyzer_pb2_grpc

from amlstack import __version__
from amlstack.base.paths import PROJECT
from amlstack.rpc.host import CHANNEL_OPTIONS
from policies import config
from policies.pack import archive
from tests.support.policies.pack_process import ENGINE, started
from tests.support.policies.showing import request, shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.harness import Stack

CHOSEN = {"node-ceiling": {"nodes": 3}, "ssh-closed": "mandatory"}
CLUSTER = {
    "properties": {
        "computeType": "AmlCompute",
        "properties": {"vmSize": "Standard_ND40rs_v2", "scaleSettings": {"maxNodeCount": 4}},
    }
}
COMPUTE = "azure-native:machinelearningservices:Compute"


@pytest.fixture
def chosen(tmp_path: Path) -> Path:
    path = tmp_path / "team.json"
    path.write_text(json.dumps(CHOSEN))
    return path


@pytest.fixture
def unpacked(tmp_path: Path, chosen: Path) -> Path:
    built, _ = archive.build(tmp_path / "dist", chosen)
    with tarfile.open(built) as packed:
        packed.extractall(tmp_path / "elsewhere", filter="data")
    (top,) = (tmp_path / "elsewhere").iterdir()
    return top


@pytest.mark.parametrize("way", ["folder", "executable"])
def test_the_archive_runs_without_the_project_and_judges_as_its_team_chose(
    unpacked: Path, tmp_path: Path, way: str
) -> None:
    # -S: the project, installed editable, is out of sight; only the packages that requirements.txt names are there.
    start = (
        f"import sys; sys.path.append({sysconfig.get_paths()['purelib']!r}); sys.argv[0] = 'policy'; "
        "import runpy; runpy.run_module('pulumi.policy', run_name='__main__', alter_sys=True)"
    )
    by_folder = [sys.executable, "-P", "-S", "-c", start, ENGINE, str(unpacked)]
    command = by_folder if way == "folder" else [str(unpacked / "analyzer"), ENGINE]
    with (
        started(command, tmp_path, {"PATH": f"{sysconfig.get_path('scripts')}:/usr/bin:/bin"}) as address,
        grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel,
    ):
        stub = analyzer_pb2_grpc.AnalyzerStub(channel)
        info = stub.GetAnalyzerInfo(empty_pb2.Empty(), timeout=300)
        verdict = stub.Analyze(request(COMPUTE, CLUSTER), timeout=300)

    levels = {policy.name: policy.enforcementLevel for policy in info.policies}
    assert info.version == __version__
    assert set(levels) == {rule.code for rule in config.ALL}
    assert levels["ssh-closed"] == proto.MANDATORY
    assert {code for level, code, _ in shown(verdict) if level == "mandatory"} == {"node-ceiling", "ssh-closed"}
    assert {one.policyPackVersion for one in verdict.diagnostics} == {__version__}


def test_the_same_sources_give_the_same_bytes_and_the_checksum_is_theirs(tmp_path: Path, chosen: Path) -> None:
    first, checksum = archive.build(tmp_path / "a", chosen)
    second, _ = archive.build(tmp_path / "b", chosen)
    without, _ = archive.build(tmp_path / "c")

    assert first.read_bytes() == second.read_bytes() != without.read_bytes()
    assert hashlib.sha256(first.read_bytes()).hexdigest() == checksum
    assert (tmp_path / "a" / f"{first.name}.sha256").read_text() == f"{checksum}  {first.name}\n"
    assert first.name == f"amlstack-policies-{__version__}.tar.gz"


def test_the_archive_is_a_pack_of_the_official_cli(unpacked: Path) -> None:
    manifest = yaml.safe_load((unpacked / "PulumiPolicy.yaml").read_text())
    needed = (unpacked / "requirements.txt").read_text()

    assert manifest["version"] == __version__
    assert manifest["runtime"] == {"name": "python", "options": {"virtualenv": ".venv"}}
    assert (unpacked / "__main__.py").is_file()
    assert (unpacked / "analyzer").stat().st_mode & 0o111
    lines = [line for line in needed.splitlines() if not line.startswith(" ")]
    assert {line.split("==")[0] for line in lines} >= {"pulumi", "grpcio", "protobuf"}
    assert not [line for line in lines if "azure" in line or "==" not in line]
    assert needed.count("--hash=sha256:") > len(lines)


def test_the_archive_names_no_machine(tmp_path: Path) -> None:
    built, _ = archive.build(tmp_path)
    with tarfile.open(built) as packed:
        for member in packed:
            content = packed.extractfile(member)
            assert content is not None
            assert str(PROJECT).encode() not in content.read()
            assert (member.uid, member.gid, member.mtime, member.uname) == (0, 0, 0, "")


def test_a_wrong_configuration_is_not_built_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "team.json"
    wrong.write_text('{"node-cieling": "mandatory"}')

    assert archive.main(["--out", str(tmp_path / "dist"), "--config", str(wrong)]) == 2
    assert "no rule 'node-cieling'" in capsys.readouterr().err
    assert archive.main(["--out", str(tmp_path / "dist"), "--config", str(tmp_path / "none")]) == 2
    assert not (tmp_path / "dist").exists()


@pytest.mark.engine
def test_the_engine_runs_the_archive_and_names_its_version(stack: Callable[..., Stack], unpacked: Path) -> None:
    asked = [{"name": "train", "token": COMPUTE, "props": CLUSTER}]
    from tests.support.policies.accepting_provider import attached

    with attached() as azure:
        program = stack("anything_from_settings", env=azure.environ).set("ask", asked)
        result = program.preview(policy_packs=[unpacked / "analyzer"]).failed()

    assert {one.policy for one in result.violations if one.level == "mandatory"} == {"node-ceiling", "ssh-closed"}
    assert f"amlstack@v{__version__}" in result.output


def test_make_pack_is_documented() -> None:
    help_text = subprocess.run(["make", "help"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout

    assert "pack" in help_text
