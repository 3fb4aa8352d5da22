"""The executable as the engine starts it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from amlstack import __version__
from amlstack.base.paths import PROJECT
from amlstack.provider.server import TYPES
from amlstack.provider.types.jobs import JobRuns
from amlstack.provider.types.versions import (
    DataUploads,
    RegisteredComponents,
    RegisteredData,
    RegisteredEnvironments,
    Snapshots,
)
from amlstack.rpc.host import CHANNEL_OPTIONS
from tests.support.provider.provider_wire import LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LAUNCHER = PROJECT / "amlstack" / "provider" / "pulumi-resource-amlstack"
SCHEMA = json.loads((LAUNCHER.parent / "schema.json").read_text())


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    # A program's folder must not shadow our modules or the standard library's.
    (tmp_path / "amlstack.py").write_text("raise SystemExit('shadowed')")
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    with subprocess.Popen([LAUNCHER, "127.0.0.1:1"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        yield process
        if process.poll() is None:
            process.kill()


def port_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_provider_prints_its_port_and_serves_its_schema_until_it_is_ended(
    process: subprocess.Popen[str], how: signal.Signals
) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port_of(process)}", options=CHANNEL_OPTIONS) as channel:
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        assert json.loads(stub.GetSchema(provider_pb2.GetSchemaRequest(), timeout=LIMIT).schema) == {
            **SCHEMA,
            "version": __version__,
        }
    process.send_signal(how)
    assert process.wait(LIMIT) == 0


def test_it_ends_when_the_engine_that_started_it_is_killed() -> None:
    script = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([{str(LAUNCHER)!r}], stdout=subprocess.PIPE, text=True)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as engine:
        assert engine.stdout is not None
        pid = int(engine.stdout.readline())
        watch = os.pidfd_open(pid)
        engine.kill()
    import select

    try:
        assert select.select([watch], [], [], LIMIT)[0], "the provider outlived its engine"
    finally:
        os.close(watch)


def test_the_schema_names_what_the_provider_takes() -> None:
    assert set(SCHEMA["resources"]) == set(TYPES)
    shapes = {
        "amlstack:code:Snapshot": Snapshots.shape,
        "amlstack:components:Version": RegisteredComponents.shape,
        "amlstack:data:Upload": DataUploads.shape,
        "amlstack:data:Version": RegisteredData.shape,
        "amlstack:environments:Version": RegisteredEnvironments.shape,
        "amlstack:jobs:Job": JobRuns.shape,
    }
    for token, shape in shapes.items():
        resource = SCHEMA["resources"][token]
        assert set(resource["inputProperties"]) == set(shape.fields)
        assert set(resource["requiredInputs"]) == {name for name, rule in shape.fields.items() if rule.required}
        assert set(shape.fields) <= set(resource["properties"])
        assert set(resource["required"]) <= set(resource["properties"])


def test_the_schemas_references_lead_somewhere() -> None:
    for reference in re.findall(r'"\$ref": "#/types/([^"]+)"', json.dumps(SCHEMA)):
        assert reference in SCHEMA["types"]


@pytest.mark.parametrize("plugin", ["amlstack.provider", "amlstack.sandbox.azure_native"])
def test_a_plugin_s_process_reads_the_messages_without_the_sdk_around_them(plugin: str) -> None:
    """The SDK takes longer to import than all else of a plugin together, and every command starts each plugin."""
    script = (
        f"import {plugin}.__main__, pulumi.runtime.proto.provider_pb2, sys; print('pulumi.resource' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
