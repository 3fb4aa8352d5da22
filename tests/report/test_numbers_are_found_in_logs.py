from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from amlstack.report import logs
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


@for_each(
    "line, name, axis, point",
    [
        ("epoch 3/8 loss 0.1319 (0.22 s)", "loss", "epoch", (3, 0.1319)),
        ("step=12 loss=1.5e-3", "loss", "step", (12, 0.0015)),
        ("{'loss': '1.847', 'epoch': '0.5'}", "loss", "epoch", (0.5, 1.847)),
        ('{"train/loss": 0.25, "global_step": 40}', "train/loss", "step", (40, 0.25)),
        ("2026-01-01 10:00:00,1 INFO Epoch [2] Iter [20/100]: loss: 0.5, lr: 1e-4", "loss", "iter", (20, 0.5)),
        ("Epoch 1 | val_loss: .75", "val_loss", "epoch", (1, 0.75)),
        ("[rank 0]: iteration 7: Loss: 2", "Loss", "iteration", (7, 2)),
        ("9/10 [==>.] - ETA: 0s - loss: 0.69 - accuracy: 0.51", "loss", "print", (0, 0.69)),
        ("9/10 [==>.] - ETA: 0s - loss: 0.69 - accuracy: 0.51", "accuracy", "print", (0, 0.51)),
        ("loss: tensor(0.125, device='cuda:0')", "loss", "print", (0, 0.125)),
        ("step 1 perplexity 20.5", "perplexity", "step", (1, 20.5)),
    ],
)
def test_what_trainers_print_is_a_number(line: str, name: str, axis: str, point: tuple[float, float]) -> None:
    found = {each.name: each for each in logs.from_lines([line.encode()], "a log")}
    assert (found[name].axis, found[name].points) == (axis, (point,))


@for_each(
    "line",
    [
        "the loss did not fall: 0.3 to 0.2",
        "using loss scale 65536",
        "loss.py:12 imported",
        "load /data/loss 3 files",
        "cross_entropy_loss(x)",
        "loss is 1.2M parameters away",
        "accuracy of 5 runs",
    ],
)
def test_line_that_only_mentions_a_loss_has_no_number(line: str) -> None:
    assert logs.from_lines([line.encode()], "a log") == ()


def test_lines_of_another_form_do_not_bend_the_curve() -> None:
    lines = [f"epoch {each}/8 loss {1 / each:.3f}" for each in range(1, 9)] + ["done: loss 1.000 to 0.125"]
    (found,) = logs.from_lines([line.encode() for line in lines], "a log")
    assert [x for x, _ in found.points] == list(range(1, 9))
    assert found.points[-1] == (8, 0.125)


def test_counters_that_begin_anew_are_no_axis() -> None:
    lines = [f"epoch {epoch} batch {batch} loss 1" for epoch in range(2) for batch in range(50)]
    (found,) = logs.from_lines([line.encode() for line in lines], "a log")
    assert found.axis == "print"
    assert [x for x, _ in found.points] == list(range(100))


def test_a_log_of_several_ranks_gives_one_rank_s_numbers(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"[rank{rank}]: step {step} loss {rank + step}\n" for step in range(3) for rank in (1, 0)))
    (found,) = logs.from_log(log, "log", 0)
    assert list(found.points) == [(0, 0), (1, 1), (2, 2)]
    assert found.source == "lines of log by rank 0"


def test_progress_bars_return_to_the_margin(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"\r%d%%|##  | step %d loss=%d" % (each, each, each) for each in range(5)) + b"\n")
    (found,) = logs.from_log(log, "log")
    assert found.points == tuple((each, each) for each in range(5))


def test_a_long_training_keeps_its_shape_in_few_points() -> None:
    (found,) = logs.from_lines((f"step {each} loss {each * 2}".encode() for each in range(4_000)), "a log")
    assert len(found.points) <= logs.MOST_POINTS + 2
    assert found.points[0] == (0.0, 0.0)
    assert found.points[-1] == (3_999.0, 7_998.0)
    assert all(y == 2 * x for x, y in found.points)


def test_not_a_number_stays_one() -> None:
    (found,) = logs.from_lines([b"step 1 loss 2.0", b"step 2 loss nan", b"step 3 loss inf"], "a log")
    assert math.isnan(found.points[1][1])
    assert found.points[2] == (3, math.inf)


def test_what_a_script_left_as_json_is_read() -> None:
    data = json.loads('{"loss": 0.25, "losses": [3, 1.5], "world_size": 4, "name": "x", "flags": [true], "none": null}')
    found, plain = logs.from_metrics(data, "outputs/metrics.json")
    assert [(each.name, each.points, each.axis) for each in found] == [("losses", ((0, 3.0), (1, 1.5)), "entry")]
    assert plain == (("loss", "0.25"), ("world_size", "4"), ("name", "x"))
    assert logs.from_metrics([1, 2], "x") == ((), ())


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_any_bytes_are_read(lines: list[bytes]) -> None:
    for each in logs.from_lines([b"loss " + line for line in lines], "a log"):
        assert each.points
