"""Ctrl-C and a kill in the middle of `amlstack prove`: nothing stays, and `--cleanup` proves it."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from tests.support.stack.small_jobs import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Engine, Sandbox

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture
def proofs() -> Iterator[Path]:
    folder = PROJECT / ".amlstack-prove" / f"test-{secrets.token_hex(4)}"
    yield folder
    for file in PROJECT.glob("Pulumi.prove-*.yaml"):
        if (folder / file.name.split("-")[1]).exists():
            file.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def prove(sandbox: Sandbox, proofs: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "amlstack.cli.main", "prove", *words]
    env = {**os.environ, **sandbox.environ, "AMLSTACK_PROOFS": str(proofs)}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def until(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if word in line:
            return
    pytest.fail("".join(seen))


def left(sandbox: Sandbox) -> list[str]:
    with store_of(sandbox.home) as store:
        return [row.id for row in store.resources.all()]


ENDS = {"Ctrl-C": signal.SIGINT, "kill": signal.SIGKILL}
if os.environ.get("PROVE_CHANGES") == "all":
    ENDS["end"] = signal.SIGTERM


@pytest.mark.parametrize("number", ENDS.values(), ids=ENDS)
def test_a_proof_that_is_ended_leaves_nothing(
    engine: Engine, own_sandbox: Sandbox, proofs: Path, number: signal.Signals
) -> None:
    del engine
    where = "--subscription", own_sandbox.endpoint.subscription, "--location", "westeurope"
    with prove(own_sandbox, proofs, *where, "--only", "cluster", "--yes") as process:
        until(process, "cluster: adds")  # the open workspace is there now
        assert left(own_sandbox)
        process.send_signal(number)
        process.communicate()
    if number == signal.SIGKILL:
        assert left(own_sandbox), "nobody has cleaned up yet"
    else:
        assert process.returncode == 130
        assert not left(own_sandbox)
    with prove(own_sandbox, proofs, "--cleanup") as process:
        said = process.communicate()[0]
    assert process.returncode == 0, said
    assert "every group of every proof answers 404" in said
    assert not left(own_sandbox)
    assert not list(PROJECT.glob(f"Pulumi.prove-{next(proofs.iterdir()).name}-*"))
