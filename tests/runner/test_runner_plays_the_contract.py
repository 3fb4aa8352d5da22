from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.runner.runner_lab import CURATED, LIMIT, Lab

SHOW = (
    'echo "$RANK $WORLD_SIZE $NODE_RANK $LOCAL_RANK $MASTER_ADDR"; echo "port $MASTER_PORT"; echo "run $AZUREML_RUN_ID"'
)


def test_each_process_gets_its_ranks_and_a_log_of_its_own(lab: Lab) -> None:
    job = lab.run(lab.job(SHOW, nodes=2, processes=2))
    assert job.status == "Completed", job.error
    logs = [lab.log("job", rank).splitlines() for rank in range(4)]
    assert [log[0] for log in logs] == [
        "0 4 0 0 127.0.0.1",
        "1 4 0 1 127.0.0.1",
        "2 4 1 0 127.0.0.1",
        "3 4 1 1 127.0.0.1",
    ]
    assert len({log[1] for log in logs}) == 1
    assert {log[2] for log in logs} == {"run job"}
    assert [(end.node, end.rank, end.code) for end in job.exits] == [(0, 0, 0), (0, 1, 0), (1, 2, 0), (1, 3, 0)]
    assert lab.steps("job") == [
        *("NotStarted", "Queued", "Provisioning", "Preparing"),
        *("Running", "Finalizing", "Completed"),
    ]


def test_nothing_of_the_users_own_environment_reaches_a_rank(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    lab.run(lab.job("env", environmentVariables={"NCCL_SOCKET_IFNAME": "eth0", "MINE": "a b", "NCCL_TOPO_FILE": "/no"}))
    seen = dict(line.split("=", 1) for line in lab.log("job").splitlines() if "=" in line)
    assert "MY_SECRET" not in seen
    assert "NCCL_TOPO_FILE" not in seen
    assert (seen["MINE"], seen["NCCL_SOCKET_IFNAME"], seen["GLOO_SOCKET_IFNAME"]) == ("a b", "lo", "lo")
    assert seen["PET_MASTER_PORT"] == seen["MASTER_PORT"]  # torchrun, given no other, takes no port that all jobs share
    assert not Path(seen["TMPDIR"]).exists()
    report = json.loads((lab.folder("job") / "report.json").read_text())
    assert report["replaced"] == {"NCCL_SOCKET_IFNAME": ["eth0", "lo"], "NCCL_TOPO_FILE": ["/no", ""]}


def test_every_node_has_its_own_copy_of_the_code_and_its_outputs_are_collected(lab: Lab) -> None:
    code = lab.code({"run.sh": "cat sub/word; echo mine >> sub/word; cat sub/word > outputs/$1", "sub/word": "word\n"})
    job = lab.run(lab.job("bash run.sh node$NODE_RANK", nodes=2, codeId=code))
    assert job.status == "Completed", job.error
    assert [lab.log("job", rank) for rank in (0, 1)] == ["word\n", "word\n"]
    outputs = lab.folder("job") / "outputs"
    assert {path.name: path.read_text() for path in outputs.iterdir()} == {
        "node0": "word\nmine\n",
        "node1": "word\nmine\n",
    }


def test_inputs_and_outputs_stand_where_the_command_says(lab: Lab) -> None:
    lab.blob("data/a.txt", "A")
    lab.blob("data/deep/b.txt", "B")
    store = "azureml://datastores/workspaceblobstore/paths"
    command = (
        "echo ${{inputs.word}} $[[--more ${{inputs.absent}}]]; cat ${{inputs.all}}/deep/b.txt ${{inputs.one}}; "
        "echo ${{inputs.one}}; echo result > ${{outputs.kept}}/r.txt; echo up > ${{outputs.sent}}/u.txt"
    )
    inputs = {
        "word": {"jobInputType": "literal", "value": "0.1"},
        "all": {"jobInputType": "uri_folder", "uri": f"{store}/data/", "mode": "ReadOnlyMount"},
        "one": {"jobInputType": "uri_file", "uri": f"{store}/data/a.txt", "mode": "Download"},
    }
    outputs = {
        "kept": {"jobOutputType": "uri_folder", "mode": "ReadWriteMount"},
        "sent": {"jobOutputType": "uri_folder", "mode": "Upload", "uri": f"{store}/there"},
    }
    job = lab.run(lab.job(command, inputs=inputs, outputs=outputs))
    assert job.status == "Completed", job.error
    first, second = lab.log("job").splitlines()
    assert first == "0.1"
    assert second.startswith("BA")
    assert second.endswith("/a.txt")
    stored = {blob.name: blob.path.read_text() for blob in lab.store.blobs.under("account", "container")}
    assert stored["azureml/job/kept/r.txt"] == "result\n"
    assert stored["there/u.txt"] == "up\n"


def test_the_rank_that_raises_is_named_with_its_log_and_the_others_end(lab: Lab) -> None:
    code = lab.code(
        {
            "train.py": """
import os, signal, sys
if os.environ["RANK"] == "3":
    raise RuntimeError("no such shard")
print("waiting", flush=True)
signal.pause()
"""
        }
    )
    job = lab.run(lab.job("python train.py", nodes=2, processes=2, codeId=code))
    assert job.status == "Failed"
    assert job.error is not None
    assert job.error.message == (
        "Execution failed: rank 3 of 4 (node 1, local rank 1) exited with code 1: RuntimeError: no such shard. "
        "Its log: user_logs/std_log_process_03.txt"
    )
    assert [end.code for end in job.exits] == [-15, -15, -15, 1]
    assert lab.survivors() == ()


def test_a_victim_that_ends_first_is_not_taken_for_the_culprit(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_SANDBOX_SETTLE", str(LIMIT))  # both end by themselves, however busy the machine
    pipe = lab.pipe()
    code = lab.code(
        {
            "train.py": f"""
import os, sys
if os.environ["RANK"] == "0":
    open({str(pipe)!r}, "w").close()
    raise RuntimeError("Connection closed by peer [127.0.0.1]:1234")
open({str(pipe)!r}).read()
raise ValueError("bad label")
"""
        }
    )
    job = lab.run(lab.job("python train.py", nodes=2, codeId=code))
    assert job.error is not None
    assert "rank 1 of 2" in job.error.message
    assert "bad label" in job.error.message


def test_a_rank_killed_by_a_signal_is_named(lab: Lab) -> None:
    job = lab.run(lab.job("[ $RANK = 1 ] && kill -SEGV $$; sleep 1000", nodes=1, processes=2))
    assert job.error is not None
    assert "rank 1 of 2 (node 0, local rank 1) was killed by SIGSEGV" in job.error.message


@pytest.mark.parametrize(
    "stubborn", ["sleep 1000", "trap '' TERM; while :; do sleep 1000; done", "setsid sleep 1000 & wait"]
)
def test_a_cancel_ends_every_process(lab: Lab, monkeypatch: pytest.MonkeyPatch, stubborn: str) -> None:
    monkeypatch.setenv("AMLSTACK_SANDBOX_GRACE", "0.2")
    pipe = lab.pipe()
    job = lab.job(f"echo up > {pipe}; {stubborn}", nodes=2)
    asyncio.run(lab.during(job, pipe=pipe, act=lambda: lab.store.jobs.request_cancel(job)))
    assert lab.store.jobs[job].status == "Canceled"
    assert lab.steps(job)[-2:] == ["CancelRequested", "Canceled"]
    assert lab.survivors() == ()
    assert {node.state for node in lab.store.nodes.all()} == {"idle"}


def test_a_queued_job_is_cancelled_without_ever_running(lab: Lab) -> None:
    job = lab.job("echo no", name="never")
    lab.store.jobs.request_cancel(job)
    assert lab.run(job).status == "Canceled"
    assert not lab.folder(job).exists()


def test_a_killed_runner_leaves_no_process_and_a_failed_job(lab: Lab) -> None:
    pipe = lab.pipe()
    job = lab.job(f"(setsid sleep 1000 &) ; echo up > {pipe}; sleep 1000", nodes=2)

    def kill() -> None:
        runner = lab.store.jobs[job].runner_pid
        assert runner is not None
        os.kill(runner, signal.SIGKILL)

    asyncio.run(lab.during(job, pipe=pipe, act=kill))
    row = lab.store.jobs[job]
    assert row.status == "Failed"
    assert row.error is not None
    assert row.error.code == "RunnerLost"
    assert lab.survivors() == ()
    assert {node.state for node in lab.store.nodes.all()} == {"idle"}


def test_a_killed_node_agent_is_a_lost_node(lab: Lab) -> None:
    pipe = lab.pipe()
    job = lab.job(f"echo $PPID > {pipe}; (setsid sleep 1000 &); sleep 1000", nodes=1, processes=1)
    asyncio.run(lab.during(job, pipe=pipe, act=lambda: os.kill(int(lab.written), signal.SIGKILL)))
    row = lab.store.jobs[job]
    assert row.error is not None
    assert row.error.code == "NodeLost"
    assert "Node 0" in row.error.message
    assert row.exits[0].code is None
    assert lab.survivors() == ()


TENSORFLOW = {"distributionType": "TensorFlow", "workerCount": 2, "parameterServerCount": 1}


def test_parameter_servers_end_when_the_workers_are_done(lab: Lab) -> None:
    command = """case $TF_CONFIG in *'"type": "ps"'*) exec sleep 1000;; *) echo "$TF_CONFIG";; esac"""
    job = lab.run(lab.job(command, nodes=2, distribution=TENSORFLOW))
    assert job.status == "Completed", job.error
    assert [(end.node, end.rank, end.code) for end in job.exits] == [(0, 0, 0), (1, 1, 0), (0, 2, -15)]
    assert json.loads(lab.log("job", 1))["task"] == {"type": "worker", "index": 1}
    assert lab.survivors() == ()


def test_a_parameter_server_that_breaks_fails_the_job(lab: Lab) -> None:
    command = """case $TF_CONFIG in *'"type": "ps"'*) exit 3;; *) exec sleep 1000;; esac"""
    job = lab.run(lab.job(command, nodes=2, distribution=TENSORFLOW))
    assert job.error is not None
    assert "rank 2 of 3 (node 0, local rank 1) exited with code 3" in job.error.message


def test_a_job_past_its_time_limit_is_cancelled(lab: Lab) -> None:
    job = lab.run(lab.job("sleep 1000", nodes=2, limits={"timeout": "PT0.3S"}))
    assert job.status == "Canceled"
    assert job.error is not None
    assert "limits.timeout" in job.error.message
    assert lab.survivors() == ()


def test_what_a_rank_leaves_in_the_background_ends_with_the_job(lab: Lab) -> None:
    job = lab.run(lab.job("(setsid sleep 1000 &) ; echo done"))
    assert job.status == "Completed"
    assert lab.survivors() == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"command": "echo ${{inputs.lr}}", "inputs": {"rate": {"jobInputType": "literal", "value": "1"}}}, "re: rate"),
        ({"command": "x", "environmentId": "azureml://registries/azureml/environments/acpt-pitorch-2.8/labels/x"},
         "acpt-pytorch-*"),
        ({"command": "x", "distribution": {"distributionType": "Ray"}}, "Ray"),
        ({"command": "x", "codeId": "/none"}, "/none"),
        ({"command": "x", "inputs": {"d": {"jobInputType": "uri_folder", "uri": "azureml://datastores/other/paths/p"}}},
         "workspaceblobstore"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused_in_words(lab: Lab, change: dict[str, object], says: str) -> None:
    job = lab.run(lab.job(**change))
    assert job.status == "Failed"
    assert job.error is not None
    assert says in job.error.message
    assert "Traceback" not in (lab.folder("job") / "runner.log").read_text()


def test_python_in_a_job_is_the_environments_own(lab: Lab) -> None:
    lab.run(lab.job("python -c 'import sys; print(sys.prefix)'"))
    assert "/images/base-" in lab.log("job")
    assert sys.prefix not in lab.log("job")


def test_the_curated_environment_is_known() -> None:
    from amlstack.images import standins

    assert standins.resolve(CURATED).name == "pytorch"


def test_a_cancel_interrupts_the_building_of_the_environment(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    from amlstack.images import building, standins

    place = building.folder(standins.resolve("openmpi5.0-ubuntu24.04"))
    place.parent.mkdir(parents=True)
    job = lab.job("true")

    async def go() -> None:
        async def cancel() -> None:
            while not any("another build" in step.detail for step in lab.store.history.of("job", job)):
                assert lab.store.jobs[job].active, lab.store.jobs[job].error
                await asyncio.sleep(0.01)
            lab.store.jobs.request_cancel(job)
            lab.wake.set()

        cancelling = asyncio.create_task(cancel())
        await lab.drive(lambda: lab.ended(job))
        await cancelling

    with (place.parent / f".{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a build that never ends
        asyncio.run(go())
    assert lab.store.jobs[job].status == "Canceled"
    assert lab.steps(job)[-3:] == ["Preparing", "CancelRequested", "Canceled"]


def test_a_job_may_be_cancelled_before_its_runner_listens(lab: Lab) -> None:
    job = lab.job("sleep 1000")

    def cancel_at_once() -> bool:
        if job in lab.watched and not lab.store.jobs[job].cancel_requested:  # its runner was started this very moment
            lab.store.jobs.request_cancel(job)
            lab.wake.set()  # as the server does: that runner may have looked for a request already
        return lab.ended(job)

    asyncio.run(lab.drive(cancel_at_once))
    assert lab.store.jobs[job].status == "Canceled"
    assert lab.survivors() == ()


def test_a_node_is_lost_with_its_outputs_but_a_mounted_output_stays(lab: Lab) -> None:
    pipe, written = lab.pipe(), lab.pipe()
    command = (
        "echo $NODE_RANK > outputs/own$NODE_RANK; echo $NODE_RANK > ${{outputs.kept}}/$NODE_RANK; "
        f"[ $NODE_RANK = 0 ] && echo yes > {written} && exec sleep 1000; "
        f"read word < {written}; echo $PPID > {pipe}; sleep 1000"
    )
    kept = {"kept": {"jobOutputType": "uri_folder"}}
    job = lab.job(command, nodes=2, outputs=kept)
    asyncio.run(lab.during(job, pipe=pipe, act=lambda: os.kill(int(lab.written), signal.SIGKILL)))
    error = lab.store.jobs[job].error
    assert error is not None
    assert error.message.startswith("Node 1 was lost")
    assert [path.name for path in (lab.folder(job) / "outputs").iterdir()] == ["own0"]
    stored = {blob.name.rsplit("/", 1)[-1] for blob in lab.store.blobs.under("account", "container", "azureml/")}
    assert stored == {"0", "1"}
