"""A script that uses azure-ai-ml, one capability after another, led by the environment alone.

Run as a process of its own; prints one JSON object: what each capability gave, or the words of its error.
"""

from __future__ import annotations

import json
import os
import select
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from azure.ai.ml import Input, MLClient, Output, command, load_job
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import (
    AmlCompute,
    AmlComputeSshSettings,
    AzureBlobDatastore,
    AzureDataLakeGen2Datastore,
    BuildContext,
    CommandComponent,
    Data,
    Environment,
    IdentityConfiguration,
    JobSchedule,
    Model,
    QueueSettings,
    RecurrenceTrigger,
    Workspace,
)
from azure.ai.ml.parallel import RunFunction, parallel_run_function
from azure.identity import DefaultAzureCredential

from tests.support.sandbox.asked_requests import AskedRequests
from tests.support.sandbox.seen_capabilities import SeenCapabilities

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = Environment(image="mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04")
PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:gpu}
inputs: {words: {type: uri_folder, path: ./data}}
outputs: {last: {type: uri_folder}}
jobs:
  only:
    type: command
    command: cp ${{inputs.words}}/x.txt ${{outputs.copied}}/y.txt
    environment: {image: mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04}
    inputs: {words: "${{parent.inputs.words}}"}
    outputs: {copied: "${{parent.outputs.last}}"}
"""


SCORE = """\
import argparse

def init():
    global prefix
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefix")
    prefix = parser.parse_known_args()[0].prefix

def run(mini_batch):
    return [f"{prefix} {open(file).read().strip()}" for file in mini_batch]
"""


class Session(SeenCapabilities):
    """A client of a workspace, and what was found out with it."""

    def __init__(self, workspace: str, folder: Path) -> None:
        super().__init__()
        self.name, self.folder = workspace, folder
        self.credential, self.subscription = DefaultAzureCredential(), os.environ["AZURE_SUBSCRIPTION_ID"]
        self.client = MLClient(self.credential, self.subscription, workspace, workspace)
        self.jobs: dict[str, str] = {}
        (folder / "src").mkdir()
        (folder / "src" / "train.py").write_text("print('trained')\n")
        (folder / "data").mkdir()
        (folder / "data" / "x.txt").write_text("words\n")
        (folder / "pipeline.yml").write_text(PIPELINE)

    def workspaces(self) -> None:
        own = self.client.workspaces
        self.see("workspaces of a subscription", lambda: [each.name for each in own.list(scope="subscription")])
        self.see("a workspace's keys", lambda: own.get_keys().user_storage_key)
        change = Workspace(name=self.name, description="changed", tags={"team": "a"})
        self.see("a workspace updated", lambda: own.begin_update(change).result().description)
        made = Workspace(name="second", location="westeurope", description="made")
        self.see("a workspace made", lambda: own.begin_create(made).result().description)
        self.see("a workspace deleted", self.without_second)
        self.see("a workspace diagnosed", lambda: own.begin_diagnose(self.name).result().storage_account_results)
        self.see("keys of a workspace resynced", lambda: own.begin_sync_keys(self.name).result())
        self.see("registries of a group", lambda: list(self.client.registries.list()))
        self.see("connections of a workspace", lambda: list(self.client.connections.list()))

    def computes(self) -> None:
        own = self.client.compute
        self.see("nodes of a cluster", lambda: list(own.list_nodes("gpu")))
        self.see("quota in use", lambda: [each.unit for each in own.list_usage()][:1])
        self.see("sizes", lambda: "Standard_ND96isr_H100_v5" in [each.name for each in own.list_sizes()])
        self.see("a cluster with every property, updated", self.cluster)

    def cluster(self) -> list[Any]:
        own = self.client.compute
        full = AmlCompute(
            name="full",
            size="Standard_ND96isr_H100_v5",
            max_instances=3,
            idle_time_before_scale_down=300,
            tier="low_priority",
            description="all of it",
            tags={"team": "a"},
            identity=IdentityConfiguration(type="system_assigned"),
            ssh_public_access_enabled=True,
            ssh_settings=AmlComputeSshSettings(admin_username="me", admin_password="Some-Words-1"),
            enable_node_public_ip=True,
        )
        own.begin_create_or_update(full).result()
        made = own.get("full")
        made.max_instances, made.tags = 2, {"team": "b"}
        changed = own.begin_update(made).result()
        own.begin_delete("full").wait()
        shown = [made.tier, made.idle_time_before_scale_down, made.ssh_settings.admin_username]
        return [*shown, changed.max_instances, changed.tags, [each.name for each in own.list()]]

    def without_second(self) -> list[str]:
        self.client.workspaces.begin_delete("second", delete_dependent_resources=True).result()
        return [each.name for each in self.client.workspaces.list()]

    def registry(self) -> None:
        def of() -> Any:
            return MLClient(self.credential, self.subscription, self.name, registry_name="azureml").environments

        name = "acpt-pytorch-2.8-cuda12.6"
        self.see("a curated environment by label", lambda: of().get(name, label="latest").name)
        self.see("a curated environment by version", lambda: of().get(name, version="7").version)
        own, short = self.client.environments, f"AzureML-{name}"
        self.see("a curated environment in a workspace", lambda: own.get(short, label="latest").name)
        self.see("its version in a workspace", lambda: own.get(short, version="3").id.rpartition("/workspaces/")[2])
        self.see("curated environments", lambda: name in [each.name for each in of().list()])

    def assets(self) -> None:
        data, models, stores = self.client.data, self.client.models, self.client.datastores
        folder = str(self.folder / "data")
        blobs = AzureBlobDatastore(name="mine", account_name="stelsewhere", container_name="c")
        self.see("a datastore made", lambda: stores.create_or_update(blobs).account_name)
        self.see("a datastore with its secrets", lambda: stores.get("workspaceblobstore", include_secrets=True).name)
        self.see("environments", lambda: [each.name for each in self.client.environments.list()])
        lake = AzureDataLakeGen2Datastore(name="lake", account_name="stelsewhere", filesystem="f")
        self.see("a data lake made", lambda: stores.create_or_update(lake).filesystem)
        self.see("a datastore deleted", lambda: (stores.delete("lake"), [each.name for each in stores.list()])[1])
        build = Environment(name="built", build=BuildContext(path=str(self.folder / "src")))
        self.see("a build context uploaded", lambda: self.client.environments.create_or_update(build).version)
        self.see(
            "a folder uploaded",
            lambda: data.create_or_update(Data(name="words", path=folder, type="uri_folder")).version,
        )
        self.see(
            "a file uploaded",
            lambda: data.create_or_update(Data(name="word", path=f"{folder}/x.txt", type="uri_file")).path[-6:],
        )
        self.see("a folder uploaded to a data lake", lambda: self.in_lake(folder))
        self.see("data by label", lambda: data.get("words", label="latest").version)
        self.see("data archived", lambda: (data.archive("words", version="1"), [*data.list("words")])[1])
        self.see("data restored", lambda: (data.restore("words", version="1"), len([*data.list("words")]))[1])
        model = Model(name="model", path=folder, type="custom_model")
        self.see("a model uploaded", lambda: models.create_or_update(model).version)
        self.see("models", lambda: (models.get("model", label="latest").version, [each.name for each in models.list()]))
        self.see("a model downloaded", lambda: self.downloaded(lambda to: models.download("model", "1", to)))
        self.see("components", self.components)
        self.see("components listed and archived", self.archived)

    def in_lake(self, folder: str) -> str:
        store = AzureDataLakeGen2Datastore(name="own_lake", account_name=self.name, filesystem="lake")
        self.client.datastores.create_or_update(store)
        data = Data(name="lakewords", path=folder, type="uri_folder", datastore="own_lake")
        place = str(self.client.data.create_or_update(data).path).partition("/paths/")[0]
        return place.partition(f"/workspaces/{self.name}")[2]

    def components(self) -> Any:
        for version in ("1", "2"):
            component = CommandComponent(name="echo", version=version, command="echo x", environment=PLAIN)
            self.client.components.create_or_update(component)
        own = self.client.components
        return own.get("echo").version, own.get("echo", label="latest").version

    def archived(self) -> list[Any]:
        own = self.client.components

        def there(view: str) -> list[str]:
            return sorted(each.version for each in own.list("echo", list_view_type=view))

        own.archive("echo", version="1")
        seen = [there("ActiveOnly"), there("ArchivedOnly")]
        own.restore("echo", version="1")
        return [*seen, there("ActiveOnly"), [each.name for each in own.list()]]

    def parallel(self) -> list[Any]:
        """A pipeline of the SDK's own functions, whose parallel component is registered too."""
        (self.folder / "src" / "score.py").write_text(SCORE)
        score = parallel_run_function(
            name="score",
            inputs={"words": Input(type="uri_folder")},
            outputs={"rows": Output(type="uri_file")},
            input_data="${{inputs.words}}",
            mini_batch_size="1",
            instance_count=2,
            max_concurrency_per_instance=2,
            mini_batch_error_threshold=0,
            retry_settings={"max_retries": 1, "timeout": 60},
            logging_level="DEBUG",
            task=RunFunction(
                code=str(self.folder / "src"),
                entry_script="score.py",
                environment=PLAIN,
                program_arguments="--prefix scored",
                append_row_to="${{outputs.rows}}",
            ),
        )
        registered = self.client.components.create_or_update(score.component)

        @pipeline(default_compute="gpu")
        def scoring(words):  # type: ignore[no-untyped-def]  # the client reads annotations, and not as texts
            first = score(words=words)
            again = registered(words=words)
            again.resources = {"instance_count": 1}
            return {"rows": first.outputs.rows, "again": again.outputs.rows}

        made = self.client.jobs.create_or_update(scoring(Input(type="uri_folder", path=str(self.folder / "data"))))
        self.client.jobs.stream(made.name)
        steps = sorted(str(each.status) for each in self.client.jobs.list(parent_job_name=made.name))
        target = tempfile.mkdtemp(dir=self.folder)
        self.client.jobs.download(made.name, download_path=target, output_name="rows")
        rows = [file.read_text() for file in Path(target).rglob("*") if file.is_file()]
        return [registered.type, self.client.jobs.get(made.name).status, steps, rows]

    def run(self, label: str, **more: Any) -> str:
        """Status of a command job at its end."""
        job = command(**{"command": "true", "environment": PLAIN, "compute": "gpu", **more})
        made = self.client.jobs.create_or_update(job)
        self.jobs[label] = made.name
        self.client.jobs.stream(made.name)
        return str(self.client.jobs.get(made.name).status.value)

    def runs(self) -> None:
        writes = {"out": Output(type="uri_folder")}
        text = "python train.py; mkdir outputs; echo kept > outputs/a.txt; echo named > ${{outputs.out}}/o.txt"
        self.see("a job", lambda: self.run("first", command=text, code=str(self.folder / "src"), outputs=writes))
        jobs = self.client.jobs
        first = self.jobs["first"]
        self.see(
            "all of a job downloaded",
            lambda: self.downloaded(lambda to: jobs.download(first, download_path=to, all=True)),
        )
        self.see(
            "an output downloaded",
            lambda: self.downloaded(lambda to: jobs.download(first, download_path=to, output_name="out")),
        )
        self.see("logs downloaded", lambda: self.downloaded(lambda to: jobs.download(first, download_path=to)))
        self.see("services of a job", lambda: jobs.show_services(first))
        self.see("a model from a job's files", self.model_of_a_job)
        self.see("a job with inputs and outputs of every origin, and a priority", self.with_all_inputs)
        self.see("a parallel step", self.parallel)
        self.see("a schedule triggered", self.triggered)
        last = self.jobs.get("pipeline", "")
        self.see(
            "a pipeline's output downloaded",
            lambda: self.downloaded(lambda to: jobs.download(last, download_path=to, output_name="last")),
        )
        self.see("a schedule switched off, on and deleted", self.switched)
        self.see("a job cancelled", self.cancelled)
        self.see("jobs listed and archived", self.listed)

    def with_all_inputs(self) -> dict[str, Any]:
        """One job whose log has what it read: how it ended, and what became of its outputs and of its priority."""
        paths = {
            "local": str(self.folder / "data"),
            "asset": "azureml:words:1",
            "lake": "azureml:lakewords:1",
            "other": f"azureml://jobs/{self.jobs['first']}/outputs/out/paths/",
        }
        reads = {name: Input(type="uri_folder", path=path) for name, path in paths.items()}
        reads["model"] = Input(type="custom_model", path="azureml:kept:1")
        job = command(
            command="cat ${{inputs.local}}/x.txt ${{inputs.asset}}/x.txt ${{inputs.lake}}/x.txt "
            "${{inputs.other}}/o.txt ${{inputs.model}}/a.txt; "
            "echo named > ${{outputs.named}}/o.txt; echo trained > ${{outputs.trained}}/o.txt",
            environment=PLAIN,
            compute="gpu",
            inputs=reads,
            outputs={
                "named": Output(type="uri_folder", name="results", version="3"),
                "trained": Output(type="custom_model", name="trained"),
            },
            locations=["westeurope"],
        )
        job.queue_settings = QueueSettings(job_tier="standard", priority="high")
        made = self.client.jobs.create_or_update(job)
        self.client.jobs.stream(made.name)
        ended = self.client.jobs.get(made.name)
        target = tempfile.mkdtemp(dir=self.folder)
        self.client.jobs.download(made.name, download_path=target)
        return {
            "status": ended.status,
            "read": (Path(target) / "artifacts" / "user_logs" / "std_log_process_00.txt").read_text().split(),
            "an output with a name": self.client.data.get("results", "3").type,
            "a model": self.client.models.get("trained", "1").version,
            "queue": [made.queue_settings.priority, ended.resources.locations],
        }

    def model_of_a_job(self) -> list[Any]:
        path = f"azureml://jobs/{self.jobs['first']}/outputs/artifacts/paths/outputs/"
        made = self.client.models.create_or_update(Model(name="kept", path=path, type="custom_model"))
        where = str(made.path).partition("/datastores/")[2].replace(self.jobs["first"], "JOB")
        return [where, self.downloaded(lambda to: self.client.models.download("kept", made.version, to))]

    def triggered(self) -> str:
        trigger = RecurrenceTrigger(frequency="day", interval=1)
        schedule = JobSchedule(name="daily", trigger=trigger, create_job=load_job(self.folder / "pipeline.yml"))
        self.client.schedules.begin_create_or_update(schedule).result()
        run = self.jobs["pipeline"] = self.client.schedules.trigger("daily").job_name
        self.client.jobs.stream(run)
        return str(self.client.jobs.get(run).status.value)

    def switched(self) -> list[Any]:
        own = self.client.schedules
        seen: list[Any] = [
            own.begin_disable("daily").result().is_enabled,
            own.begin_enable("daily").result().is_enabled,
        ]
        own.begin_disable("daily").result()
        seen.append([each.name for each in own.list(list_view_type="All")])
        own.begin_delete("daily").result()
        return [*seen, list(own.list(list_view_type="All"))]

    def cancelled(self) -> str:
        made = self.client.jobs.create_or_update(command(command="sleep 600", environment=PLAIN, compute="gpu"))
        self.client.jobs.begin_cancel(made.name).result()
        while (status := str(self.client.jobs.get(made.name).status.value)) in {"CancelRequested", "Running"}:
            select.select([], [], [], 0.2)  # with no pause, looking takes more CPU time than the end itself
        return status

    def listed(self) -> list[bool]:
        jobs, first = self.client.jobs, self.jobs["first"]
        jobs.archive(first)
        seen = [
            first in [each.name for each in jobs.list(list_view_type=view)] for view in ("ActiveOnly", "ArchivedOnly")
        ]
        jobs.restore(first)
        children = [each.name for each in jobs.list(parent_job_name=self.jobs["pipeline"])]
        return [*seen, first in [each.name for each in jobs.list()], len(children) == 1]

    def downloaded(self, download: Callable[[str], Any]) -> list[str]:
        """The files that a download makes."""
        target = tempfile.mkdtemp(dir=self.folder)
        download(target)
        return sorted(str(file.relative_to(target)) for file in Path(target).rglob("*") if file.is_file())


if __name__ == "__main__":
    requests = AskedRequests()
    session = Session(sys.argv[1], Path(sys.argv[2]))
    session.workspaces()
    session.computes()
    session.registry()
    session.assets()
    session.runs()
    requests.write(session.folder / "requests.json")
    sys.stdout.write(f"{json.dumps(session.seen)}\n")
