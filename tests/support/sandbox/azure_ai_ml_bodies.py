"""Reads what others made with azure-ai-ml, makes its own, and keeps every body as it went over the wire.

Run as a process of its own, led by the environment alone: the SDK takes seconds to import.

    python azure_ai_ml_bodies.py WORKSPACE FOLDER < {"reads": {kind: [name, version?]}, "version": "…"}

Prints {"read": {kind: exchange}, "made": {kind: exchange}}; an exchange has address, the text that was sent (or null)
and the text of the answer. ``version`` is that of the environment it makes; all that it makes is named ``theirs``.
Its job runs in the environment ``ours`` on the cluster ``trains``, which are there.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from azure.ai.ml import MLClient, Output, command, load_job
from azure.ai.ml.entities import (
    AmlCompute,
    AzureBlobDatastore,
    CommandComponent,
    CronTrigger,
    Data,
    Environment,
    JobSchedule,
)
from azure.identity import DefaultAzureCredential

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGE = "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04"
PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:trains}
jobs: {only: {type: command, component: "azureml:theirs:1"}}
"""
CONDA = {"name": "own", "channels": ["conda-forge"], "dependencies": ["python=3.11", {"pip": ["numpy==2.3.5"]}]}


class Exchanges:
    """Every request for a workspace's resource and its answer; the client calls it for each answer."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def __call__(self, response: Any) -> None:
        request, answer = response.http_request, response.http_response
        parts = urlsplit(request.url)
        if "/workspaces/" not in parts.path or "json" not in answer.headers.get("Content-Type", ""):
            return
        if hasattr(answer, "read"):
            answer.read()  # the first answer of a long-running operation is streamed
        sent = request.content if hasattr(request, "content") else request.body
        self.seen.append(
            {
                "method": request.method,
                "address": f"{parts.path}?{parts.query}",
                "sent": sent.decode() if isinstance(sent, bytes) else sent,
                "answer": answer.text(),
            }
        )

    def of(self, method: str, end: str, what: Callable[[], Any]) -> dict[str, Any]:
        """The last request of an operation by a method to the resource whose path ends so."""
        self.seen.clear()
        with contextlib.redirect_stdout(io.StringIO()):
            what()
        found = [
            each
            for each in self.seen
            if each["method"] == method and end in urlsplit(each["address"]).path and each["answer"]
        ]
        return found[-1]


def main(name: str, folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    exchanges = Exchanges()
    client = MLClient(
        DefaultAzureCredential(), os.environ["AZURE_SUBSCRIPTION_ID"], name, name, raw_response_hook=exchanges
    )
    read: dict[str, Callable[..., Any]] = {
        "jobs": client.jobs.get,
        "environments": client.environments.get,
        "computes": client.compute.get,
        "data": client.data.get,
        "datastores": client.datastores.get,
        "components": client.components.get,
        "schedules": client.schedules.get,
    }
    seen: dict[str, Any] = {
        kind: exchanges.of("GET", f"/{kind}/{names[0]}", partial(read[kind], *names))
        for kind, names in wanted["reads"].items()
    }
    return {"read": seen, "made": made(client, folder, wanted["version"], exchanges)}


def made(client: MLClient, folder: Path, version: str, exchanges: Exchanges) -> dict[str, Any]:
    """The client's requests for resources of its own, and the answers to them."""
    (folder / "train.py").write_text("print('trained')\n")
    environment = Environment(name="theirs", version=version, image=IMAGE, conda_file=CONDA, tags={"team": "a"})
    cluster = AmlCompute(name="theirs", size="Standard_ND96asr_v4", max_instances=2, idle_time_before_scale_down=240)
    store = AzureBlobDatastore(name="theirs", account_name="stelsewhere", container_name="c", description="Words, ä.")
    data = Data(
        name="theirs",
        version="3",
        type="uri_folder",
        path="azureml://datastores/workspaceblobstore/paths/raw/3/",
        tags={"team": "a"},
        description="Words, ä.",
    )
    job = command(
        name="theirs",
        command="python train.py --rate ${{inputs.rate}} > ${{outputs.kept}}/log.txt",
        code=str(folder),
        environment="ours@latest",
        compute="trains",
        inputs={"rate": 0.1},
        outputs={"kept": Output(type="uri_folder", mode="rw_mount")},
        environment_variables={"NCCL_DEBUG": "INFO"},
        instance_count=2,
        distribution={"type": "pytorch", "process_count_per_instance": 1},
        shm_size="2g",
        tags={"team": "ä"},
        display_name="Theirs",
        experiment_name="both",
    )
    (folder.parent / "pipeline.yml").write_text(PIPELINE)
    component = CommandComponent(
        name="theirs", version="1", command="echo ä", environment="ours@latest", tags={"team": "a"}
    )
    trigger = CronTrigger(expression="0 2 * * *", start_time="2126-07-01 00:00:00")

    def scheduled() -> JobSchedule:
        pipeline = load_job(folder.parent / "pipeline.yml")
        return JobSchedule(name="theirs", trigger=trigger, create_job=pipeline, display_name="Theirs, ä")

    makes: dict[str, Callable[[], Any]] = {
        "environments": lambda: client.environments.create_or_update(environment),
        "computes": lambda: client.compute.begin_create_or_update(cluster).result(),
        "datastores": lambda: client.datastores.create_or_update(store),
        "data": lambda: client.data.create_or_update(data),
        "jobs": lambda: client.jobs.create_or_update(job),
        "components": lambda: client.components.create_or_update(component),
        "schedules": lambda: client.schedules.begin_create_or_update(scheduled()).result(),
    }
    seen = {kind: exchanges.of("PUT", f"/{kind}/theirs", make) for kind, make in makes.items()}
    with contextlib.redirect_stdout(io.StringIO()):
        client.jobs.stream("theirs")
    return seen


if __name__ == "__main__":
    answer = main(sys.argv[1], Path(sys.argv[2]), json.load(sys.stdin))
    sys.stdout.write("\n" + json.dumps(answer))
