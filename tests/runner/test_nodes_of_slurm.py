"""Jobs whose nodes come from a real Slurm of two nodes, which these tests start and end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.report import performance
from amlstack.sandbox import processes, slurm
from amlstack.sandbox.runner import usage
from amlstack.sandbox.runner.machines import SlurmNodes
from tests.support.runner.runner_lab import ML, PLAIN
from tests.support.slurm import Slurm, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.runner.runner_lab import Lab

SHOW = 'echo "$RANK $WORLD_SIZE $NODE_RANK $LOCAL_RANK $MASTER_ADDR"; env | grep ^SLURM | wc -l'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    yield from started(tmp_path_factory.mktemp("slurm"))


@pytest.fixture
def disturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """A cluster of the test's own, whose daemons it may end."""
    with contextlib.contextmanager(started)(tmp_path / "slurm") as made:
        monkeypatch.setenv("PATH", f"{made.commands}:{os.environ['PATH']}")
        yield made
        made.wait(lambda: not made.allocations())


@pytest.fixture
def site(cluster: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """The cluster, its commands on PATH; it must be empty again after each test."""
    monkeypatch.setenv("PATH", f"{cluster.commands}:{os.environ['PATH']}")
    yield cluster
    cluster.wait(lambda: not cluster.allocations())


def on_slurm(lab: Lab, job: str, *, container: str = "", **options: str) -> str:
    lab.store.sites.put(job, slurm.SlurmProfile(options=tuple(options.items()), container=container).text())
    return job


def test_ranks_and_logs_are_those_of_this_machine(lab: Lab, site: Slurm) -> None:
    assert site
    job = lab.run(on_slurm(lab, lab.job(SHOW, nodes=2, processes=2)))
    assert job.status == "Completed", job.error
    logs = [lab.log("job", rank).splitlines() for rank in range(4)]
    address = logs[0][0].split()[-1]
    assert [log[0] for log in logs] == [f"{rank} 4 {rank // 2} {rank % 2} {address}" for rank in range(4)]
    assert {log[1] for log in logs} == {"0"}  # nothing of Slurm reaches a rank
    assert [(end.node, end.rank, end.code) for end in job.exits] == [(0, 0, 0), (0, 1, 0), (1, 2, 0), (1, 3, 0)]
    assert lab.steps("job")[:3] == ["NotStarted", "Queued", "Provisioning"]


def test_mpirun_reaches_the_nodes_by_srun(lab: Lab, site: Slurm) -> None:
    assert site
    show = 'echo "$OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_RANK $AZ_BATCH_MASTER_NODE"'
    ranks = {"distributionType": "Mpi", "processCountPerInstance": 2}
    show += "; env | grep -cE '^(SLURM|AMLSTACK_SANDBOX_R)' || true"
    job = lab.run(on_slurm(lab, lab.job(show, nodes=2, distribution=ranks)))
    assert job.status == "Completed", job.error
    logs = [lab.log("job", rank).splitlines() for rank in range(4)]
    master = logs[0][0].split()[-1]
    assert logs == [[f"{rank} 4 {rank % 2} {master}", "0"] for rank in range(4)]


def test_tasks_of_tensorflow_have_ports_of_their_own(lab: Lab, site: Slurm, tmp_path: Path) -> None:
    """Each waits until all have written: a parameter server is ended with the last worker."""
    assert site
    (written := tmp_path / "written").mkdir()
    writes = f'echo "$TF_CONFIG"; touch {written}/$$; until [ "$(ls {written} | wc -l)" = 4 ]; do :; done'
    tasks = {"distributionType": "TensorFlow", "workerCount": 3, "parameterServerCount": 1}
    job = lab.run(on_slurm(lab, lab.job(writes, nodes=2, distribution=tasks)))
    assert job.status == "Completed", job.error
    configs = [json.loads(lab.log("job", rank)) for rank in range(4)]
    found = configs[0]["cluster"]
    assert [config["cluster"] for config in configs] == [found] * 4
    assert len({*found["worker"], *found["ps"]}) == 4


def test_what_each_node_uses_is_told_by_its_agent(lab: Lab, site: Slurm) -> None:
    assert site
    seen, go = lab.folder("job") / usage.FILE, lab.pipe()
    computes = f"until grep -q ,0, {seen} && grep -q ,1, {seen}; do :; done 2>/dev/null; echo go > {go}"
    job = on_slurm(lab, lab.job(f'if [ "$RANK" = 0 ]; then {computes}; else cat {go}; fi', nodes=2))
    assert lab.run(job).status == "Completed"
    cores = {each.name: each.points[0][1] for each in performance.usage(lab.folder(job))["CPU, cores"]}
    assert cores["node 0"] > cores["node 1"]


def test_ranks_run_in_the_image_of_their_environment_where_the_site_has_apptainer(
    lab: Lab, site: Slurm, tmp_path: Path
) -> None:
    """A stand-in for apptainer runs what follows the image, with the image's own PATH."""
    assert site
    program = tmp_path / "bin" / "apptainer"
    program.parent.mkdir()
    program.write_text(f"""#!/bin/bash
for word; do shift; case $word in docker://*) break ;; esac; echo "$word" >> {tmp_path}/words; done
PATH=/image/bin:/usr/bin:/bin IMAGE=$word exec "$@"
""")
    program.chmod(0o755)
    job = lab.job('echo "$RANK $IMAGE ${PATH%%:*}"', nodes=2)
    assert lab.run(on_slurm(lab, job, container=str(program))).status == "Completed"
    image = "docker://mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
    assert [lab.log("job", rank) for rank in range(2)] == [f"{rank} {image} /image/bin\n" for rank in range(2)]
    assert (tmp_path / "words").read_text().split() == ["exec", "--bind", str(lab.home)] * 2


def test_the_options_of_pyxis_name_the_image_as_enroot_does(tmp_path: Path) -> None:
    profile = slurm.SlurmProfile(options=(("gres", "gpu:8"),), container="pyxis")
    nodes = SlurmNodes(tmp_path, tmp_path, "7", ("n0", "n1"), profile, binds=True)
    image = "mcr.microsoft.com/azureml/curated/acpt-pytorch-2.8-cuda12.6:13"
    words = nodes.inside(1, image, [tmp_path, Path("/data")], gpus=True)
    assert {"--jobid=7", "--gres=gpu:8", "--no-container-mount-home"} <= {*words}
    assert words[words.index("-w") + 1] == "n1"
    assert "--container-image=mcr.microsoft.com#azureml/curated/acpt-pytorch-2.8-cuda12.6:13" in words
    assert f"--container-mounts={tmp_path}:{tmp_path},/data:/data" in words
    assert "--container-image=pytorch/pytorch:2.8" in nodes.inside(0, "pytorch/pytorch:2.8", [], gpus=False)


@pytest.mark.parametrize(
    ("environment", "ranks", "says"),
    [
        ({"image": "ubuntu:22.04", "condaFile": "name: x"}, {}, "builds the image"),
        ({}, {"distributionType": "Mpi"}, "MPI"),
    ],
)
def test_a_job_whose_image_cannot_be_used_is_refused(
    lab: Lab, site: Slurm, environment: dict[str, str], ranks: dict[str, Any], says: str
) -> None:
    assert site
    if environment:
        parent = PLAIN.rsplit("/", 2)[0]
        lab.store.resources.put(PLAIN, f"{ML}/workspaces/environments/versions", parent, {"properties": environment})
    lab.run(on_slurm(lab, lab.job("true", **({"distribution": ranks} if ranks else {})), container="apptainer"))
    status, code, words = ended(lab)
    assert (status, code) == ("Failed", "SandboxUnsupported")
    assert says in words
    assert "Leave `container` out" in words


def during(lab: Lab, job: str, act: Callable[[], object]) -> None:
    """Runs a job of `RUNS` to its end; ``act`` is called when all of its ranks run."""
    asyncio.run(lab.during(job, act=act, pipe=lab.home / "pipe0"))


def running(lab: Lab, **options: str) -> str:
    """A job of two nodes whose ranks run until they are ended; rank 1 says when it does."""
    pipe = lab.pipe()
    command = f'if [ "$RANK" = 1 ]; then echo up > {pipe}; fi; exec sleep 600'
    return on_slurm(lab, lab.job(command, nodes=2), **options)


def number(lab: Lab, job: str = "job") -> str:
    return str(json.loads((lab.folder(job) / slurm.ALLOCATION).read_text())["number"])


def ended(lab: Lab, job: str = "job") -> tuple[str, str, str]:
    """Status, code and words of a job's end; no process of it is left."""
    assert not lab.survivors()
    row = lab.store.jobs[job]
    return row.status, row.error.code if row.error else "", row.error.message if row.error else ""


def test_a_job_that_is_cancelled_here_leaves_its_nodes(lab: Lab, site: Slurm) -> None:
    assert site
    job = running(lab)
    during(lab, job, lambda: lab.store.jobs.request_cancel(job))
    assert ended(lab) == ("Canceled", "", "")


def test_a_job_that_is_cancelled_from_slurms_side_is_canceled(lab: Lab, site: Slurm) -> None:
    job = running(lab)
    during(lab, job, lambda: site.says("scancel", number(lab)))
    status, code, words = ended(lab)
    assert (status, code) == ("Canceled", "JobCanceled")
    assert "Slurm's job" in words
    assert "was cancelled" in words


def test_a_rank_that_ends_as_its_nodes_are_taken_has_not_failed(lab: Lab, site: Slurm) -> None:
    """Slurm ends ranks and agents in any order; here the rank is first."""
    noted = lab.folder("job") / slurm.ALLOCATION
    taken = f"{site.commands}/scancel $(grep -oE '\"number\": \"[0-9]+' {noted} | grep -oE '[0-9]+'); exit 1"
    lab.run(on_slurm(lab, lab.job(taken)))
    assert ended(lab)[:2] == ("Canceled", "JobCanceled")


def test_a_preempted_job_fails_as_on_azure(lab: Lab, site: Slurm) -> None:
    job = running(lab)
    during(lab, job, lambda: site.says("sbatch", "-p", "urgent", "-N2", "-o", "/dev/null", "--wrap", "true"))
    status, code, words = ended(lab)
    assert (status, code) == ("Failed", "NodePreempted")
    assert "was pre-empted" in words


def test_a_node_whose_processes_are_killed_is_lost(lab: Lab, site: Slurm) -> None:
    job = running(lab)

    def kill() -> None:
        agents = [pid for pid in processes.marked(lab.home) if _is_agent(pid, "n1")]
        assert agents
        for pid in agents:
            processes.send(pid, signal.SIGKILL)

    assert site
    during(lab, job, kill)
    status, code, words = ended(lab)
    assert (status, code) == ("Failed", "NodeLost")
    assert words.startswith("Node 1 was lost")


def test_a_node_whose_daemon_dies_is_lost(lab: Lab, disturbed: Slurm) -> None:
    job = running(lab)
    during(lab, job, lambda: disturbed.kill("n1"))
    status, code, words = ended(lab)
    assert (status, code) == ("Failed", "NodeLost")
    assert "lost a node" in words


def test_a_controller_that_restarts_changes_nothing(lab: Lab, disturbed: Slurm) -> None:
    pipe, go = lab.pipe(), lab.pipe()
    command = f'if [ "$RANK" = 1 ]; then echo up > {pipe}; fi; read word < {go}'
    job = on_slurm(lab, lab.job(command, nodes=2))
    line = os.open(go, os.O_RDWR)

    def restart() -> None:
        disturbed.kill("slurmctld")
        disturbed.daemon("slurmctld")
        os.write(line, b"go\ngo\n")

    during(lab, job, restart)
    os.close(line)
    assert ended(lab) == ("Completed", "", "")


def test_a_controller_that_is_gone_as_nodes_are_given_is_asked_again(
    lab: Lab, site: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert site
    keep, failed = slurm.keep, list[str]()

    def fails_once(home: Path, job: str, given: slurm.Allocation, profile: slurm.SlurmProfile) -> int:
        if not failed:
            failed.append(job)
            raise slurm.SlurmError("Unable to contact slurm controller")
        return keep(home, job, given, profile)

    monkeypatch.setattr(slurm, "keep", fails_once)
    assert lab.run(on_slurm(lab, lab.job("true", nodes=2))).status == "Completed"
    assert failed == ["job"]


def test_the_limit_of_a_partition_ends_a_job(lab: Lab, site: Slurm) -> None:
    job = running(lab, partition="short")
    during(lab, job, lambda: site.says("scontrol", "update", f"jobid={number(lab)}", "EndTime=now+1"))
    status, code, words = ended(lab)
    assert (status, code) == ("Canceled", "JobTimeout")
    assert "time limit" in words


def test_the_jobs_own_limit_is_the_sandboxes(lab: Lab, site: Slurm) -> None:
    assert site
    job = on_slurm(lab, lab.job("exec sleep 600", nodes=2, limits={"timeout": "PT1S"}))
    lab.run(job)
    status, code, words = ended(lab)
    assert (status, code) == ("Canceled", "JobTimeout")
    assert "limits.timeout" in words


@pytest.mark.parametrize(
    ("options", "words"),
    [({"partition": "nowhere"}, "invalid partition specified: nowhere"), ({"constraint": "large"}, "feature")],
)
def test_what_slurm_refuses_ends_the_job_with_its_words(
    lab: Lab, site: Slurm, options: dict[str, str], words: str
) -> None:
    assert site
    lab.run(on_slurm(lab, lab.job("true"), **options))
    status, code, said = ended(lab)
    assert (status, code) == ("Failed", "SlurmRefused")
    assert words in said


def test_a_waiting_job_says_why_and_can_be_cancelled_from_both_sides(lab: Lab, site: Slurm) -> None:
    held = site.says("sbatch", "--parsable", "-N2", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 600").strip()
    here, there = (on_slurm(lab, lab.job("true", nodes=2, name=name)) for name in ("here", "there"))

    def acted() -> bool:
        told = [[step.detail for step in lab.store.history.of("job", job) if step.detail] for job in (here, there)]
        if all(told) and not lab.store.jobs[here].cancel_requested:
            assert all("(" not in each for each in told[0])
            lab.store.jobs.request_cancel(here)
            waiting = told[1][0].split()[2]
            site.says("scancel", waiting)
        return lab.ended(here, there)

    asyncio.run(lab.drive(acted))
    site.says("scancel", held)
    reasons = [step.detail for step in lab.store.history.of("job", here) if step.detail]
    assert any("Resources" in each or "Priority" in each for each in reasons)
    assert ended(lab, here) == ("Canceled", "", "")
    assert ended(lab, there)[:2] == ("Canceled", "SlurmEnded")


def test_a_runner_that_is_killed_leaves_no_allocation(lab: Lab, site: Slurm) -> None:
    assert site
    job = running(lab)
    during(lab, job, lambda: processes.send(lab.store.jobs[job].runner_pid or 0, signal.SIGKILL))
    assert ended(lab)[:2] == ("Failed", "RunnerLost")


def test_a_job_above_the_limit_of_its_partition_waits_with_the_reason(lab: Lab, site: Slurm) -> None:
    """A quota of a site holds a job in the queue, as one of Azure does."""
    job = on_slurm(lab, lab.job("true", nodes=2), partition="single")

    def told() -> list[str]:
        return [step.detail for step in lab.store.history.of("job", job) if step.detail]

    def acted() -> bool:
        if told() and not lab.store.jobs[job].cancel_requested:
            assert lab.store.jobs[job].status == "Queued"
            lab.store.jobs.request_cancel(job)
            lab.wake.set()
        return lab.ended(job)

    asyncio.run(lab.drive(acted))
    assert site
    assert ["PartitionNodeLimit" in each for each in told()] == [True]
    assert ended(lab) == ("Canceled", "", "")


def test_a_second_job_gets_the_nodes_of_the_first(lab: Lab, site: Slurm) -> None:
    assert site
    jobs = [on_slurm(lab, lab.job("true", nodes=2, name=f"job{index}")) for index in range(3)]
    lab.run(*jobs)
    assert [lab.store.jobs[job].status for job in jobs] == ["Completed"] * 3


def test_a_server_that_comes_later_finds_what_waits(lab: Lab, site: Slurm) -> None:
    held = site.says("sbatch", "--parsable", "-N2", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 600").strip()
    job = on_slurm(lab, lab.job("true", nodes=2))
    asyncio.run(lab.drive(lambda: len(site.allocations()) == 2))
    site.says("scancel", held)
    assert lab.run(job).status == "Completed"


def _is_agent(pid: int, node: str) -> bool:
    """True where a process is the agent of a node, and not the srun that started it."""
    entry = Path(f"/proc/{pid}")
    named = f"SLURMD_NODENAME={node}".encode() in (entry / "environ").read_bytes().split(b"\0")
    return named and b"amlstack.sandbox.runner.node_agent" in (entry / "cmdline").read_bytes().split(b"\0")
