"""A rehearsal reads inputs of this machine in place of the body's addresses, and earlier outputs are set aside."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amlstack.cli.rehearsal import outcome
from amlstack.report import jobs as job_report
from amlstack.sandbox.files import environments
from amlstack.sandbox.store.folders import folder
from tests.support.runner.runner_lab import WORKSPACE

if TYPE_CHECKING:
    from tests.support.runner.runner_lab import Lab

CIFAR = "azureml:cifar-10-example@latest"
KEPT = "azureml://datastores/workspaceblobstore/paths/checkpoints"


def planned(**declared: str) -> Any:
    job = SimpleNamespace(outputs={name: SimpleNamespace(path=path) for name, path in declared.items()})
    return SimpleNamespace(job=job, parts={"": SimpleNamespace(job=job)})


def test_an_input_is_read_from_this_machine_and_the_body_keeps_its_address(lab: Lab, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "a.txt").write_text("of this machine")
    given = {
        "cifar": {"jobInputType": "uri_folder", "uri": CIFAR},
        "iris": {"jobInputType": "uri_file", "uri": "https://example.org/iris.csv", "mode": "Direct"},
    }
    environments.write_inputs(lab.home, "job", {"": {"cifar": own, "iris": own / "a.txt"}})
    command = (
        "cat ${{inputs.cifar}}/a.txt; echo; echo ${{inputs.iris}}; echo new 2>&1 > ${{inputs.cifar}}/a.txt || true"
    )
    job = lab.run(lab.job(command, inputs=given))

    assert job.status == "Completed", job.error
    assert job.properties["inputs"] == given
    read, direct, *_ = lab.log("job").splitlines()
    assert (read, direct) == ("of this machine", str(own / "a.txt"))
    assert (own / "a.txt").read_text() == "of this machine"
    replaced = json.loads((lab.folder("job") / "report.json").read_text())["replaced"]
    assert replaced["inputs.cifar.path"] == [CIFAR, str(own)]
    inputs = dict(job_report.job_report(lab.store, job, 0.0).facts)["inputs"]
    assert f"cifar = {CIFAR} (read from {own})" in inputs
    assert f"input cifar: {own} of this machine, instead of {CIFAR}" in (lab.folder("job") / "runner.log").read_text()


def test_an_output_is_written_to_this_machine_and_the_body_keeps_its_address(lab: Lab, tmp_path: Path) -> None:
    away = "azureml://datastores/mnist/paths/all"
    declared = {
        "model": {"jobOutputType": "uri_folder", "uri": away, "mode": "Upload", "assetName": "best"},
        "line": {"jobOutputType": "uri_file", "uri": f"{away}.txt"},
    }
    own = {"model": tmp_path / "deep" / "model", "line": tmp_path / "other" / "line.txt"}
    environments.write_inputs(lab.home, "job", {}, (), {"": own})
    job = lab.run(lab.job("echo a > ${{outputs.model}}/a; echo b > ${{outputs.line}}", outputs=declared))

    assert job.status == "Completed", job.error
    assert job.properties["outputs"] == declared
    assert ((own["model"] / "a").read_text(), own["line"].read_text()) == ("a\n", "b\n")
    report = json.loads((lab.folder("job") / "report.json").read_text())
    assert report["replaced"]["outputs.model.path"] == [away, str(own["model"])]
    assert report["named_outputs"] == {name: [str(path)] for name, path in own.items()}


def test_a_step_takes_the_substitutes_of_its_pipeline_and_a_trial_those_of_its_sweep(lab: Lab, tmp_path: Path) -> None:
    def add(name: str, kind: str) -> str:
        return lab.store.jobs.add(WORKSPACE, name, {"properties": {"jobType": kind}}).id

    pipeline, sweep, step, trial = add("p", "Pipeline"), add("s", "Sweep"), add("c", "Sweep"), add("t", "Command")
    alone = add("alone", "Command")
    lab.store.family.add(step, pipeline, "train")
    lab.store.family.add(trial, step, "0")
    own = add("own", "Command")
    lab.store.family.add(own, sweep, "0")
    environments.write_inputs(lab.home, pipeline, {"": {"raw": tmp_path}, "train": {"data": tmp_path / "a"}})
    environments.write_inputs(lab.home, sweep, {"": {"data": tmp_path / "b"}})
    found = {job: environments.inputs_of(lab.store, lab.store.jobs[job]) for job in (step, trial, own, alone)}
    a, b = {"data": tmp_path / "a"}, {"data": tmp_path / "b"}
    assert found == {step: a, trial: a, own: b, alone: {}}


def test_earlier_outputs_are_shown_and_set_aside(lab: Lab) -> None:
    count = "ls ${{outputs.ckpt}} | wc -l; touch ${{outputs.ckpt}}/$AZUREML_RUN_ID; echo x > ${{outputs.up}}/y"
    given = {
        "ckpt": {"jobOutputType": "uri_folder", "uri": KEPT},
        "up": {"jobOutputType": "uri_folder", "mode": "Upload"},
    }
    for name in ("one", "two"):
        lab.run(lab.job(count, name=name, outputs=given))
    assert lab.log("two").strip() == "1"
    named = json.loads((lab.folder("two") / "report.json").read_text())["named_outputs"]
    mount = folder(lab.home) / "mounts/account/container/checkpoints"
    assert named == {"ckpt": [str(mount)], "up": [str(lab.folder("two") / "nodes/0/outputs/up")]}
    assert (lab.folder("two") / "nodes/0/outputs/up/y").is_file()

    plans = (planned(ckpt=KEPT, up="azureml://datastores/gone/paths/x"),)
    (earlier,) = outcome.earlier_outputs(lab.home, WORKSPACE, plans)
    assert (earlier.label, earlier.files, earlier.users) == ("ckpt", 2, ())
    kept = outcome.set_aside(lab.home, WORKSPACE, (earlier,))

    assert sorted(path.name for path in (kept / "container/checkpoints").iterdir()) == ["one", "two"]
    assert outcome.earlier_outputs(lab.home, WORKSPACE, plans) == ()
    lab.run(lab.job(count, name="three", outputs=given))
    assert lab.log("three").strip() == "0"


def test_a_job_that_still_writes_to_an_output_is_named(lab: Lab) -> None:
    lab.blob("checkpoints/a", "x")
    lab.job("true", name="busy", outputs={"ckpt": {"jobOutputType": "uri_folder", "uri": f"{KEPT}/"}})
    (earlier,) = outcome.earlier_outputs(lab.home, WORKSPACE, (planned(ckpt=KEPT),))
    assert earlier.users == ("busy",)
    lab.store.jobs.move("busy", "Canceled")


def test_a_value_is_substituted_in_the_command_and_stays_in_the_body(lab: Lab) -> None:
    given = {"lr": {"jobInputType": "literal", "value": "0.1"}}
    environments.write_inputs(lab.home, "job", {"": {"lr": Path("0.2")}})
    job = lab.run(lab.job("echo ${{inputs.lr}}", inputs=given))
    assert (job.status, lab.log("job"), job.properties["inputs"]) == ("Completed", "0.2\n", given)
    replaced = json.loads((lab.folder("job") / "report.json").read_text())["replaced"]
    assert replaced["inputs.lr"] == ["0.1", "0.2"]
