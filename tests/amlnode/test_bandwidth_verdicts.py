from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amlnode.bandwidth import verdict
from amlnode.bandwidth.main import chosen, expectation
from amlnode.bandwidth.verdict import Expectation, Network, judge, measurement, network, sizes
from amlnode.rank import NodeError, RankInfo
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Callable

M, G = 1 << 20, 1 << 30


@for_each(
    "given, found",
    [
        ("1M..8M", (M, 2 * M, 4 * M, 8 * M)),
        ("1M..5M", (M, 2 * M, 4 * M)),
        ("64M,1M", (M, 64 * M)),
        ("1M..2M,1G", (M, 2 * M, G)),
        ("10", (8,)),
    ],
)
def test_sizes(given: str, found: tuple[int, ...]) -> None:
    assert sizes(given) == found


@for_each("given", ["", "x", "1M..", "..1M", "2M..1M", "0", "1M,,2M", "1P", "65G", "1e400G"])
def test_sizes_are_refused_when_they_are_wrong(given: str) -> None:
    with pytest.raises(NodeError, match="doubles, 1M,64M lists"):
        sizes(given)


@pytest.mark.parametrize(
    ("ranks", "algbw", "busbw"), [(1, 10.0, 0.0), (2, 10.0, 10.0), (8, 10.0, 17.5), (16, 10.0, 18.75)]
)
def test_bus_bandwidth_is_comparable_to_the_hardwares(ranks: int, algbw: float, busbw: float) -> None:
    found = measurement(10**9, 0.1, ranks)
    assert found.algbw == pytest.approx(algbw)
    assert found.busbw == pytest.approx(busbw)


LOGS = [
    (["vm:1 [0] NCCL INFO NET/IB : Using [0]mlx5_ib0:1/IB [1]mlx5_ib1:1/IB", "Using network IB"], "InfiniBand"),
    (["NCCL INFO NET/IB : Using [0]mlx5_an0:1/RoCE [RO]; OOB eth0:10.0.0.4<0>", "Using network IB"], "RoCE"),
    (["NET/IB : No device found.", "NET/Socket : Using [0]eth0", "Using network Socket"], "Socket"),
    ([], ""),
]


@pytest.mark.parametrize(("lines", "name"), LOGS)
def test_network_is_the_one_in_nccls_log(lines: list[str], name: str) -> None:
    assert network(lines).name == name


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("NCCL INFO NET/IB : No device found.", "no InfiniBand device in the container"),
        ("NCCL INFO Failed to open libibverbs.so[.1]", "the image lacks libibverbs"),
        ("NCCL INFO NCCL_IB_DISABLE set by environment to 1.", "NCCL_IB_DISABLE is set"),
        ("NCCL INFO NCCL_IB_DISABLE set by environment to 0.", ""),
    ],
)
def test_reason_is_found_when_the_network_is_no_infiniband(line: str, why: str) -> None:
    assert network([line, "NCCL INFO Using network Socket"]).why == why


A100 = Expectation(least=180.0, infiniband=True)


@for_each("peak, backend, seen, expected, state, message", [
        (187.0, "nccl", Network("InfiniBand"), A100, "good", "187 GB/s of busbw, 180 GB/s expected"),
        (180.0, "nccl", Network("InfiniBand"), A100, "good", ""),
        (179.9, "nccl", Network("InfiniBand"), A100, "bad", "is 99.9% of the 180 GB/s"),
        (90.0, "nccl", Network("InfiniBand"), A100, "bad", "is 50.0% of the 180 GB/s expected"),
        (3.1, "nccl", Network("Socket", "no device"), A100, "bad", "took Socket (no device) where InfiniBand"),
        (300.0, "nccl", Network("RoCE"), A100, "bad", "took RoCE"),
        (187.0, "nccl", Network(), A100, "good", ""),
        (3.1, "nccl", Network("Socket"), Expectation(least=1.0), "good", ""),
        (187.0, "nccl", Network("InfiniBand"), Expectation(infiniband=True), "not judged", "no expectation given"),
        (1.0, "gloo", Network(), A100, "not judged", "gloo on CPUs; 180 GB/s is expected of NCCL"),
        (1.0, "gloo", Network(), Expectation(least=2.0, explicit=True), "bad", "is 50.0%"),
        (3.0, "gloo", Network(), Expectation(least=2.0, explicit=True), "good", ""),
        (9.0, "nccl", Network("Socket"), Expectation(9.0, False, True, True), "not judged", "a rehearsal"),
        (9.0, "nccl", Network(), Expectation(180.0, explicit=True, rehearsal=True), "bad", ""),
])  # fmt: skip
def test_the_verdict(
    *, peak: float, backend: str, seen: Network, expected: Expectation, state: str, message: str
) -> None:
    found = judge(peak, backend=backend, nodes=2, ranks=16, seen=seen, expected=expected)
    assert found.state == state, found
    assert message in found.text


def test_one_rank_is_not_judged() -> None:
    assert judge(0.0, backend="nccl", nodes=1, ranks=1, seen=Network(), expected=A100).state == "not judged"


def test_one_nodes_network_is_not_asked_for() -> None:
    seen = judge(200.0, backend="nccl", nodes=1, ranks=8, seen=Network("Socket"), expected=A100)
    assert seen.state == "good"


def rank(local_rank: int, local_size: int | None) -> RankInfo:
    return RankInfo(local_rank, 8, local_rank, local_size, 0, 2, "127.0.0.1", 1, "pytorch")


@pytest.mark.parametrize(
    ("place", "gpus", "given", "backend"),
    [
        (rank(0, 4), 0, None, "gloo"),
        (rank(3, 4), 4, None, "nccl"),
        (rank(1, None), 2, None, "nccl"),
        (rank(3, 4), 2, "gloo", "gloo"),
    ],
)
def test_the_backend_follows_the_gpus(place: RankInfo, gpus: int, given: str | None, backend: str) -> None:
    assert chosen(place, gpus, given) == backend


@pytest.mark.parametrize(
    ("place", "gpus", "given"), [(rank(0, 4), 2, None), (rank(2, None), 2, None), (rank(0, 1), 0, "nccl")]
)
def test_ranks_without_a_gpu_of_their_own_are_refused(place: RankInfo, gpus: int, given: str | None) -> None:
    with pytest.raises(NodeError, match="--backend gloo"):
        chosen(place, gpus, given)


@pytest.mark.parametrize(
    ("given", "environ", "least", "explicit"),
    [
        (None, {}, None, False),
        (None, {"AMLSTACK_BUSBW_EXPECTED": "180"}, 180.0, False),
        (5.0, {"AMLSTACK_BUSBW_EXPECTED": "180"}, 5.0, True),
    ],
)
def test_what_is_expected(given: float | None, environ: dict[str, str], least: float | None, explicit: bool) -> None:
    found = expectation(given, environ)
    assert (found.least, found.explicit) == (least, explicit)


@for_each("text", ["x", "0", "-1", "inf", "nan"])
def test_expectation_is_refused_when_it_is_no_bandwidth(text: str) -> None:
    with pytest.raises(NodeError):
        expectation(None, {"AMLSTACK_BUSBW_EXPECTED": text})


@given(st.integers(2, 33))
def test_pairs_of_a_round_share_no_node_and_partners_change(count: int) -> None:
    found = verdict.rounds(range(count))
    for pairs in found:
        nodes = [node for pair in pairs for node in pair]
        assert len(nodes) == len(set(nodes))
    every = list(itertools.chain(*found))
    assert len(every) == len(set(every))
    met = {node: sum(node in pair for pair in every) for node in range(count)}
    assert min(met.values()) >= min(verdict.ROUNDS, count - 1)


def tournament(count: int, busbw: Callable[[int, int], float]) -> verdict.SlowNodes:
    """All rounds of a made-up cluster."""
    measured = {}
    for pairs in verdict.rounds(range(count)):
        measured.update({pair: busbw(*pair) for pair in pairs})
    for pairs in verdict.confirm(measured):
        measured.update({pair: busbw(*pair) for pair in pairs})
    return verdict.name(measured, {})


@given(st.integers(3, 24), st.data())
def test_slow_nodes_are_named_among_a_majority_of_good_ones(count: int, data: st.DataObject) -> None:
    bad = data.draw(st.sets(st.integers(0, count - 1), max_size=max(1, count // 3)))
    if count - len(bad) < 2:
        return
    noise = st.floats(0.85, 1.0)
    draws = {pair: data.draw(noise) for pair in itertools.combinations(range(count), 2)}
    found = tournament(count, lambda a, b: draws[a, b] * (20.0 if {a, b} & bad else 187.0))
    assert set(found.slow) == bad, found


def test_a_pair_that_is_slow_with_each_other_alone_is_the_way_between() -> None:
    found = tournament(4, lambda a, b: 20.0 if (a, b) == (1, 2) else 187.0)
    assert found.slow == ()
    assert "Nodes 1 and 2 are slow with each other alone" in found.text


def test_one_quick_pair_makes_no_node_slow() -> None:
    seen = {(0, 1): 500.0, (0, 3): 300.0, (1, 3): 290.0, (0, 2): 0.3, (1, 2): 0.3, (2, 3): 0.3}
    assert verdict.name(seen, {}).slow == (2,)
    assert verdict.confirm(seen) == [[(0, 2)]], "a suspect that has met all is measured once more"


def test_all_alike_is_what_all_share() -> None:
    assert "No node is slower" in tournament(5, lambda a, b: 3.1).text


@pytest.mark.parametrize(
    ("alone", "named", "message"),
    [
        ({0: 228.0, 1: 80.0}, (1,), "node 1 reaches 80 GB/s within itself"),
        ({0: 228.0, 1: 225.0}, (), "Node 0 or 1, or the way between"),
        ({}, (), "Node 0 or 1, or the way between"),
    ],
)
def test_two_nodes_are_compared_by_what_each_reaches_within_itself(
    alone: dict[int, float], named: tuple[int, ...], message: str
) -> None:
    found = verdict.name({(0, 1): 20.0}, alone)
    assert found.slow == named
    assert message in found.text


def test_one_node_has_no_other_to_compare_with() -> None:
    assert verdict.name({}, {}).text == "One node: nothing to compare it with"
