"""Clients that submit, poll and cancel beside each other while the server is killed: no job is lost, none runs twice.

Each client is azure-core's pipeline with azure-identity's credential, as azure-ai-ml and the azure-mgmt packages are
built on it. `make clients` runs it at full size: CLIENTS (64), CLIENT_KILLS (20), CLIENT_SECONDS (120), CLIENT_SEED.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from azure.core import PipelineClient
from azure.core.exceptions import IncompleteReadError, ServiceRequestError, ServiceResponseError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy
from azure.core.rest import HttpRequest
from azure.identity import WorkloadIdentityCredential

from amlstack.sandbox import processes
from amlstack.sandbox.server import daemon
from amlstack.sandbox.store.store import TERMINAL, Store, folder
from tests.support.sandbox.sandbox_client import Arm, cluster, job

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import Sandbox

pytestmark = [
    pytest.mark.training,
    pytest.mark.timeout(3600),
    # A client whose server was killed in the middle of an answer drops that connection without closing it.
    pytest.mark.filterwarnings("ignore:unclosed .*SSLSocket:ResourceWarning"),
]

CLIENTS = int(os.environ.get("CLIENTS", "4"))
KILLS = int(os.environ.get("CLIENT_KILLS", "2"))
SECONDS = float(os.environ.get("CLIENT_SECONDS", "0"))
"""The least time for which the clients go on; they also go on until every kill is done."""
SEED = int(os.environ.get("CLIENT_SEED", "1"))
ANSWERS = 5 * CLIENTS
"""At most so many answers lie between two kills."""
IMAGE = "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04"


class Load:
    """The clients: the jobs that were accepted from them, and how far they are."""

    def __init__(self, url: str, workspace: str, compute: str, environment: str, marks: Path) -> None:
        self.url, self.workspace, self.compute = url, workspace, compute
        self.environment, self.marks = environment, marks
        self.accepted: set[str] = set()
        self.failed: list[str] = []
        self.answers = 0
        self.over = threading.Event()
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int) -> None:
        """Until so many further requests were answered."""
        with self._changed:
            goal = self.answers + more
            self._changed.wait_for(lambda: self.answers >= goal or bool(self.failed))

    def known(self) -> set[str]:
        """The jobs that were accepted so far."""
        with self._changed:
            return set(self.accepted)

    def _run(self, number: int) -> None:
        chance = random.Random(SEED * 1000 + number)
        try:
            client: PipelineClient[Any, Any]
            with WorkloadIdentityCredential() as credential:
                signed_in = BearerTokenCredentialPolicy(credential, f"{self.url}/.default")
                with PipelineClient(self.url, policies=[signed_in]) as client:
                    submitted = 0
                    while not self.over.is_set():
                        self._one(client, chance, f"c{number}-{submitted}")
                        submitted += 1
        except Exception as error:  # noqa: BLE001 - shown by the test
            with self._changed:
                self.failed.append(f"{type(error).__name__}: {error}")
                self._changed.notify_all()

    def _one(self, client: PipelineClient[Any, Any], chance: random.Random, name: str) -> None:
        command = f'echo "$AZUREML_RUN_ID" >> {self.marks}'
        body = job(self.compute, command=command, environmentId=self.environment)
        assert self._ask(client, "PUT", name, body)["name"] == name
        with self._changed:
            self.accepted.add(name)
        if chance.random() < 0.4:
            for _ in range(chance.randrange(4)):
                self._ask(client, "GET", name)
            self._ask(client, "POST", f"{name}/cancel")
        for _ in range(chance.randrange(1, 12)):
            if self._ask(client, "GET", name)["properties"]["status"] in TERMINAL:
                return

    def _ask(self, client: PipelineClient[Any, Any], method: str, path: str, body: Any = None) -> Any:
        """One request, repeated while the server is not there, as every client of Azure does."""
        address = f"{self.url}{self.workspace}/jobs/{path}?api-version=2025-12-01"
        while True:
            try:
                answer = client.send_request(HttpRequest(method, address, json=body))
                answer.raise_for_status()
                return answer.json() if answer.content else None
            except (IncompleteReadError, ServiceRequestError, ServiceResponseError):
                if self.over.is_set() and daemon.find() is None:
                    raise
                self.over.wait(0.05)  # what a retry policy does between two attempts
            finally:
                with self._changed:
                    self.answers += 1
                    self._changed.notify_all()


def check_store(home: Path, accepted: set[str]) -> None:
    """The file is whole, and holds each job that a client knows of."""
    with contextlib.closing(sqlite3.connect(folder(home) / "state.db", timeout=60)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        stored = {name for (name,) in database.execute("SELECT name FROM jobs")}
    assert accepted - stored == set(), "lost"


def test_no_job_is_lost_and_none_runs_twice(
    own_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in own_sandbox.environ.items():
        monkeypatch.setenv(name, value)
    arm, home, marks = Arm(own_sandbox.endpoint), own_sandbox.home, tmp_path / "ran"
    workspace = arm.make_workspace("manyclients")
    compute = f"{workspace}/computes/gpu"
    arm.finish(arm.put(compute, cluster(maxNodeCount=6)))
    environment = f"{workspace}/environments/plain/versions/1"
    assert arm.put(environment, {"properties": {"image": IMAGE}}).status == 201
    load, chance, begun = Load(arm.url, workspace, compute, environment, marks), random.Random(SEED), time.monotonic()
    load.start()
    try:
        for number in range(KILLS):
            load.wait_for(chance.randrange(1, ANSWERS))
            known = load.known()
            endpoint = daemon.find(home)
            assert endpoint is not None
            processes.send(endpoint.pid, signal.SIGKILL)
            assert daemon.up(home).url == arm.url, "clients find it where it was"
            check_store(home, known)
            sys.stdout.write(f"kill {number + 1}: {len(known)} jobs accepted, {load.answers} answers\n")
            assert load.failed == []
        while time.monotonic() < begun + SECONDS and not load.failed:
            load.wait_for(CLIENTS)
    finally:
        load.end()
        gc.collect()  # dropped connections end within this test
    assert load.failed == []
    check_all_ended_well(home, load, marks)


def check_all_ended_well(home: Path, load: Load, marks: Path) -> None:
    with contextlib.closing(Store(home)) as store:
        pause = threading.Event()
        while store.jobs.active() and daemon.find(home) is not None:
            pause.wait(0.2)
        check_store(home, load.accepted)
        rows = store.jobs.list()
        ran = Counter(marks.read_text().split())
        ended = Counter(row.status for row in rows)
        assert {row.name for row in rows} >= load.accepted
        assert set(ended) <= {"Completed", "Canceled"}, ended
        assert [name for name, times in ran.items() if times > 1] == [], "ran twice"
        assert {row.name for row in rows if row.status == "Completed"} <= set(ran), "completed, and never ran"
        assert [node for node in store.nodes.all() if node.job is not None] == [], "nodes are free again"
        # These clients ask for no cancellation's operation, which goes on as it is asked for.
        assert [one for one in store.operations.running() if one.kind != "cancel"] == []
    summary = f"{len(rows)} jobs of {CLIENTS} clients: {dict(ended)}, {sum(ran.values())} ran, {load.answers} answers"
    sys.stdout.write(f"{summary}\n")
