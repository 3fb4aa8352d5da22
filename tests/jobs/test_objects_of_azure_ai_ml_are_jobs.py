"""A Python file whose jobs are objects of azure-ai-ml is read as its YAML would be, and submits nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import jobs
from amlstack.cli.main import main
from tests.support.jobs import oracle
from tests.support.jobs.our_commands import ours
from tests.support.jobs.our_pipelines import ours as our_pipeline
from tests.support.jobs.our_sweeps import ours as our_sweep

if TYPE_CHECKING:
    from pathlib import Path

# The modules of azure.ai.ml warn of others at their import, and a job file's garbage is its own.
pytestmark = [pytest.mark.tools, pytest.mark.filterwarnings("ignore")]

HEAD = """from azure.ai.ml import Input, MLClient, MpiDistribution, Output, PyTorchDistribution, command, dsl, load_job
from azure.ai.ml.entities import Environment
from azure.ai.ml.sweep import BanditPolicy, Choice, Uniform
from azure.identity import DefaultAzureCredential
"""
TRAINING = """
def training(**more):
    return command(**{
        "code": "src",
        "command": "python train.py --lr ${{inputs.lr}} --data ${{inputs.data}} --out ${{outputs.model}}",
        "environment": "azureml:acpt:3",
        "compute": "gpu",
        "instance_count": 2,
        "inputs": {"lr": 0.1, "data": Input(type="uri_folder", path="azureml:mnist:1", mode="download")},
        "outputs": {"model": Output(type="uri_folder", mode="rw_mount")},
    } | more)
"""
CLIENT = "client = MLClient(DefaultAzureCredential(), 's', 'g', 'w')\n"
COMMANDS = {
    "pytorch": "job = training(distribution=PyTorchDistribution(process_count_per_instance=8))",
    "mpi": "job = training(distribution=MpiDistribution(process_count_per_instance=8), shm_size='64g')",
    "distribution by words": "job = training(distribution={'type': 'PyTorch', 'process_count_per_instance': 4})",
    "variables, tags and names": "job = training(environment_variables={'A': '1'}, tags={'t': 'v'}, display_name='d')",
    "timeout": "job = training()\njob.set_limits(timeout=3600)",
    "resources later": "job = training()\njob.set_resources(instance_count=4, shm_size='8g', instance_type='S')",
    "inline environment": "job = training(environment=Environment(image='i:1', conda_file='conda.yml'))",
    "a file of the CLI": "job = load_job('job.yml')",
    "data in a datastore": "job = training(inputs={'lr': 1, 'data': Input(path='azureml://datastores/d/paths/p/')})",
}
SWEEPS = {
    "grid": "base = training()\nstep = base(lr=Choice([0.1, 0.2]))\n"
    "job = step.sweep(compute='gpu', sampling_algorithm='grid', primary_metric='loss', goal='Minimize')\n"
    "job.set_limits(max_total_trials=4, max_concurrent_trials=2, timeout=7200)",
    "early end": "step = training()(lr=Uniform(0.1, 0.2))\n"
    "job = step.sweep(compute='gpu', sampling_algorithm='random', primary_metric='loss', goal='Minimize',"
    " max_total_trials=3, early_termination_policy=BanditPolicy(slack_factor=0.1, evaluation_interval=2))",
}
PIPELINES = {
    "two steps": "@dsl.pipeline(compute='cpu')\ndef two(lr: float):\n"
    "    first = training(distribution={'type': 'pytorch', 'process_count_per_instance': 8})(lr=lr)\n"
    "    second = command(command='ls ${{inputs.model}}', environment='azureml:e:1',"
    " inputs={'model': Input(type='uri_folder')})(model=first.outputs.model)\n"
    "    return {'model': first.outputs.model}\njob = two(0.5)",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in a folder with all that the cases name."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print()\n")
    (tmp_path / "conda.yml").write_text("dependencies: [python=3.10, pip, {pip: [torch==2.4.0]}]\n")
    (tmp_path / "job.yml").write_text("command: echo\ncode: src\nenvironment: azureml:e:1\ncompute: azureml:gpu\n")
    monkeypatch.chdir(tmp_path)  # from where azure-ai-ml reads; our reader reads from the file's folder
    return tmp_path / "job.py"


def written(place: Path, text: str) -> Path:
    place.write_text(f"{HEAD}{TRAINING}{text}\n")
    return place


@pytest.mark.parametrize("case", COMMANDS)
def test_an_object_becomes_the_body_that_azure_ai_ml_sends(case: str, place: Path) -> None:
    path = written(place, COMMANDS[case])
    body, errors = ours(path)
    assert errors == []
    assert below(body, place) == below(oracle.body(path), place)


@pytest.mark.parametrize("case", SWEEPS)
def test_a_sweep_becomes_the_body_that_azure_ai_ml_sends(case: str, place: Path) -> None:
    path = written(place, SWEEPS[case])
    body, errors = our_sweep(path)
    assert errors == []
    assert below(body, place) == below(oracle.sweep(path), place)


@pytest.mark.parametrize("case", PIPELINES)
def test_a_pipeline_becomes_the_body_and_the_components_that_azure_ai_ml_sends(case: str, place: Path) -> None:
    path = written(place, PIPELINES[case])
    body, components, errors = our_pipeline(path)
    theirs, registered = oracle.pipeline(path)
    assert errors == []
    assert below(body, place) == below(theirs, place)
    assert below(components, place) == below(registered, place)


SAME = (
    ("environmentVariables", {}),
    ("slackAmount", 0),
    *(("_source", kind) for kind in ("YAML.JOB", "BUILDER", "DSL")),
)


def below(value: Any, place: Path) -> Any:
    """A body with paths from the file's folder on, bare names, and no word on the kind of client.

    azure-ai-ml resolves some paths at once, and some when it uploads; it takes `azureml:` off a name of a file at once,
    and of an object when it looks the asset up; it sends what is empty or zero of a file, and none of it of an object.
    """
    match value:
        case dict():
            return {key: below(each, place) for key, each in value.items() if (key, each) not in SAME}
        case list():
            return [below(each, place) for each in value]
        case str():
            text = value if value.startswith("azureml://") else value.removeprefix("azureml:")
            return text.removeprefix(f"{place.parent}/").removeprefix("./")
        case _:
            return value


SUBMITTED = {
    "by the client": "client.create_or_update(training(compute='c1'))",
    "by its jobs": "client.jobs.create_or_update(training(compute='c1'))",
    "with a change": "client.jobs.create_or_update(training(), compute='c1')",
    "twice": "job = training(compute='c1')\nfor _ in 'ab':\n    client.jobs.create_or_update(job)",
    "with a poller": "client.jobs.begin_create_or_update(training(compute='c1')).result().studio_url",
    "after a cluster is asked for": "client.begin_create_or_update(object()).wait()\n"
    "client.create_or_update(training(compute='c1'))",
    "in a function": "def go(job):\n    return client.jobs.create_or_update(job)\n"
    "client.jobs.stream(go(training(compute='c1')).name)",
    "as a program": "if __name__ == '__main__':\n    client.jobs.create_or_update(training(compute='c1'))",
    "with what it registers": "env = client.environments.create_or_update(Environment(image='i:1', name='e'))\n"
    "client.compute.begin_create_or_update(object()).wait()\n"
    "client.jobs.create_or_update(training(environment=env, compute='c1'))",
    "after a token": "DefaultAzureCredential().get_token('https://management.azure.com/.default').token\n"
    "client.jobs.create_or_update(training(compute='c1'))",
}


@pytest.mark.parametrize("case", SUBMITTED)
def test_a_submission_is_recorded_and_not_sent(case: str, place: Path) -> None:
    loaded = jobs.load(written(place, CLIENT + SUBMITTED[case]))
    assert loaded.findings == ()
    assert [job.compute for job in loaded.jobs] == ["azureml:c1"]


ASSETS = {
    "client.environments.get('e', version='3')": "azureml:e:3",
    "f'azureml:{client.datastores.get_default().name}:1'": "azureml:workspaceblobstore:1",
    "client.environments.get('e', label='latest').id": "azureml:e@latest",
    "MLClient(DefaultAzureCredential(), registry_name='azureml').environments.get('acpt', '7')": (
        "azureml://registries/azureml/environments/acpt/versions/7"
    ),
}


@pytest.mark.parametrize("expression", ASSETS)
def test_an_asset_that_is_asked_for_becomes_its_address(expression: str, place: Path) -> None:
    loaded = jobs.load(written(place, f"{CLIENT}job = training(environment={expression})"))
    assert loaded.findings == ()
    assert loaded.jobs[0].environment == ASSETS[expression]


def test_data_that_is_asked_for_is_an_input(place: Path) -> None:
    data = "client.data.get('mnist', version='2')"
    for expression in (f"{data}.path", f"{data}.id"):
        text = f"{CLIENT}job = training(inputs={{'lr': 1, 'data': Input(type='uri_folder', path={expression})}})"
        loaded = jobs.load(written(place, text))
        assert loaded.findings == ()
        assert loaded.jobs[0].inputs["data"].path == "azureml:mnist:2"


REQUIRED = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("-c", "--compute", required=True)
parser.add_argument("--nodes", type=int, required=True)
parser.add_argument("--kind", choices=["a", "b"], required=True)
parser.add_argument("--lr", default="0.1")
words = parser.parse_args()
job = training(compute=words.compute, instance_count=words.nodes, tags={"kind": words.kind, "data": words.data})
"""


def test_a_word_stands_in_for_an_argument_that_the_file_requires(place: Path) -> None:
    loaded = jobs.load(written(place, REQUIRED))
    (found,) = loaded.findings
    assert (found.code, found.level.value) == ("arguments-assumed", "info")
    assert "`data data, --compute compute, --nodes 1, --kind a`" in found.seen
    assert loaded.jobs[0].compute == "azureml:compute"
    assert loaded.jobs[0].tags == {"kind": "a", "data": "data"}


@pytest.mark.parametrize("start", ["folder", "."])
def test_a_program_finds_its_neighbours_and_files_from_either_folder(
    start: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some programs name paths from their own folder on, and some from where they are started."""
    folder = place.parent / "folder"
    folder.mkdir()
    (folder / "settings_of_a_program.py").write_text("COMPUTE = 'c1'\n")
    near = folder if start == "folder" else place.parent
    (near / "own.yml").write_text("dependencies: [python=3.10]\n")
    (near / "own").mkdir()
    text = """import settings_of_a_program as s
from pathlib import Path
assert (Path(__file__).resolve().parent / "settings_of_a_program.py").is_file()
environment = Environment(image="i:1", conda_file="own.yml")
job = training(code="own", compute=s.COMPUTE, environment=environment)
"""
    written(folder / "submit.py", text)
    monkeypatch.chdir(place.parent)
    loaded = jobs.load("folder/submit.py")
    assert [each.message for each in loaded.findings] == []
    (job,) = loaded.jobs
    assert (loaded.source.base / job.code.path).resolve() == near / "own"


def test_what_comes_after_the_submission_may_fail(place: Path) -> None:
    loaded = jobs.load(written(place, f"{CLIENT}job = training()\nclient.create_or_update(job)\nopen('gone')\n"))
    assert len(loaded.jobs) == 1
    (found,) = loaded.findings
    assert (found.code, found.level.value) == ("python-raised", "warning")


def test_a_component_that_lies_in_azure_is_named(place: Path) -> None:
    (found,) = jobs.load(written(place, f"{CLIENT}client.components.get('prep', '1')()")).findings
    assert "give its YAML to load_component()" in found.seen


def test_of_several_objects_those_that_are_made_of_the_others_are_the_jobs(place: Path) -> None:
    text = f"{PIPELINES['two steps']}\nwhole, alone = job, training()\ndel job"
    assert [type(job).__name__ for job in jobs.load(written(place, text)).jobs] == ["Pipeline"]


def test_a_finding_has_the_line_of_its_keyword(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """from azure.ai.ml import MpiDistribution, command

job = command(
    code="src",
    command="python train.py",
    environment="azureml:e:1",
    instance_count=2,
    distribution=MpiDistribution(process_count_per_instance=16),
)
"""
    place.write_text(text)
    assert main(["check", str(place), "--size", "Standard_ND96isr_H100_v5"]) == 1
    assert "job.py:8:" in capsys.readouterr().out


def test_the_file_that_show_writes_is_read_as_the_object_was(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(place, COMMANDS["mpi"])
    assert main(["show", str(path), "--as", "yaml"]) == 0
    (place.parent / "shown.yml").write_text(capsys.readouterr().out)
    shown, errors = ours(place.parent / "shown.yml")
    assert errors == []
    assert below(shown, place) == below(ours(path)[0], place)


def test_without_azure_ai_ml_the_finding_says_what_to_install(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.ai.ml", None)
    (found,) = jobs.load(written(place, COMMANDS["mpi"])).findings
    assert found.code == "sdk-missing"
    assert "amlstack[sdk]" in found.remedy
