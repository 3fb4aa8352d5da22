"""Both ways of starting the pack end in the same analyzer, whatever folder and PATH they start in."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime import proto
from pulumi.runtime.proto import analyzer_pb2_grpc

from amlstack.base.paths import PROJECT
from amlstack.rpc.host import CHANNEL_OPTIONS
from policies.config import ALL
from tests.support.policies.pack_process import ENGINE, started

if TYPE_CHECKING:
    from pathlib import Path

PACK = PROJECT / "policies"
AS_EXECUTABLE = [str(PACK / "analyzer"), ENGINE, "--logtostderr", "-v=3"]
AS_DIRECTORY = [sys.executable, "-m", "pulumi.policy", ENGINE, str(PACK)]
LEVELS = {"mandatory": proto.MANDATORY, "advisory": proto.ADVISORY, "disabled": proto.DISABLED}
BARE_PATH = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def folder_that_shadows(tmp_path: Path) -> Path:
    """A program's folder as the engine's working directory, with modules named like what the pack imports."""
    for name in ("policies", "amlstack", "json", "views", "pulumi"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('the wrong one')\n")
    return tmp_path


@pytest.mark.parametrize("command", [AS_EXECUTABLE, AS_DIRECTORY], ids=["executable", "directory"])
def test_the_pack_tells_the_engine_its_policies(command: list[str], tmp_path: Path) -> None:
    with (
        started(command, tmp_path, {**BARE_PATH, "HOME": str(tmp_path)}) as address,
        grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel,
    ):
        info = analyzer_pb2_grpc.AnalyzerStub(channel).GetAnalyzerInfo(empty_pb2.Empty(), timeout=300)

    assert info.name == "amlstack"
    assert {(policy.name, policy.enforcementLevel) for policy in info.policies} == {
        (rule.code, LEVELS[rule.level]) for rule in ALL
    }


def test_the_executable_is_not_misled_by_the_folder_it_starts_in(folder_that_shadows: Path) -> None:
    with (
        started(AS_EXECUTABLE, folder_that_shadows, BARE_PATH) as address,
        grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel,
    ):
        info = analyzer_pb2_grpc.AnalyzerStub(channel).GetAnalyzerInfo(empty_pb2.Empty(), timeout=300)

    assert info.name == "amlstack"


def test_the_pack_s_own_process_reads_the_messages_without_the_sdk_around_them() -> None:
    start = "from amlstack.base import startup; startup.leave_out_sdk()"
    more = (
        "import policies.pack.server, pulumi.runtime.proto.analyzer_pb2, sys; print('pulumi.resource' in sys.modules)"
    )
    result = {
        first: subprocess.run(
            [sys.executable, "-P", "-c", f"{first}{start}; {more}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for first in ("", "import pulumi; ")
    }

    assert result == {"": "False", "import pulumi; ": "True"}


def test_the_executable_works_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "pack"
    link.symlink_to(PACK / "analyzer")

    with (
        started([str(link), ENGINE], tmp_path, BARE_PATH) as address,
        grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel,
    ):
        assert analyzer_pb2_grpc.AnalyzerStub(channel).GetPluginInfo(empty_pb2.Empty(), timeout=300).version


def test_the_executable_says_what_is_missing_where_there_is_no_python(tmp_path: Path) -> None:
    copy = tmp_path / "policies" / "analyzer"
    copy.parent.mkdir()
    copy.write_bytes((PACK / "analyzer").read_bytes())
    copy.chmod(0o755)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "readlink"):
        found = next(path for path in ("/usr/bin", "/bin") if os.access(f"{path}/{name}", os.X_OK))
        (tools / name).symlink_to(f"{found}/{name}")

    done = subprocess.run(
        [str(tools / "bash"), str(copy), ENGINE], env={"PATH": str(tools)}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "The policy pack needs Python" in done.stderr
    assert "make venv" in done.stderr


def test_the_executable_uses_python_of_path_where_the_project_has_no_environment(tmp_path: Path) -> None:
    copy = tmp_path / "policies" / "analyzer"
    copy.parent.mkdir()
    copy.write_bytes((PACK / "analyzer").read_bytes())
    copy.chmod(0o755)
    fake = tmp_path / "bin" / "python3"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)

    done = subprocess.run(
        [str(copy), ENGINE, "-v=9"],
        env={"PATH": f"{fake.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["-P", str(copy.parent), ENGINE, "-v=9"]


def test_a_day_that_is_none_ends_the_pack_with_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        AS_EXECUTABLE,
        cwd=tmp_path,
        env={**BARE_PATH, "AMLSTACK_TODAY": "31.12.2026"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.strip() == (
        "policy pack amlstack: AMLSTACK_TODAY is '31.12.2026'. It must be an ISO date. Write it like 2026-08-01, or "
        "unset it."
    )
