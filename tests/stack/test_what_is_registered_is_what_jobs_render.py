"""The workspace after one real `up` holds the bodies that `jobs` renders, value by value."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import jobs
from amlstack import snapshot
from amlstack.base.paths import PROJECT
from amlstack.run_identity import DERIVED, IDENTITY, NAME, ON_EDIT, OWNER, RESOURCE, STACK, environment_version
from tests.support.stack.small_jobs import FOREVER, IMAGE, job, settings, store_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.harness import Stack
    from tests.support.stack.small_jobs import Own

# The first one waits for the whole story.
pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

SIZE = "Standard_ND96asr_v4"
OF_THE_SERVICE = {"primary_metric_config"}
"""Properties that the service itself writes onto the record of a sweep."""
EXAMPLES = {file.parent.name: file for file in sorted(PROJECT.glob("examples/*/job.*"))}
FILES = [*EXAMPLES, "sweep", "pipeline", "every", "once-more", "nightly"]
SWEEP = """\
from jobs import Job, LogUniform, Objective, Random, Sweep, SweepLimits, TorchRun

job = Sweep(
    name="sweep",
    trial=Job(
        command="python train.py --lr ${{search_space.lr}}",
        code="train",
        environment="acpt-pytorch-2.8-cuda12.6",
        compute="a100",
        nodes=2,
        launcher=TorchRun(),
    ),
    sampling_algorithm=Random(seed=7),
    search_space={"lr": LogUniform(min_value=-6, max_value=-1)},
    objective=Objective(primary_metric="loss", goal="minimize"),
    limits=SweepLimits(max_total_trials=4),
)
"""
PIPELINE = """\
name: pipeline
type: pipeline
inputs: {epochs: 2}
settings: {default_compute: "azureml:a100"}
jobs:
  look:
    command: python -m amlnode preflight && python look.py > ${{outputs.data}}/seen
    code: look
    environment: {image: IMAGE, name: looking}
    resources: {instance_count: 2}
    distribution: {type: pytorch, process_count_per_instance: 1}
    outputs: {data: {type: uri_folder}}
  train:
    component: ./train.yml
    inputs: {data: "${{parent.jobs.look.outputs.data}}", epochs: "${{parent.inputs.epochs}}"}
    distribution: {type: pytorch, process_count_per_instance: 8}
    resources: {instance_count: 2, shm_size: 80g}
"""
COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
command: python train.py ${{inputs.data}} --epochs ${{inputs.epochs}}
code: ./train
environment: azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest
inputs: {data: {type: uri_folder}, epochs: {type: integer}}
"""
EVERY = """\
name: every
trigger: {type: recurrence, frequency: week, interval: 1, schedule: {hours: 4, minutes: [0, 30], week_days: [monday]}}
create_job: ./pipeline.yml
"""
ONCE_MORE = """\
name: once-more
trigger: {type: cron, expression: "0 2 * * *", start_time: "2026-07-01T00:00:00"}
create_job: {job: ./pipeline.yml, inputs: {epochs: 3}, experiment_name: again}
"""


@dataclass(frozen=True)
class Registered:
    """The workspace's contents: jobs and schedules by name, component versions by id, hashes of code."""

    workspace: str
    jobs: dict[str, dict[str, Any]]
    schedules: dict[str, dict[str, Any]]
    components: dict[str, dict[str, Any]]
    files: dict[str, Path]
    codes: dict[str, set[str]]


@pytest.fixture(scope="module")
def registered(own: Own, tmp_path_factory: pytest.TempPathFactory) -> Registered:
    return deployed(own.stack, tmp_path_factory.mktemp("jobs"), own.home)


def deployed(stack: Stack, folder: Path, home: Path) -> Registered:
    files = {**EXAMPLES, "nightly": PROJECT / "examples/nightly/schedule.py", **written(folder)}
    one = settings("ws-registered")
    one["amlstack:clusters"] = [{"name": "a100", "size": SIZE, "nodes": {"max": 2}}]
    for key, value in one.items():
        stack.set(key, value, path=False)
    # Whoever holds both nodes keeps all others waiting: they are registered here, and trained by another test.
    holder = job(folder, "holder", FOREVER, compute="azureml:a100", resources={"instance_count": 2})
    stack.set("amlstack:jobs", [{"file": str(holder), "wait": "started"}]).up().ok()
    schedules = {"every", "once-more", "nightly"}
    wanted = [str(file) if name in schedules else {"file": str(file), "wait": "none"} for name, file in files.items()]
    stack.set("amlstack:jobs", [str(holder), *wanted]).up().ok()
    workspace = stack.outputs()["workspace"]["id"]
    with store_of(home) as store:
        rows = store.resources.all()
        children = store.family.members()
        return Registered(
            workspace,
            {row.name.rpartition("-")[0]: row.properties for row in store.jobs.list() if row.id not in children},
            {row.name: row.body["properties"] for row in rows if "/schedules/" in row.key},
            {row.key: row.body["properties"] for row in rows if "/components/" in row.key and "/versions/" in row.key},
            files,
            {row.name: set() for row in rows if "/codes/" in row.key and row.type.endswith("/codes")},
        )


def written(folder: Path) -> dict[str, Path]:
    """Files of each kind beside the examples."""
    for name in ("look", "train"):
        (folder / name).mkdir()
        (folder / name / f"{name}.py").write_text(f"print('{name}')\n")
    texts = {
        "sweep": ("sweep.py", SWEEP),
        "pipeline": ("pipeline.yml", PIPELINE.replace("IMAGE", IMAGE)),
        "every": ("every.yml", EVERY),
        "once-more": ("once-more.yml", ONCE_MORE),
    }
    (folder / "train.yml").write_text(COMPONENT)
    for file, text in texts.values():
        (folder / file).write_text(text)
    return {name: folder / file for name, (file, _) in texts.items()}


def rendered(name: str, there: Registered) -> tuple[dict[str, Any], dict[str, Any]]:
    """A file's body, and its components' properties by id, with nothing but ids of this workspace put in."""
    loaded = jobs.load(there.files[name])
    target = jobs.Target(SIZE, "a100", 2)
    plan = jobs.resolve(loaded.jobs[0], lambda _: (target, ()), source=loaded.source)
    refs: dict[str, jobs.Refs] = {}
    for place, part in plan.parts.items():
        code = environment = None
        if part.code is not None:
            code = f"{there.workspace}/codes/{snapshot.scan(part.code, part.beside).hash}/versions/1"
        if isinstance(part.enriched.environment, jobs.Environment):
            own = part.enriched.environment
            seen = {"osType": "Linux", **jobs.environment_properties(own, part.base)}
            if own.name is not None:
                del seen["isAnonymous"]
            version = environment_version(seen)
            environment = f"{there.workspace}/environments/{own.name or 'amlstack-inline'}/versions/{version}"
        refs[place.removeprefix("jobs.")] = jobs.Refs(there.workspace, code, environment)
    whole = refs.get("") or refs.get("trial") or jobs.Refs(there.workspace)
    result = jobs.render(plan.enriched, whole, refs)
    by_id = {jobs.component_id(body, whole): jobs.registered_component(body) for body in result.components.values()}
    return result.body["properties"], by_id


WORDS = ("goal", "frequency", "weekDays")
"""Keys whose words azure-ai-ml and the renderer send in small letters, and the service keeps in its own."""


def plain(value: Any, key: str = "") -> Any:
    """As JSON has it, without what is null, and with words in the service's letters."""
    if key in WORDS:
        return value.capitalize() if isinstance(value, str) else [word.capitalize() for word in value]
    if isinstance(value, dict):
        return {key: plain(inner, key) for key, inner in value.items() if inner is not None}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("name", FILES)
def test_the_body_in_the_workspace_is_the_one_that_is_rendered(name: str, registered: Registered) -> None:
    body, components = rendered(name, registered)
    expected = plain(json.loads(json.dumps(body)))
    key = jobs.load(registered.files[name]).jobs[0].name or name
    marks = {IDENTITY, OWNER, DERIVED, NAME, ON_EDIT, RESOURCE, STACK}
    if "trigger" in expected:
        marks = {OWNER}
        stored = json.loads(json.dumps(registered.schedules[key]))
        assert stored.pop("isEnabled") is True  # the service's own word where nothing is given
    else:
        stored = json.loads(json.dumps(registered.jobs[key]))
    own = stored["properties"]
    assert {mark for mark in own if mark.startswith("amlstack.")} == marks
    stored["properties"] = {mark: value for mark, value in own.items() if mark not in marks | OF_THE_SERVICE}
    assert stored == {"properties": {}, **expected}
    for component_id, properties in components.items():
        seen = registered.components[component_id.lower()]
        assert {key: seen[key] for key in properties} == plain(json.loads(json.dumps(properties)))


def test_amlnode_travels_with_the_step_that_runs_it_and_is_no_part_of_the_runs_identity(registered: Registered) -> None:
    loaded = jobs.load(registered.files["pipeline"])
    target = jobs.Target(SIZE, "a100", 2)
    plan = jobs.resolve(loaded.jobs[0], lambda _: (target, ()), source=loaded.source)
    look, train = (plan.parts[f"jobs.{name}"] for name in ("look", "train"))
    assert [package.name for package in look.beside] == ["amlnode"]
    assert train.beside == ()
    assert look.code is not None
    with_it, alone = snapshot.scan(look.code, look.beside), snapshot.scan(look.code)
    assert with_it.hash in registered.codes
    assert alone.hash not in registered.codes
    assert with_it.own_digests == alone.digests
