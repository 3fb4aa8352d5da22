"""`--on slurm`: whose profile a job gets, what the site is asked before, and what no longer counts of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base import home as homes
from amlstack.base.paths import PROJECT
from amlstack.cli.main import main
from amlstack.cli.rehearsal import run
from amlstack.cli.rehearsal.request import RehearsalRequest, survey
from amlstack.sandbox import slurm
from amlstack.sandbox.server import daemon
from amlstack.sandbox.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

JOB = """\
name: train
command: echo
environment: azureml:acpt-pytorch-2.8-cuda12.6@latest
compute: azureml:{compute}
resources: {{instance_count: 2}}
distribution: {{type: pytorch, process_count_per_instance: 64}}
limits: {{timeout: 3600}}
"""
PIPELINE = """\
type: pipeline
jobs:
  one: {type: command, command: echo, environment: "azureml:acpt-pytorch-2.8-cuda12.6@latest", compute: azureml:gpus}
  two: {type: command, command: echo, environment: "azureml:acpt-pytorch-2.8-cuda12.6@latest", compute: azureml:plain}
"""
H100 = {"partition": "gpu", "gres": "gpu:h100:8", "mpirun": "/opt/mpi/bin/mpirun"}
SINFO = "cpu*|up|0/4/0/4|(null)|intel|infinite\ngpu|up|1/1/2/4|gpu:h100:8(S:0-1)|ib,h100|2:00:00"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stack with a profile, and a cluster whose jobs are rehearsed by it."""
    for name in ("HOME", "CACHE"):
        monkeypatch.setenv(f"AMLSTACK_{name}", str(tmp_path / name.lower()))
    work = tmp_path / "work"
    work.mkdir()
    size = {"size": "Standard_ND96asr_v4", "nodes": {"max": 4}}
    clusters = [{"name": "gpus", "rehearse_on": "slurm:h100", **size}, {"name": "plain", **size}]
    config = {"location": "westeurope", "workspace": "aml-team", "clusters": clusters, "slurm": {"h100": H100}}
    stack = yaml.safe_dump({"config": {f"amlstack:{key}": value for key, value in config.items()}})
    (work / "Pulumi.team.yaml").write_text(stack)
    for compute in ("gpus", "plain"):
        (work / f"{compute}.yml").write_text(JOB.format(compute=compute))
    (work / "both.yml").write_text(PIPELINE)
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts programs of a Slurm on PATH, each a script of a shell; returns their folder."""

    def made(**programs: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        given = {**dict.fromkeys(("sbatch", "squeue", "srun", "scancel"), ":"), "sinfo": f"echo '{SINFO}'", **programs}
        for name, text in given.items():
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        return folder

    return made


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The answer of a dry run on its one job, and its findings."""
    main(["rehearse", *words, "--dry-run", "--json"])
    answer = json.loads(capsys.readouterr().out)
    return {**answer["jobs"][0], "codes": [each["code"] for each in answer["findings"]]}


def of_slurm(answer: dict[str, Any], state: str) -> list[str]:
    return [each["text"] for each in answer["aspects"] if (each["about"], each["state"]) == ("Slurm", state)]


def test_a_job_goes_where_its_cluster_says_and_this_machine_does_not_count(
    tmp_path: Path, site: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    site()
    answer = asked(capsys, "gpus.yml")
    assert of_slurm(answer, "ready") == ["profile h100: --partition=gpu --gres=gpu:h100:8 /opt/mpi/bin/mpirun"]
    assert of_slurm(answer, "blocks") == []
    (note,) = of_slurm(answer, "note")
    assert f"{tmp_path / 'home'} (AMLSTACK_HOME)" in note
    assert f"{tmp_path / 'cache'} (AMLSTACK_CACHE)" in note
    assert [each["text"] for each in answer["aspects"] if each["about"] == "size"] == [
        "2 × 64, as declared (nodes × ranks)"
    ]
    assert not {"GPU", "ports"} & {each["about"] for each in answer["aspects"]}
    assert answer["unproven"] == []
    assert asked(capsys, "gpus.yml", "-j", "2x2")["unproven"][0].startswith("memory per rank")


def test_an_option_outweighs_the_cluster(site: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    site()
    here = asked(capsys, "gpus.yml", "--on", "machine")
    assert of_slurm(here, "ready") == []
    assert any("loopback" in each for each in here["unproven"])
    assert of_slurm(asked(capsys, "plain.yml"), "ready") == []
    assert of_slurm(asked(capsys, "plain.yml", "--on", "slurm"), "ready") == ["the defaults of the site"]
    assert of_slurm(asked(capsys, "plain.yml", "--on", "slurm:h100"), "ready")[0].startswith("profile h100")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("gpus.yml", "--on", "slurm:h10"), "slurm-profile-unknown", "Did you mean `h100`?"),
        (
            ("gpus.yml", "--on", "slurm:h100", "--size", "Standard_ND96asr_v4"),
            "slurm-profile-unknown",
            "without --size",
        ),
        (("both.yml",), "rehearsal-place", "`machine`, `slurm:h100`"),
    ],
)
def test_a_place_that_is_not_known_is_a_finding(
    words: tuple[str, ...], code: str, says: str, site: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    site()
    assert main(["rehearse", *words, "--dry-run"]) == 2
    printed = capsys.readouterr()
    assert (code in printed.out + printed.err, says in printed.out + printed.err) == (True, True)
    assert main(["rehearse", "gpus.yml", "--on", "cloud"]) == 2
    assert "`slurm:PROFILE`, got" in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("programs", "words", "says"),
    [
        ({}, ("plain.yml", "--on", "slurm"), ""),
        ({}, ("plain.yml", "--on", "slurm:h100"), ""),
        ({"sinfo": f"echo '{SINFO.replace('1/1/2/4', '1/0/3/4')}'"}, ("gpus.yml",), "wants 2 nodes"),
        ({"sinfo": f"echo '{SINFO.replace('2:00', '1:00')}'"}, ("gpus.yml",), "may run 3600 s"),
        ({"sinfo": f"echo '{SINFO.replace('h100:8', 'h100:4')}'"}, ("gpus.yml",), "has gpu:h100:8"),
        ({"sinfo": "echo 'cpu*|up|0/4/0/4|(null)|intel|infinite'"}, ("gpus.yml",), "no partition gpu"),
        ({"sinfo": "echo 'sinfo: error: Unable to contact slurm controller' >&2; exit 1"}, ("gpus.yml",), "Unable to"),
    ],
)
def test_the_site_is_asked_before_anything_is_submitted(
    programs: dict[str, str],
    words: tuple[str, ...],
    says: str,
    site: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    site(**programs)
    found = of_slurm(asked(capsys, *words, "--force"), "blocks")
    assert [says in each for each in found] == ([True] if says else [])


def test_a_machine_that_submits_to_no_slurm_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = asked(capsys, "gpus.yml")
    assert "submits to no Slurm" in of_slurm(answer, "blocks")[0]
    assert main(["sandbox", "up", "--on", "slurm"]) == 1
    assert "login node" in capsys.readouterr().err
    assert not (tmp_path / "home" / homes.SITE).exists()


def sent(monkeypatch: pytest.MonkeyPatch, file: str, home: Path, on: str | None = None) -> dict[str, str]:
    """The query of the PUT of a file's job."""
    queries: list[dict[str, str]] = []

    def put(path: str, *_: Any, query: dict[str, str] | None = None) -> None:
        if "/jobs/" in path:
            queries.append(query or {})

    monkeypatch.setattr(run, "register", lambda *_: None)
    known = survey(RehearsalRequest(Path(file), on=on))
    endpoint: Any = SimpleNamespace(home=home, subscription="s", tenant="t")
    arm: Any = SimpleNamespace(put=put, finish=lambda _: None)
    run._submit(arm, endpoint, known, 0, {})
    (query,) = queries
    return query


def test_the_profile_goes_beside_the_body_and_only_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    profile = slurm.SlurmProfile.read(sent(monkeypatch, "gpus.yml", home)[slurm.QUERY])
    assert profile == slurm.SlurmProfile("h100", (("partition", "gpu"), ("gres", "gpu:h100:8")), H100["mpirun"])
    assert sent(monkeypatch, "plain.yml", home) == {}
    home.mkdir()
    (home / homes.SITE).write_text('{"partition": "cpu"}')
    assert json.loads(sent(monkeypatch, "plain.yml", home)[slurm.QUERY]) == {"partition": "cpu"}
    assert sent(monkeypatch, "gpus.yml", home, "machine") == {slurm.QUERY: "machine"}


def test_a_profile_of_the_sandbox_that_cannot_be_read_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / homes.SITE).write_text('{"partion": "cpu"}')
    assert "slurm-profile-unknown" in asked(capsys, "plain.yml")["codes"]


def test_the_sandbox_keeps_a_profile_shows_it_and_lets_go_of_its_allocations(
    tmp_path: Path, site: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, log = tmp_path / "home", tmp_path / "cancelled"
    name = f"{slurm._prefix(home)}job"
    site(squeue=f"echo '17|PENDING|Resources||{name}'; echo '18|RUNNING|None|n1|other'", scancel=f'echo "$@" >> {log}')
    endpoint = SimpleNamespace(url="https://127.0.0.1:1", pid=1, ca=home / "sandbox" / "ca.pem")
    monkeypatch.setattr(daemon, "_start", lambda _: endpoint)
    assert main(["sandbox", "up", "--on", "slurm:h100", "--stack", "team"]) == 0
    assert "from now on run on slurm:h100" in capsys.readouterr().out
    main(["sandbox", "status", "--json"])
    assert json.loads(capsys.readouterr().out)["slurm"] == {"name": "h100", **H100}
    main(["sandbox", "status"])
    assert "jobs get nodes of Slurm: name h100, partition gpu" in " ".join(capsys.readouterr().out.split())
    with closing(Store(home)) as store:
        assert not store.sites.any()
    assert main(["sandbox", "down"]) == 0
    assert log.read_text() == "--quiet 17\n"
    assert main(["sandbox", "up", "--on", "machine"]) == 0
    assert "from now on run on this machine" in capsys.readouterr().out
    assert not (home / homes.SITE).exists()
    main(["sandbox", "down"])
    assert log.read_text() == "--quiet 17\n"
    with closing(Store(home)) as store:
        store.sites.put("job", "{}")
    main(["sandbox", "down", "--remove", "--yes"])
    assert log.read_text() == "--quiet 17\n" * 2


def test_neither_stack_settings_nor_slurm_load_unasked() -> None:
    verbs = (("rehearse", "plain.yml", "--dry-run"), ("sandbox", "status"), ("sandbox", "down"))
    file = PROJECT / "examples/ddp_per_process/job.yml"
    program = (
        "import sys\nfrom amlstack.cli.main import main\n"
        f"assert main(['check', '--size', 'Standard_ND96asr_v4', {str(file)!r}]) == 0\n"
        "assert 'infra.settings' not in sys.modules\n"
        f"for words in {verbs}:\n    main([*words])\n"
        "assert not [name for name in sys.modules if 'slurm' in name]"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
