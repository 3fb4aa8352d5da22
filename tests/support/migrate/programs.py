"""Programs of SDK v1 written for tests, and what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from amlstack.migrate.migration import Migration, migrate

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
from azureml.core import Dataset, Datastore, Environment, Experiment, ScriptRunConfig, Workspace
from azureml.core.runconfig import MpiConfiguration, PyTorchConfiguration, RunConfiguration, TensorflowConfiguration
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.conda_dependencies import CondaDependencies
from azureml.data import OutputFileDatasetConfig
from azureml.train.dnn import PyTorch, TensorFlow, Mpi
from azureml.train.estimator import Estimator
ws = Workspace.from_config()
env = Environment.get(ws, "team", version="3")
"""

STEPS = """
from azureml.pipeline.core import Pipeline, PipelineData, PipelineParameter, Schedule, ScheduleRecurrence
from azureml.pipeline.steps import PythonScriptStep
store = Datastore.get(ws, 'team')
raw = Dataset.File.from_files((store, 'raw/**')).as_named_input('raw').as_mount()
clean = OutputFileDatasetConfig('clean', destination=(store, 'clean/{run-id}')).as_upload()
model = PipelineData('model', datastore=store)
epochs = PipelineParameter('epochs', 3)
c = RunConfiguration()
c.environment = env
prepare = PythonScriptStep('prep.py', 'Prepare data', ['--raw', raw, '--out', clean], 'cpu', c, source_directory='src')
train = PythonScriptStep('train.py', 'train', ['--data', clean.as_input('data'), '--epochs', epochs, '--model', model],
                         'gpu', c, outputs=[model], source_directory='src')
whole = Pipeline(ws, steps=[train])
published = whole.publish('nightly')
Schedule.create(ws, 'each-night', pipeline_id=published.id, experiment_name='e',
                recurrence=ScheduleRecurrence('Day', 1, hours=[2], minutes=[30]))
"""
SWEEP = """
from azureml.train.hyperdrive import *
s = ScriptRunConfig('src', 'train.py', ['--n', 1], compute_target='gpu', environment=env,
                    distributed_job_config=MpiConfiguration(4, 2), max_run_duration_seconds=600)
h = HyperDriveConfig(RandomParameterSampling({'--lr': loguniform(-6, -1), 'batch-size': choice(16, 32)}),
                     'loss', PrimaryMetricGoal.MINIMIZE, 20, 4, 60,
                     BanditPolicy(slack_factor=0.1, evaluation_interval=2), run_config=s)
Experiment(ws, 'tune').submit(h)
"""

PARALLEL = """
from azureml.data.dataset_consumption_config import DatasetConsumptionConfig
from azureml.pipeline.core import Pipeline, PipelineParameter
from azureml.pipeline.steps import ParallelRunConfig, ParallelRunStep
given = PipelineParameter('images', Dataset.get_by_name(ws, 'images', version=2))
c = ParallelRunConfig(env, 'score.py', 3, 'append_row', 'cpu', 3, source_directory='src',
                      mini_batch_size=PipelineParameter('size', '5'), process_count_per_node=PipelineParameter('n', 2))
scores = OutputFileDatasetConfig('scores')
Pipeline(ws, [ParallelRunStep('score', c, [DatasetConsumptionConfig('files', given).as_mount()], scores)])
"""


def migrated(folder: Path, program: str, *, name: str = "submit.py") -> Migration:
    """The result for a program that begins with `HEAD`."""
    (folder / "src").mkdir(exist_ok=True)
    (folder / name).write_text(HEAD + program, "utf-8")
    return migrate([folder / name], folder / "v2")


def the_job(found: Migration) -> dict[str, Any]:
    """The only job file."""
    [text] = [text for name, text in found.files.items() if name.endswith(".yml")]
    content = yaml.safe_load(text)
    assert isinstance(content, dict)
    return content


def hands(found: Migration) -> list[str]:
    """The constructs that need a hand."""
    return [item.construct for item in found.items if item.state == "hand"]
