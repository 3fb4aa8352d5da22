"""Dumps of torch's flight recorder: who waits for whom, in collectives and for messages."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.diagnose import diagnose, flight_recorder, read
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def dump(last: int, pending: int | None, *, group: str = "0", members: str = "[0, 1, 2, 3]") -> dict[str, Any]:
    """As torch writes it: the last collectives of one group, those from ``pending`` on without an end."""
    entries = [
        {
            "process_group": (group, "default_pg"),
            "collective_seq_id": number,
            "profiling_name": "nccl:all_reduce",
            "state": "scheduled" if pending is not None and number >= pending else "completed",
            "retired": pending is None or number < pending,
            "is_p2p": False,
        }
        for number in range(max(1, last - 9), last + 1)
    ]
    return {"version": "2.9", "pg_config": {group: {"name": group, "desc": "g", "ranks": members}}, "entries": entries}


def write(folder: Path, dumps: dict[int, dict[str, Any]], *, as_json: bool) -> None:
    for rank, data in dumps.items():
        if as_json:
            (folder / f"nccl_trace_rank_{rank}.json").write_text(json.dumps(data))
        else:
            (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(data, protocol=2))


@for_each("as_json", [False, True])
@for_each(
    "late, ranks",
    [
        ({2: dump(40, None)}, [2]),  # it never enqueued number 41
        ({2: dump(44, 39)}, [2]),  # it is still in number 39, which the others have left
        ({1: dump(40, None), 2: dump(40, None)}, [1, 2]),
    ],
)
def test_the_ranks_that_the_others_wait_for_are_named(
    late: dict[int, dict[str, Any]], ranks: list[int], as_json: bool, tmp_path: Path
) -> None:
    write(tmp_path, {rank: late.get(rank, dump(44, 41)) for rank in range(4)}, as_json=as_json)
    verdict = diagnose([tmp_path])
    assert verdict.cause == "rank-did-not-join"
    assert verdict.rank == (ranks[0] if len(ranks) == 1 else None)
    assert verdict.rank is not None or [each.rank for each in verdict.pointers] == ranks
    assert "nccl:all_reduce number 41" in (verdict.text or "")


def test_a_rank_without_a_dump_is_missing(tmp_path: Path) -> None:
    write(tmp_path, {rank: dump(44, 41) for rank in range(3)}, as_json=False)
    assert diagnose([tmp_path]).rank == 3


def test_who_waits_for_another_group_is_not_to_blame(tmp_path: Path) -> None:
    """Rank 1 did not come to the group of 0 and 1, as it waits for rank 2 in another one."""
    first = {"members": "[0, 1]", "group": "5"}
    second = {"members": "[1, 2]", "group": "6"}
    both = dump(40, None, **first)
    other = dump(9, 9, **second)
    both["pg_config"] |= other["pg_config"]
    both["entries"] += other["entries"]
    write(tmp_path, {0: dump(41, 41, **first), 1: both, 2: dump(8, None, **second)}, as_json=False)
    verdict = diagnose([tmp_path])
    assert (verdict.cause, verdict.rank) == ("rank-did-not-join", 2)


@pytest.mark.parametrize("pending", [None, 41])
def test_ranks_that_came_equally_far_name_nobody(pending: int | None, tmp_path: Path) -> None:
    write(tmp_path, {rank: dump(44, pending) for rank in range(4)}, as_json=False)
    assert not diagnose([tmp_path]).found


def exchange(
    rank: int, waits: Mapping[int, str], *, members: str = "[0, 4, 8, 12]", state: str = "scheduled"
) -> dict[str, Any]:
    """As torch writes it: point-to-points of one rank in a group, the ends by their places in it."""
    places = [int(each) for each in members.strip("[]").split(",")]
    own = places.index(rank)
    entries = [
        {
            "process_group": ("7", "PIPELINE"),
            "collective_seq_id": 3,
            "p2p_seq_id": number,
            "profiling_name": f"nccl:{what} {own}{'->' if what == 'send' else '<-'}{places.index(peer)}",
            "state": state,
            "retired": state == "completed",
            "is_p2p": True,
        }
        for number, (peer, what) in enumerate(waits.items())
    ]
    return {
        "version": "2.9",
        "pg_config": {"7": {"name": "7", "desc": "PIPELINE", "ranks": members}},
        "entries": entries,
    }


@for_each(
    "waits, rank",
    [
        ({0: {4: "send"}, 4: {8: "send"}, 8: {12: "send"}, 12: {}}, 12),  # each waits for the next stage
        ({0: {4: "recv"}, 4: {8: "recv"}, 8: {}, 12: {8: "recv"}}, 8),
        ({0: {4: "recv"}, 4: {8: "recv"}, 8: {12: "recv"}}, 12),  # it left no dump
        ({0: {4: "send"}, 4: {0: "recv"}, 8: {12: "recv"}, 12: {8: "send"}}, None),  # both ends came
        ({0: {4: "recv"}, 4: {0: "recv"}}, None),  # each waits for the other
    ],
)
def test_who_waits_for_a_message_names_the_rank_that_waits_for_nobody(
    waits: dict[int, dict[int, str]], rank: int | None, tmp_path: Path
) -> None:
    write(tmp_path, {each: exchange(each, peers) for each, peers in waits.items()}, as_json=False)
    verdict = diagnose([tmp_path])
    assert (verdict.found, verdict.rank) == (rank is not None, rank)
    assert rank is None or "in the group PIPELINE" in (verdict.text or "")


def test_of_messages_issued_as_one_that_one_knows_whether_they_ended(tmp_path: Path) -> None:
    single = exchange(0, {4: "recv"})
    one = {**single["entries"][0], "profiling_name": "nccl:coalesced", "state": "completed", "retired": True}
    write(tmp_path, {0: {**single, "entries": [*single["entries"], one]}, 4: exchange(4, {})}, as_json=False)
    assert not diagnose([tmp_path]).found


def test_a_receive_posted_ahead_does_not_hide_who_left_a_collective(tmp_path: Path) -> None:
    """Rank 2 never came to the collective; it had asked for a message of rank 1 before, which waits for it there."""
    ahead = exchange(2, {1: "recv"}, members="[0, 1, 2, 3]")
    late = dump(40, None)
    late = {
        **late,
        "pg_config": {**late["pg_config"], **ahead["pg_config"]},
        "entries": [*late["entries"], *ahead["entries"]],
    }
    write(tmp_path, {rank: late if rank == 2 else dump(44, 41) for rank in range(4)}, as_json=False)
    assert diagnose([tmp_path]).rank == 2


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("this must never be called",)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_dump_that_would_call_something_is_not_read(
    protocol: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = pickle.dumps({"pg_config": {}, "entries": [Harmful()]}, protocol=protocol)
    assert flight_recorder.looks_like_one(content)
    assert flight_recorder.parse("nccl_trace_rank_0", content) is None
    (tmp_path / "nccl_trace_rank_0").write_bytes(content)
    read([tmp_path])
    assert "never" not in capsys.readouterr().out
