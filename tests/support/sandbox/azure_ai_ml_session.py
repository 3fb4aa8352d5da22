"""A session with azure-ai-ml against the sandbox of the environment; prints one JSON object.

Run as a process of its own: the SDK takes seconds to import and warns about its own deprecations.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

from azure.ai.ml import MLClient, command, load_component
from azure.ai.ml.entities import (
    AccountKeyConfiguration,
    AmlCompute,
    AzureBlobDatastore,
    AzureDataLakeGen2Datastore,
    AzureFileDatastore,
    Data,
    Environment,
    JobSchedule,
    RecurrencePattern,
    RecurrenceTrigger,
)
from azure.core.exceptions import HttpResponseError
from azure.identity import DefaultAzureCredential


def main(name: str, folder: Path) -> dict[str, object]:
    # As in anybody's script: the environment alone leads to the sandbox.
    client = MLClient(DefaultAzureCredential(), os.environ["AZURE_SUBSCRIPTION_ID"], name, name)
    seen: dict[str, object] = {"container": client.datastores.get_default().container_name}
    client.compute.begin_create_or_update(AmlCompute(name="gpu2", size="Standard_ND40rs_v2", max_instances=2)).result()
    seen["size"] = client.compute.get("gpu2").size
    client.compute.begin_delete("gpu2").result()
    seen["computes"] = [compute.name for compute in client.compute.list()]
    client.environments.create_or_update(Environment(name="own", image="mcr/x:1", version="7"))
    seen["version"] = client.environments.get("own", label="latest").version
    seen["assets"] = assets_of(client)
    seen["data"] = data_of(client)
    seen["stores"] = stores_of(client)
    seen["described"] = described(client, name)
    job = client.jobs.create_or_update(
        command(
            code=str(folder),
            command="python train.py",
            environment="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/1",
            compute="gpu",
            instance_count=2,
            distribution={"type": "pytorch", "process_count_per_instance": 1},
        )
    )
    seen["waits"] = client.jobs.get(job.name).status
    client.jobs.begin_cancel(job.name).result()
    client.jobs.stream(job.name)
    seen["ended"] = client.jobs.get(job.name).status
    client.jobs.archive(job.name)
    seen["schedule"] = schedule_of(client, job.name)
    seen["archived"] = [row.name == job.name for row in client.jobs.list(list_view_type="ArchivedOnly")]
    return seen


def assets_of(client: MLClient) -> list[object]:
    """Versions that the client numbers itself, the latest one, and lists without what was archived."""
    numbered = [client.environments.create_or_update(Environment(name="counted", image=f"mcr/x:{n}")) for n in (1, 2)]
    seen: list[object] = [made.version for made in numbered]
    for number in ("1", "2"):
        spec = {"name": "step", "version": number, "type": "command", "command": "true", "environment": "azureml:own:7"}
        client.components.create_or_update(load_component(source=io.StringIO(json.dumps(spec))))
    seen.append(client.components.get("step", label="latest").version)
    client.components.archive("step", version="2")
    seen.append(client.components.get("step", label="latest").version)
    client.environments.archive("counted", version="2")
    seen.append([row.version for row in client.environments.list("counted")])
    client.environments.restore("counted", version="2")
    client.environments.archive("counted")
    views = [client.environments.list(list_view_type=view) for view in ("ActiveOnly", "ArchivedOnly")]
    return [*seen, *([row.name for row in rows] for rows in views)]


def data_of(client: MLClient) -> list[object]:
    """Data assets at an address: numbered by the client, the latest one, lists, archived and back."""
    place = "azureml://datastores/workspaceblobstore/paths/raw/"
    made = [client.data.create_or_update(Data(name="raw", path=f"{place}{n}/", type="uri_folder")) for n in (1, 2)]
    seen: list[object] = [one.version for one in made]
    latest = client.data.get("raw", label="latest")
    seen += [latest.version, latest.path, latest.type]
    client.data.archive("raw", version="2")
    seen += [[one.version for one in client.data.list("raw")], client.data.get("raw", version="2").path]
    client.data.restore("raw", version="2")
    seen.append(sorted(str(one.version) for one in client.data.list("raw")))
    client.data.archive("raw")
    seen.append([one.name for one in client.data.list()])
    client.data.restore("raw")
    seen.append([(one.name, one.latest_version, one.type) for one in client.data.list()])
    try:
        client.data.create_or_update(Data(name="raw", version="2", path=f"{place}3/", type="uri_folder"))
    except HttpResponseError as error:
        seen.append(error.status_code)
    return seen


def stores_of(client: MLClient) -> list[object]:
    """Datastores of three types made, read and deleted."""
    made = [
        AzureBlobDatastore(name="blobs", account_name="lake", container_name="corpora"),
        AzureDataLakeGen2Datastore(name="files", account_name="lake", filesystem="corpora"),
        AzureFileDatastore(
            name="shares",
            account_name="lake",
            file_share_name="corpora",
            credentials=AccountKeyConfiguration(account_key="canary-key"),
        ),
    ]
    for store in made:
        client.datastores.create_or_update(store)
    share = client.datastores.get("shares", include_secrets=True)
    seen: list[object] = [client.datastores.get("files").filesystem, share.file_share_name, "canary" in str(share)]
    client.datastores.delete("blobs")
    return [*seen, sorted(store.name for store in client.datastores.list())]


def described(client: MLClient, name: str) -> object:
    """A workspace's description and tags, changed by a PATCH."""
    workspace = client.workspaces.get(name)
    workspace.description, workspace.tags = "ours", {"team": "a"}
    changed = client.workspaces.begin_update(workspace).result()
    return [changed.description, dict(changed.tags)]


def schedule_of(client: MLClient, job: str) -> list[object]:
    """A schedule made, listed, disabled and deleted; enabled it stays."""
    trigger = RecurrenceTrigger(
        frequency="week", interval=1, schedule=RecurrencePattern(hours=4, minutes=[0, 30], week_days=["monday"])
    )
    made = client.schedules.begin_create_or_update(JobSchedule(name="weekly", trigger=trigger, create_job=job)).result()
    seen: list[object] = [made.is_enabled, [one.name for one in client.schedules.list()]]
    try:
        client.schedules.begin_delete("weekly").result()
    except HttpResponseError as error:
        seen.append(error.status_code)
    seen.append(client.schedules.begin_disable("weekly").result().is_enabled)
    client.schedules.begin_delete("weekly").result()
    return [*seen, list(client.schedules.list(list_view_type="All"))]


if __name__ == "__main__":
    answer = main(sys.argv[1], Path(sys.argv[2]))
    sys.stdout.write("\n" + json.dumps(answer))
