"""Scripts with Microsoft's other clients, led by the environment alone: management, blobs, MLflow's plugin.

Run as a process of its own, in an environment of other_clients.txt; prints one JSON object: what each capability gave,
or the words of its error.
"""

from __future__ import annotations

import json
import os
import select
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlflow
import requests
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.identity import DefaultAzureCredential
from azure.mgmt.machinelearningservices import MachineLearningServicesMgmtClient, models
from azure.storage.blob import BlobServiceClient

from tests.support.sandbox.asked_requests import AskedRequests
from tests.support.sandbox.seen_capabilities import SeenCapabilities

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGE = "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04"
TRAIN = """\
import mlflow, pathlib
mlflow.log_param("rate", 0.1)
for step in range(3):
    mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
mlflow.set_tag("stage", "inside")
pathlib.Path("note.txt").write_text("from within")
mlflow.log_artifact("note.txt", "notes")
"""
CONDA = "dependencies: [python=3.11, {pip: [mlflow-skinny==3.15.0]}]"


class OtherClients(SeenCapabilities):
    """The clients of one workspace, whose group bears its name, and what was found out with them."""

    def __init__(self, name: str, region: str) -> None:
        super().__init__()
        self.at, self.name, self.region = (name, name), name, region
        self.credential = DefaultAzureCredential()
        endpoint = os.environ["AMLSTACK_ARM_ENDPOINT"]
        self.own = MachineLearningServicesMgmtClient(
            self.credential,
            os.environ["AZURE_SUBSCRIPTION_ID"],
            base_url=endpoint,
            credential_scopes=["https://management.azure.com/.default"],
        )

    def management(self) -> None:
        own, at = self.own, self.at
        self.see("workspaces", lambda: [each.name for each in own.workspaces.list_by_resource_group(self.name)])
        self.see("workspaces of a subscription", lambda: [each.name for each in own.workspaces.list_by_subscription()])
        self.see("a workspace", lambda: own.workspaces.get(*at).ml_flow_tracking_uri.split(":")[0])
        update = models.WorkspaceUpdateParameters(tags={"team": "a"}, description="changed")
        self.see("a workspace updated", self.updated(update))
        self.see("keys", lambda: bool(own.workspaces.list_keys(*at).user_storage_key))
        self.see(
            "a workspace diagnosed", lambda: own.workspaces.begin_diagnose(*at).result().value.storage_account_results
        )
        self.see("keys resynced", lambda: own.workspaces.begin_resync_keys(*at).result())
        self.see("quota in use", lambda: [each.unit for each in own.usages.list(self.region)][:1])
        self.see("quotas", lambda: [each.unit for each in own.quotas.list(self.region)][:1])
        self.see(
            "sizes",
            lambda: "Standard_ND96isr_H100_v5" in [e.name for e in own.virtual_machine_sizes.list(self.region).value],
        )
        self.see("features", lambda: bool([each.id for each in own.workspace_features.list(*at)]))
        self.see("operations", lambda: bool([each.name for each in own.operations.list()]))
        self.see("connections", lambda: list(own.workspace_connections.list(*at)))
        self.see("a cluster", self.cluster)
        self.see("datastores", self.datastores)
        self.see("data", self.data)
        self.see("environments", self.environments)
        self.see("components", self.components)
        self.see("models", self.models)
        self.see("a schedule", self.schedule)
        self.see("a job", self.job)
        self.see(
            "jobs",
            lambda: [[each.name for each in own.jobs.list(*at)], [e.name for e in own.jobs.list(*at, tag="none")]],
        )
        self.see("a job cancelled", self.cancelled)
        self.see("an unknown job", self.unknown)

    def updated(self, update: Any) -> Callable[[], Any]:
        def run() -> Any:
            call = getattr(self.own.workspaces, "begin_update", None)
            made = call(*self.at, update).result() if call else self.own.workspaces.update(*self.at, update)
            return made.description

        return run

    def cluster(self) -> list[Any]:
        scale = models.ScaleSettings(max_node_count=2, min_node_count=0, node_idle_time_before_scale_down="PT4M")
        inner = models.AmlComputeProperties(vm_size="Standard_D4s_v5", scale_settings=scale)
        body = models.ComputeResource(location=self.region, properties=models.AmlCompute(properties=inner))
        made = self.own.compute.begin_create_or_update(*self.at, "more", body).result()
        names = [each.name for each in self.own.compute.list(*self.at)]
        nodes = list(self.own.compute.list_nodes(*self.at, "more"))
        self.own.compute.begin_delete(*self.at, "more", underlying_resource_action="Delete").wait()
        left = [each.name for each in self.own.compute.list(*self.at)]
        return [made.properties.properties.vm_size, names, nodes, left]

    def datastores(self) -> list[Any]:
        own = self.own.datastores
        store = models.AzureBlobDatastore(
            account_name="stelsewhere", container_name="c", credentials=models.NoneDatastoreCredentials()
        )
        own.create_or_update(*self.at, "mine", models.Datastore(properties=store), skip_validation=True)
        shown = [own.get(*self.at, "mine").properties.container_name, "mine" in [e.name for e in own.list(*self.at)]]
        secrets = own.list_secrets(*self.at, "workspaceblobstore").secrets_type
        own.delete(*self.at, "mine")
        return [*shown, str(getattr(secrets, "value", secrets)), "mine" in [each.name for each in own.list(*self.at)]]

    def data(self) -> list[Any]:
        uri = "azureml://datastores/workspaceblobstore/paths/raw/"
        body = models.DataVersionBase(properties=models.UriFolderDataVersion(data_uri=uri))
        made = self.own.data_versions.create_or_update(*self.at, "raw", "1", body)
        container = self.own.data_containers.get(*self.at, "raw").properties
        versions = [each.name for each in self.own.data_versions.list(*self.at, "raw")]
        same = made.properties.data_uri.endswith(uri.removeprefix("azureml:/"))
        return [same, container.latest_version, container.next_version, versions]

    def environments(self) -> list[Any]:
        for name, conda in (("plain", None), ("tracked", CONDA)):
            body = models.EnvironmentVersion(
                properties=models.EnvironmentVersionProperties(image=IMAGE, conda_file=conda)
            )
            self.own.environment_versions.create_or_update(*self.at, name, "1", body)
        return [each.name for each in self.own.environment_containers.list(*self.at)]

    def environment(self, name: str) -> str:
        return str(self.own.environment_versions.get(*self.at, name, "1").id)

    def components(self) -> list[str]:
        spec = {
            "name": "echo",
            "type": "command",
            "command": "echo x",
            "environment": f"azureml:{self.environment('plain')}",
        }
        body = models.ComponentVersion(properties=models.ComponentVersionProperties(component_spec=spec))
        self.own.component_versions.create_or_update(*self.at, "echo", "1", body)
        return [each.name for each in self.own.component_versions.list(*self.at, "echo")]

    def models(self) -> list[str]:
        uri = "azureml://datastores/workspaceblobstore/paths/model/"
        properties = models.ModelVersionProperties(model_uri=uri, model_type="custom_model")
        self.own.model_versions.create_or_update(*self.at, "net", "1", models.ModelVersion(properties=properties))
        return [each.name for each in self.own.model_versions.list(*self.at, "net")]

    def described(self, name: str, command: str, environment: str) -> Any:
        job = models.CommandJob(
            command=command,
            environment_id=self.environment(environment),
            compute_id=self.own.compute.get(*self.at, "gpu").id,
            experiment_name="exp",
            display_name=name,
        )
        return models.JobBase(properties=job)

    def ended(self, name: str) -> str:
        while (status := str(self.own.jobs.get(*self.at, name).properties.status)).rpartition(".")[2].lower() not in (
            "completed", "failed", "canceled"
        ):  # fmt: skip
            select.select([], [], [], 0.2)  # with no pause, looking takes more CPU time than the run itself
        return status.rpartition(".")[2].capitalize()

    def job(self) -> str:
        self.own.jobs.create_or_update(*self.at, "first", self.described("first", "echo done", "plain"))
        return self.ended("first")

    def cancelled(self) -> str:
        self.own.jobs.create_or_update(*self.at, "long", self.described("long", "sleep 600", "plain"))
        self.own.jobs.begin_cancel(*self.at, "long").result()
        return self.ended("long")

    def unknown(self) -> list[Any]:
        try:
            self.own.jobs.get(*self.at, "none")
        except HttpResponseError as error:
            return [error.status_code, error.error.code if error.error else None]
        return []

    def schedule(self) -> list[Any]:
        component = self.own.component_versions.get(*self.at, "echo", "1").id
        compute = self.own.compute.get(*self.at, "gpu").id
        pipeline = models.PipelineJob(
            jobs={"only": {"type": "command", "componentId": component}}, settings={"default_compute": compute}
        )
        body = models.Schedule(
            properties=models.ScheduleProperties(
                trigger=models.CronTrigger(expression="0 2 * * *", start_time="2126-07-01 00:00:00"),
                action=models.JobScheduleAction(job_definition=pipeline),
            )
        )
        self.own.schedules.begin_create_or_update(*self.at, "nightly", body).result()
        names = [each.name for each in self.own.schedules.list(*self.at)]
        body.properties.is_enabled = False
        self.own.schedules.begin_create_or_update(*self.at, "nightly", body).result()
        self.own.schedules.begin_delete(*self.at, "nightly").wait()
        return [names, list(self.own.schedules.list(*self.at))]

    def blobs(self) -> None:
        store = self.own.datastores.get(*self.at, "workspaceblobstore").properties
        container = store.container_name
        account = self.own.workspaces.get(*self.at).storage_account
        token = self.credential.get_token("https://management.azure.com/.default").token
        found = requests.get(
            f"{os.environ['AMLSTACK_ARM_ENDPOINT']}{account}?api-version=2023-01-01",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        ).json()
        client = BlobServiceClient(found["properties"]["primaryEndpoints"]["blob"], credential=self.credential)

        def there_and_back() -> list[Any]:
            place = client.get_container_client(container)
            place.upload_blob("a/b.txt", b"words", overwrite=True)
            blob = place.get_blob_client("a/b.txt")
            shown = [blob.download_blob().readall().decode(), [each.name for each in place.list_blobs("a/")]]
            stale = blob.get_blob_properties().etag
            blob.upload_blob(b"newer", overwrite=True)
            try:
                blob.upload_blob(b"lost", overwrite=True, etag=stale, match_condition=MatchConditions.IfNotModified)
            except HttpResponseError as error:
                shown.append(error.status_code)
            blob.delete_blob()
            return [*shown, blob.exists()]

        self.see("blobs", there_and_back)

    def tracking(self) -> None:
        uri = self.own.workspaces.get(*self.at).ml_flow_tracking_uri
        mlflow.set_tracking_uri(uri)
        client = mlflow.MlflowClient()
        self.see("the tracking address", lambda: uri.partition("://")[0])
        self.see("a run from outside", lambda: self.outside(client))
        self.see("runs listed", lambda: [run.info.run_name for run in client.search_runs(
            [client.get_experiment_by_name("outside").experiment_id], filter_string="metrics.loss < 0.6")])  # fmt: skip
        self.see("a run from within a job", lambda: self.inside(client))
        self.see("a model registered", lambda: self.registered(client))

    def outside(self, client: Any) -> list[Any]:
        mlflow.set_experiment("outside")
        with mlflow.start_run(run_name="laptop") as run, tempfile.TemporaryDirectory() as folder:
            mlflow.log_params({"rate": 0.1, "layers": 2})
            mlflow.log_metric("loss", 1.0, step=0)
            mlflow.log_metric("loss", 0.5, step=1)
            mlflow.set_tag("team", "a")
            file = Path(folder) / "note.txt"
            file.write_text("words")
            mlflow.log_artifact(str(file), "notes")
        found = client.get_run(run.info.run_id)
        self.run = run.info.run_id
        history = [each.value for each in client.get_metric_history(run.info.run_id, "loss")]
        files = [each.path for each in client.list_artifacts(run.info.run_id, "notes")]
        with tempfile.TemporaryDirectory() as folder:
            back = Path(client.download_artifacts(run.info.run_id, "notes/note.txt", folder)).read_text()
        return [found.info.status, found.data.params, history, found.data.tags["team"], files, back]

    def inside(self, client: Any) -> list[Any]:
        command = f"python - <<'E'\n{TRAIN}E\n"
        self.own.jobs.create_or_update(*self.at, "tracked", self.described("tracked", command, "tracked"))
        status = self.ended("tracked")
        run = client.get_run("tracked")
        files = [each.path for each in client.list_artifacts("tracked", "notes")]
        history = [round(each.value, 2) for each in client.get_metric_history("tracked", "loss")]
        return [status, run.info.status, run.data.params, history, run.data.tags["stage"], files]

    def registered(self, client: Any) -> list[Any]:
        client.create_registered_model("notes")
        made = client.create_model_version("notes", source=f"runs:/{self.run}/notes", run_id=self.run)
        versions = [each.version for each in client.search_model_versions("name='notes'")]
        there = self.own.model_versions.get(*self.at, "notes", "1").properties.model_type
        return [str(made.version), versions, there]


if __name__ == "__main__":
    asked = AskedRequests()
    session = OtherClients(sys.argv[1], sys.argv[2])
    session.management()
    session.blobs()
    session.tracking()
    asked.write(Path(sys.argv[3]))
    sys.stdout.write(f"{json.dumps(session.seen)}\n")
