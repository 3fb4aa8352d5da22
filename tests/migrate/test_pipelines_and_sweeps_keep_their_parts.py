"""Sweeps, pipelines, schedules, data and environments: each part of v1 has its like in v2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

import jobs
from tests.support.migrate.programs import PARALLEL, STEPS, SWEEP, migrated, the_job

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, content: Any) -> Any:
    """The declaration that a file's content is, without an error."""
    file = folder / "written.yml"
    file.write_text(yaml.safe_dump(content), "utf-8")
    loaded = jobs.load(file)
    assert [finding for finding in loaded.findings if finding.level == "error"] == []
    return loaded.jobs[0]


def test_a_pipeline_takes_its_steps_along_and_binds_what_they_hand_on(tmp_path: Path) -> None:
    found = migrated(tmp_path, STEPS)
    whole, schedule = (yaml.safe_load(found.files[name]) for name in ("submit.yml", "submit_2.yml"))
    assert schedule["create_job"] == {"type": "pipeline", "job": "./submit.yml", "experiment_name": "e"}
    (tmp_path / "submit.yml").write_text(found.files["submit.yml"], "utf-8")
    assert isinstance(read(tmp_path, schedule), jobs.Schedule)
    assert schedule["trigger"] == {
        "type": "recurrence", "frequency": "day", "interval": 1, "schedule": {"hours": [2], "minutes": [30]},
    }  # fmt: skip
    assert whole["inputs"] == {"epochs": 3}
    train, prepare = whole["jobs"]["train"], whole["jobs"]["prepare_data"]
    assert prepare["command"] == "python prep.py --raw ${{inputs.raw}} --out ${{outputs.clean}}"
    assert prepare["inputs"]["raw"] == {
        "type": "uri_folder",
        "path": "azureml://datastores/team/paths/raw",
        "mode": "ro_mount",
    }
    assert prepare["outputs"]["clean"] == {
        "type": "uri_folder", "mode": "upload", "path": "azureml://datastores/team/paths/clean/${{name}}",
    }  # fmt: skip
    assert (
        train["command"]
        == "python train.py --data ${{inputs.data}} --epochs ${{inputs.epochs}} --model ${{outputs.model}}"
    )
    assert train["inputs"] == {
        "data": "${{parent.jobs.prepare_data.outputs.clean}}",
        "epochs": "${{parent.inputs.epochs}}",
    }
    assert (prepare["compute"], train["compute"]) == ("azureml:cpu", "azureml:gpu")
    assert isinstance(read(tmp_path, whole), jobs.Pipeline)


def test_a_sweep_has_its_space_policy_and_limits(tmp_path: Path) -> None:
    sweep = the_job(migrated(tmp_path, SWEEP))
    assert sweep["search_space"] == {
        "lr": {"type": "loguniform", "min_value": -6, "max_value": -1},
        "batch_size": {"type": "choice", "values": [16, 32]},
    }
    assert sweep["trial"]["command"] == (
        "python train.py --n 1 --lr ${{search_space.lr}} --batch-size ${{search_space.batch_size}}"
    )
    assert sweep["limits"] == {
        "max_total_trials": 20, "max_concurrent_trials": 4, "timeout": 3600, "trial_timeout": 600,
    }  # fmt: skip
    assert sweep["objective"] == {"primary_metric": "loss", "goal": "minimize"}
    assert sweep["early_termination"] == {"type": "bandit", "slack_factor": 0.1, "evaluation_interval": 2}
    assert sweep["trial"]["resources"] == {"instance_count": 2}
    assert (sweep["compute"], sweep["experiment_name"]) == ("azureml:gpu", "tune")
    assert isinstance(read(tmp_path, sweep), jobs.Sweep)


def test_a_parallel_step_has_its_input_and_the_defaults_of_its_parameters(tmp_path: Path) -> None:
    job = the_job(migrated(tmp_path, PARALLEL))["jobs"]["score"]
    assert job["input_data"] == "${{inputs.files}}"
    assert job["inputs"]["files"] == {"type": "uri_folder", "path": "azureml:images:2", "mode": "ro_mount"}
    assert (job["mini_batch_size"], job["max_concurrency_per_instance"], job["resources"]) == (
        "5",
        2,
        {"instance_count": 3},
    )
    assert job["task"]["append_row_to"] == "${{outputs.scores}}/parallel_run_step.txt"


def test_packages_of_v1_give_way_to_mlflow(tmp_path: Path) -> None:
    program = (
        "e = Environment('own')\ne.docker.base_image = 'x/y:1'\nd = CondaDependencies()\n"
        "d.add_pip_package('torch==2.8')\n"
        "d.add_pip_package('azureml-defaults')\nd.add_conda_package('numpy')\ne.python.conda_dependencies = d\n"
        "e.environment_variables['A'] = 'b'\nScriptRunConfig('src', 'a.py', compute_target='c', environment=e)"
    )
    job = the_job(migrated(tmp_path, program))
    assert job["environment"] == {
        "image": "x/y:1",
        "conda_file": {
            "channels": ["conda-forge"],
            "dependencies": ["python=3.10.18", "numpy", "pip", {"pip": ["torch==2.8", "mlflow", "azureml-mlflow"]}],
        },
    }
    assert job["environment_variables"] == {"A": "b"}
