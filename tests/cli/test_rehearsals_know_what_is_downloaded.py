"""`amlstack rehearse --dry-run` on code that fetches from the internet or starts programs that only an image has."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.main import main
from amlstack.cli.rehearsal import judgement

if TYPE_CHECKING:
    from pathlib import Path

OWN = "{image: 'mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04'}"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a job, and a machine that reaches `there.org` alone."""
    for name in ("HOME", "CACHE"):
        monkeypatch.setenv(f"AMLSTACK_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(judgement, "unreachable", lambda hosts: hosts - {"there.org"})
    (tmp_path / "work" / "src").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def aspects(here: Path, capfd: pytest.CaptureFixture[str], command: str, *options: str) -> dict[str, list[Any]]:
    job = {
        "command": command,
        "code": "src",
        "environment": {"image": "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04"},
    }
    (here / "job.yml").write_text(json.dumps({**job, "compute": "azureml:a"}))
    main(["rehearse", "job.yml", "--dry-run", "--json", "--yes", *options])
    (answer,) = json.loads(capfd.readouterr().out)["jobs"]
    found: dict[str, list[Any]] = {}
    for each in answer["aspects"]:
        found.setdefault(each["about"], []).append(each)
    return found


def test_a_download_from_where_this_machine_does_not_reach_is_in_the_way_at_its_line(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "src" / "train.py").write_text("import requests\n\nrequests.get('https://away.org/a')\n")
    (found,) = aspects(here, capfd, "python train.py")["internet"]
    assert (found["state"], found["line"]) == ("blocks", 3)
    assert found["file"].endswith("src/train.py")
    assert found["text"].endswith("and away.org cannot be reached from this machine")
    (forced,) = aspects(here, capfd, "python train.py", "--force")["internet"]
    assert forced["state"] == "note"


@pytest.mark.parametrize(
    "text",
    [
        "import requests\nrequests.get('https://there.org/a')\n",
        "import requests\ntry:\n    requests.get('https://away.org/a')\nexcept OSError:\n    pass\n",
    ],
)
def test_what_can_be_reached_or_may_be_spared_is_a_note(
    text: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "src" / "train.py").write_text(text)
    (found,) = aspects(here, capfd, "python train.py")["internet"]
    assert found["state"] == "note"


def test_a_command_that_fetches_and_programs_of_an_image_are_in_the_way(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "src" / "train.py").touch()
    monkeypatch.setattr("shutil.which", lambda _: None)
    command = "sudo true; wget https://away.org/a.tar.gz; julia run.jl"
    found = aspects(here, capfd, command)
    assert [each["state"] for each in found["internet"]] == ["blocks"]
    assert [each["text"].split("`")[1] for each in found["programs"]] == ["sudo", "wget", "julia"]


def test_a_value_that_is_given_as_a_folder_of_this_machine_is_not_fetched(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "tiny").mkdir()
    (here / "src" / "train.py").write_text(
        "import argparse\nfrom transformers import AutoModel\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--model')\nAutoModel.from_pretrained(parser.parse_args().model)\n"
    )
    job = {"command": "python train.py --model ${{inputs.model}}", "code": "src", "compute": "azureml:a"}
    image = {"image": "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04"}
    (here / "job.yml").write_text(json.dumps({**job, "environment": image, "inputs": {"model": "bert-base-uncased"}}))

    def blocking(*options: str) -> list[str]:
        main(["rehearse", "job.yml", "--dry-run", "--json", "--yes", *options])
        (answer,) = json.loads(capfd.readouterr().out)["jobs"]
        return [each["state"] for each in answer["aspects"] if each["about"] == "internet"]

    assert blocking() == ["blocks"]
    assert blocking("--input", "model=tiny") == []
    assert blocking("--input", "model=gpt2") == ["blocks"], "another name is fetched as well"


def test_a_settings_file_as_an_input_is_not_taken_for_the_model(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A model that the program names by a setting is fetched, unless a folder among the inputs may be that model."""
    (here / "model.json").write_text("{}")
    (here / "src" / "train.py").write_text(
        "from transformers import AutoModel\n\ndef build(model_name):\n"
        "    return AutoModel.from_pretrained(model_name)\n\nbuild(load()['name'])\n"
    )
    states = []
    for kind, path in (("uri_file", "model.json"), ("uri_folder", "src")):
        given = {"type": kind, "path": path}
        job = {"command": "python train.py ${{inputs.given}}", "code": "src", "compute": "azureml:a"}
        image = {"image": "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04"}
        (here / "job.yml").write_text(json.dumps({**job, "environment": image, "inputs": {"given": given}}))
        main(["rehearse", "job.yml", "--dry-run", "--json", "--yes"])
        (answer,) = json.loads(capfd.readouterr().out)["jobs"]
        states += [each["state"] for each in answer["aspects"] if each["about"] == "internet"]
    assert states == ["blocks", "note"]


def test_the_hosts_of_all_steps_are_asked_together(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(judgement, "unreachable", lambda hosts: asked.append(hosts) or frozenset({"b.org"}))
    step = {"type": "command", "environment": {"image": "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04"}}
    steps = {name: {**step, "command": f"wget https://{name}.org/x"} for name in ("a", "b")}
    job = {"type": "pipeline", "jobs": steps, "settings": {"default_compute": "azureml:a"}}
    (here / "job.yml").write_text(json.dumps(job))
    main(["rehearse", "job.yml", "--dry-run", "--json", "--yes"])
    (answer,) = json.loads(capfd.readouterr().out)["jobs"]
    found = [(each["state"], each["places"]) for each in answer["aspects"] if each["about"] == "internet"]
    assert asked == [{"a.org", "b.org"}]
    assert found == [("note", ["jobs.a"]), ("blocks", ["jobs.b"])]


def test_hosts_that_refuse_are_unreachable_and_slow_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    judgement.unreachable.cache_clear()

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        del timeout
        if address[0] == "there.org":
            return socket.socket()
        raise TimeoutError if address[0] == "slow.org" else OSError("no such name")

    monkeypatch.setattr(socket, "create_connection", connect)
    assert judgement.unreachable(frozenset(("there.org", "slow.org", "away.org"))) == {"away.org"}
    judgement.unreachable.cache_clear()
