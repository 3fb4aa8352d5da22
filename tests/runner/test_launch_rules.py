from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.images import standins
from amlstack.sandbox import contract
from amlstack.sandbox.processes import free_ports
from amlstack.sandbox.runner import finish
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

TORCHRUN = "torchrun --nnodes 2 --nproc_per_node 4 --node_rank $NODE_RANK train.py"


def read(**changes: Any) -> contract.Spec:
    body = {"jobType": "Command", "command": "python train.py", "environmentId": "e", **changes}
    return contract.read(body)


def pytorch(nodes: int, processes: int | None, **changes: Any) -> contract.Spec:
    distribution = {"distributionType": "PyTorch", "processCountPerInstance": processes}
    return read(resources={"instanceCount": nodes}, distribution=distribution, **changes)


@pytest.mark.parametrize(
    ("nodes", "processes", "expected"),
    [
        (1, 1, [(0, 0, 0)]),
        (2, None, [(0, 0, 0), (1, 1, 0)]),
        (2, 2, [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)]),
    ],
)
def test_ranks_fill_one_node_after_the_other(
    nodes: int, processes: int | None, expected: list[tuple[int, int, int]]
) -> None:
    found = contract.places(pytorch(nodes, processes))
    assert [(place.rank, place.node, place.local_rank) for place in found] == expected


NETWORK = contract.NodeNetwork(("127.0.0.1", "127.0.0.2"), (11, 12, 13), (1, 1), ((), ()))


def test_a_job_without_distribution_has_no_rank_variables() -> None:
    plain = read(resources={"instanceCount": 2})
    assert [contract.rank_variables(plain, place, NETWORK) for place in contract.places(plain)] == [{}, {}]


@pytest.mark.parametrize(
    ("job", "cores", "expected"),
    [
        (pytorch(2, 2), 2, 1),
        (pytorch(2, 2), 16, 4),
        (pytorch(1, None), 6, 6),
        (pytorch(2, 1, command=TORCHRUN), 16, 2),
    ],
)
def test_threads_of_all_ranks_fit_the_machine(job: contract.Spec, cores: int, expected: int) -> None:
    assert contract.threads(job, 0, contract.NodeNetwork.here(job, cores, 0)) == expected


@pytest.mark.parametrize(
    ("job", "available", "expected"),
    [
        (pytorch(2, 2), 0, ["", ""]),
        (pytorch(2, 2), 3, ["", ""]),
        (pytorch(2, 2), 4, ["0,1", "2,3"]),
        (pytorch(2, 1, command=TORCHRUN), 8, ["0,1,2,3", "4,5,6,7"]),
    ],
)
def test_a_node_gets_gpus_only_when_every_rank_has_one(job: contract.Spec, available: int, expected: list[str]) -> None:
    network = contract.NodeNetwork.here(job, 2, available)
    assert [contract.gpus(job, node, network) for node in (0, 1)] == expected


@for_each("text, expected", [("PT15M", 900), ("P1DT1H", 90000), ("PT0.5S", 0.5), ("pt2m3s", 123), ("P7D", 604800)])
def test_durations(text: str, expected: float) -> None:
    assert contract.seconds(text) == expected


@for_each("text", ["", "P", "PT", "15", "PT15", "1h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(contract.RefusedError, match="ISO-8601"):
        contract.seconds(text)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("run ${{inputs.lr}} ${{ outputs.model }}", "run 0.1 /out"),
        ("run $RANK ${HOME} $(date)", "run $RANK ${HOME} $(date)"),
        ("run $[[--lr ${{inputs.lr}}]] $[[--x ${{inputs.x}}]]", "run --lr 0.1 "),
        ("run ${{inputs.trap}}", "run ${{inputs.lr}}"),
    ],
)
def test_references_are_put_in_as_they_are(command: str, expected: str) -> None:
    inputs = {"lr": "0.1", "trap": "${{inputs.lr}}"}
    assert contract.resolve(command, inputs, {"model": "/out"}) == expected


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("${{inputs.rat}}", "inputs are: rate. Did you mean `rate`?"),
        ("${{outputs.x}}", "outputs are: none"),
        ("${{parent.x}}", "only inputs and outputs"),
        ("${{inputs}}", "neither"),
    ],
)
def test_a_reference_to_nothing_is_refused_with_what_there_is(command: str, says: str) -> None:
    with pytest.raises(contract.RefusedError, match=says):
        contract.resolve(command, {"rate": "1"}, {})


TABLE = """[rank 2]:Traceback
train.py FAILED
Failures:
[1]:
  time      : 2026-01-01_10:00:01
  host      : n
  rank      : 2 (local_rank: 0)
  exitcode  : -9 (pid: 11)
  error_file: <N/A>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-01-01_10:00:00
  host      : n
  rank      : 3 (local_rank: 1)
  exitcode  : 1 (pid: 12)
  error_file: <N/A>
"""


def test_torchruns_table_names_the_first_failure_first() -> None:
    assert contract.failures(TABLE) == (contract.Failed(3, 1, 1), contract.Failed(2, 0, -9))
    assert contract.failures("no table here") == ()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (TORCHRUN, 4),
        ("torchrun --nproc-per-node=2 a.py", 2),
        ("torchrun --nproc_per_node gpu a.py", None),
        ("python a.py", None),
    ],
)
def test_processes_per_node_of_torchrun(command: str, expected: int | None) -> None:
    assert contract.processes_per_node(command) == expected


def end(rank: int, code: int = 1, at: float = 0.0, words: str = "", *, stopped: bool = False) -> finish.End:
    return finish.End(rank, rank // 2, rank % 2, code, at, f"user_logs/{rank}.txt", words, stopped)


@for_each(
    "ends, culprit",
    [
        ([end(0, at=2), end(3, at=1)], 3),
        ([end(0, at=1, words="RuntimeError: Connection closed by peer [127.0.0.1]:1"), end(3, at=2)], 3),
        ([end(0, at=1, words="Horovod has been shut down"), end(1, at=3, words="ValueError: x")], 1),
        ([end(2, code=-15, at=1, stopped=True), end(1, code=-9, at=2)], 1),
        ([end(0, at=1, words="BrokenPipeError: [Errno 32] Broken pipe")], 0),
    ],
)
def test_the_culprit_is_the_first_that_is_no_victim(ends: list[finish.End], culprit: int) -> None:
    found = finish.first(ends)
    assert found is not None
    assert found.rank == culprit


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (end(3, 1, words="Traceback\n  x\nmy.mod.ShardError: no 7\n"), "exited with code 1: my.mod.ShardError: no 7."),
        (end(3, 1, words="[rank 3]:ValueError: bad\n[rank 3]:[W] warning\n"), "exited with code 1: ValueError: bad."),
        (end(3, 2, words="usage: train.py"), "exited with code 2."),
        (end(3, -11), "was killed by SIGSEGV."),
    ],
)
def test_the_sentence_says_how_and_why(ended: finish.End, expected: str) -> None:
    messages = finish.sentence(ended, 4)
    assert messages.startswith("Execution failed: rank 3 of 4 (node 1, local rank 1) ")
    assert expected in messages
    assert messages.endswith("Its log: user_logs/3.txt")


@for_each(
    "reference, name",
    [
        ("azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/5", "acpt-pytorch-2.8-cuda12.6"),
        ("azureml://registries/azureml/environments/acpt-x/labels/latest", "acpt-x"),
        ("azureml:AzureML-acpt-x@latest", "acpt-x"),
        ("azureml:acpt-x:7", "acpt-x"),
        ("mcr.microsoft.com/azureml/curated/acpt-x:7", "acpt-x"),
        ("mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04@sha256:ab", "openmpi5.0-ubuntu24.04"),
        ("/subscriptions/s/x/workspaces/w/environments/mine/versions/1", "mine"),
    ],
)
def test_the_name_in_an_environments_reference(reference: str, name: str) -> None:
    assert standins.image_name(reference) == name


def test_every_stand_in_is_pinned() -> None:
    for standin in standins.all_standins():
        assert all("==" in requirement for requirement in standin.requirements), standin.name
        assert standin.names
        assert standin.differs


def test_a_log_is_read_from_its_end(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a" * 100 + "end")
    assert finish.tail(tmp_path / "log", 3) == "end"
    assert finish.tail(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("", [2, 3]),
        ("noise\n[rank 1]: hello\n[rank 0]: hello\n", [0, 1]),
        ("rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 12)\n", [0, 1]),
    ],
)
def test_a_node_has_the_ranks_that_its_rendezvous_gave_it(tmp_path: Path, log: str, expected: list[int]) -> None:
    logs, keep = tmp_path / "torchrun/process_01", tmp_path / "kept"
    keep.mkdir()
    for local in (0, 1):
        left = logs / "none_x/attempt_0" / str(local)
        left.mkdir(parents=True)
        (left / "stdout.log").write_text(f"local {local}")
        (left / "stderr.log").write_text("")
    workers = contract.collect(logs, 1, keep, log)
    assert [worker.rank for worker in workers] == expected
    assert (keep / f"rank_{expected[1]:02d}_stdout.txt").read_text() == "local 1"
    assert not logs.exists()


def test_of_a_restarted_group_the_last_attempt_is_kept_apart(tmp_path: Path) -> None:
    logs, keep = tmp_path / "process_00", tmp_path / "kept"
    keep.mkdir()
    for attempt in (0, 1):
        left = logs / f"x/attempt_{attempt}/0"
        left.mkdir(parents=True)
        (left / "stdout.log").write_text(f"attempt {attempt}")
        os.utime(left.parent, (attempt, attempt))
    contract.collect(logs, 0, keep, "")
    assert (keep / "rank_00_stdout.txt").read_text() == "attempt 1"
    assert (logs / "x/attempt_0/0/stdout.log").read_text() == "attempt 0"


def tensorflow(nodes: int, workers: int | None, servers: int) -> contract.Spec:
    distribution = {"distributionType": "TensorFlow", "workerCount": workers, "parameterServerCount": servers}
    return read(resources={"instanceCount": nodes}, distribution=distribution)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (tensorflow(2, None, 0), [(0, 0, 0, "worker", 0), (1, 1, 0, "worker", 1)]),
        (tensorflow(2, 2, 1), [(0, 0, 0, "worker", 0), (1, 1, 0, "worker", 1), (2, 0, 1, "ps", 0)]),
        (
            tensorflow(2, 3, 2),
            [
                *((0, 0, 0, "worker", 0), (1, 0, 1, "worker", 1), (2, 1, 0, "worker", 2)),
                *((3, 0, 2, "ps", 0), (4, 1, 1, "ps", 1)),
            ],
        ),
    ],
)
def test_tensorflows_tasks_are_spread_over_the_nodes(
    job: contract.Spec, expected: list[tuple[int, int, int, str, int]]
) -> None:
    found = contract.places(job)
    assert [(place.rank, place.node, place.local_rank, place.task, place.index) for place in found] == expected
    assert job.ranks == len(expected)


def test_tf_config_names_every_task_and_the_processs_own() -> None:
    job = tensorflow(2, 2, 1)
    found = [contract.rank_variables(job, place, NETWORK) for place in contract.places(job)]
    assert [list(variables) for variables in found] == [["TF_CONFIG"]] * 3
    configs = [json.loads(variables["TF_CONFIG"]) for variables in found]
    cluster = {"worker": ["127.0.0.1:11", "127.0.0.2:12"], "ps": ["127.0.0.1:13"]}
    tasks = [{"type": "worker", "index": 0}, {"type": "worker", "index": 1}, {"type": "ps", "index": 0}]
    assert configs == [{"cluster": cluster, "task": task, "environment": "cloud"} for task in tasks]


def test_a_job_with_servers_is_over_with_its_workers() -> None:
    assert contract.needed(tensorflow(2, 2, 1)) == {0, 1}
    assert contract.needed(tensorflow(2, 2, 0)) == frozenset()


def test_ports_are_as_many_as_asked_for() -> None:
    assert len(set(free_ports(20))) == 20
