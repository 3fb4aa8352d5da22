"""Lines of a job's logs that a rehearsal prints, each with the rank that wrote it."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.logs.files import Logs, ProcessKind
from amlstack.sandbox.files.environments import CodeCopies

if TYPE_CHECKING:
    from pathlib import Path

AGENTS = {
    "00": ["W1 OMP_NUM_THREADS is set", "[rank 1]: one", "[rank 0]: zero", "[rank 1]: [rank1]: ValueError: no", "done"],
    "01": ["[rank 3]: three", "[rank 2]: two"],
}


def pytorch(processes: int) -> dict[str, Any]:
    return {"distribution": {"distributionType": "PyTorch", "processCountPerInstance": processes}}


def printed(folder: Path, logs: dict[str, list[str]], only: int | None = None, processes: int = 1) -> list[str]:
    return follow(folder, logs, list(logs), Logs(folder, ProcessKind.of(pytorch(processes)), only=only))


def follow(folder: Path, logs: dict[str, list[str]], order: list[str], following: Logs) -> list[str]:
    """The output when the logs appear one after the other, with a look after each."""
    (folder / "user_logs").mkdir(exist_ok=True)
    found = []
    for name in order:
        (folder / "user_logs" / f"std_log_process_{name}.txt").write_text("\n".join(logs[name]))
        found += list(following.new())
    found += list(following.new(last=True))
    return [f"[{who}] {text}" for who, text in found]


def test_lines_of_an_agent_name_its_node_and_those_of_its_ranks_their_rank_once(tmp_path: Path) -> None:
    assert printed(tmp_path, AGENTS) == [
        "[node 0] W1 OMP_NUM_THREADS is set",
        "[rank 1] one",
        "[rank 0] zero",
        "[rank 1] ValueError: no",
        "[rank 3] three",
        "[node 0] done",
        "[rank 2] two",
    ]


def test_a_process_of_many_on_a_node_is_a_rank(tmp_path: Path) -> None:
    logs = {"02": ["step 1", "[rank2]: ValueError: no"]}
    assert printed(tmp_path, logs, processes=2) == ["[rank 2] step 1", "[rank 2] ValueError: no"]


def test_a_task_of_tensorflow_is_a_process() -> None:
    assert ProcessKind.of({"distribution": {"distributionType": "TensorFlow", "workerCount": 2}}).word == "process"
    assert ProcessKind.of({}).word == "node"


@pytest.mark.parametrize("order", list(permutations(("00", "01"))))
def test_one_rank_is_printed_whichever_log_appears_first(tmp_path: Path, order: tuple[str, ...]) -> None:
    for rank, lines in ((0, ["[node 0] W1 OMP_NUM_THREADS is set", "[rank 0] zero"]), (2, ["[rank 2] two"])):
        folder = tmp_path / f"{rank}"
        folder.mkdir()
        following = Logs(folder, ProcessKind.of(pytorch(1)), only=rank)
        assert follow(folder, AGENTS, list(order), following) == lines


def test_of_processes_that_are_ranks_one_log_is_printed_to_its_end(tmp_path: Path) -> None:
    logs = {"01": ["b", "c"], "00": ["a", "d", "e"]}
    assert printed(tmp_path, logs, only=0, processes=2) == ["[rank 0] a", "[rank 0] d", "[rank 0] e"]
    assert printed(tmp_path, logs, only=1, processes=2) == ["[rank 1] b", "[rank 1] c"]


def test_paths_of_copies_become_those_of_the_authors_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, job = tmp_path / "src", tmp_path / "jobs" / "crash-1"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "model.py").write_text("")
    monkeypatch.chdir(tmp_path)
    copies = CodeCopies(job, (root,))
    line = '  File "{}/nodes/12/wd/inner/model.py", line 3, in <module>'
    assert copies.authors(line.format(job)) == '  File "src/inner/model.py", line 3, in <module>'
    for other in (f"{job}/nodes/0/wd/amlnode/ranks.py:4", f"{job}/nodes/0/inputs/a", "/elsewhere/nodes/1/wd/x.py"):
        assert copies.authors(other) == other
