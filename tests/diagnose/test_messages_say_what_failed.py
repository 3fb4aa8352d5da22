"""A message is read to its end: its most exact sentence decides, not its first line."""

from __future__ import annotations

# ruff: noqa: E501
from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from amlstack.diagnose.signatures import by_code, hedged, match
from tests.support.diagnose.log_texts import child_failed, row, steps, traceback, watchdog
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis

NCCL = (
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled system error, NCCL version 2\n"
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\n"
)


def verdict_of(text: str, folder: Path) -> Diagnosis:
    (folder / "out.log").write_text(text)
    return diagnose([folder])


@for_each("prefix", ["", "[rank3]: ", "[1,3]<stderr>:"])
@for_each(
    "last, cause",
    [
        ("socketStartConnect: Connect to 10.0.0.7<52822> failed : No route to host", "network-unreachable"),
        ("Error while creating shared memory segment /dev/shm/nccl-x (size 9637888)", "nccl-shared-memory"),
        ("Call to ibv_reg_mr failed with error Cannot allocate memory", "memlock-limit"),
        ("Call to ibv_reg_mr failed with error Invalid argument", "infiniband-setup"),
    ],
)
def test_the_last_sentence_of_an_exception_decides(prefix: str, last: str, cause: str, tmp_path: Path) -> None:
    verdict = verdict_of(steps(3) + traceback(NCCL + last, prefix=prefix), tmp_path)
    assert (verdict.cause, verdict.text) == (cause, last)


def test_a_message_that_ends_in_a_victims_words_is_a_victims(tmp_path: Path) -> None:
    victim = NCCL + "socketProgress: Connection closed by remote peer node1<4711>"
    verdict = verdict_of(steps(3) + traceback(victim, prefix="[rank3]: "), tmp_path)
    assert (verdict.found, [each.rank for each in verdict.victims]) == (False, [3])


@pytest.mark.parametrize(
    "next_one", ["ERROR:root:CUDA out of memory", "2026-01-01 10:00:00 CUDA out of memory", "=" * 60]
)
def test_a_message_ends_where_another_begins(next_one: str, tmp_path: Path) -> None:
    verdict = verdict_of(steps(3) + traceback("ValueError: x") + f"{next_one}\n" + child_failed(row(1, 1)), tmp_path)
    shown = {verdict.text, *(each.text for each in verdict.events), *(each.text for each in verdict.pointers)}
    assert "ValueError: x" in shown


def test_sentences_of_open_mpi_are_read_over_line_ends(tmp_path: Path) -> None:
    rule = "-" * 74
    text = (
        f"{rule}\nAt least one pair of MPI processes are unable to\nreach each other for MPI communications.\n{rule}\n"
    )
    assert verdict_of(text, tmp_path).cause == "network-unreachable"


@for_each(
    "line, guess",
    [
        ("The process died, possibly because of CUDA out of memory", True),
        ("This may be an uncorrectable ECC error", True),
        ("worker failed: CUDA out of memory or uncorrectable ECC error", True),
        ("The worker ended. There are some potential root causes. (1) A signal. (2) SIGSEGV or other errors.", True),
        ("slurmstepd: error: Detected 1 oom-kill event(s). Some processes may have been killed by the handler.", False),
        ("Mon May 1 10:00:00 2023 CUDA out of memory", False),
        ("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB", False),
    ],
)
def test_a_guess_is_no_evidence(line: str, guess: bool) -> None:
    found = match(line)
    assert found is not None
    assert hedged(line, found[0]) is guess


def test_a_guess_is_no_cause_even_near_an_end(tmp_path: Path) -> None:
    text = steps(3) + "The process died, possibly because of CUDA out of memory\n" + child_failed(row(1, 1))
    assert verdict_of(text, tmp_path).cause is None


def test_a_number_that_a_call_failed_with_decides() -> None:
    shown = {
        "unable to open shared memory object </torch_1> in read-write mode: Too many open files (24)": "too-many-open-files",
        "unable to open shared memory object </torch_1>: No space left on device (28)": "shared-memory-exhausted",
        "OSError: [Errno 122] Disk quota exceeded": "disk-full",
    }
    for line, code in shown.items():
        assert match(line) is not None, line
        assert match(line)[0] is by_code(code), line  # type: ignore[index]


def test_a_traceback_cut_short_is_a_failure_of_its_rank(tmp_path: Path) -> None:
    cut = "".join(traceback("ValueError: x", prefix="[rank3]: ").splitlines(keepends=True)[:-1])
    verdict = verdict_of(steps(3) + cut, tmp_path)
    assert (verdict.cause, verdict.rank) == ("traceback-cut-short", 3)
    assert verdict.source is not None
    assert verdict.source.function == "main"


@for_each("prefix", ["", "(Engine pid=7) ERROR 11-02 10:00:01 [core.py:70] "])
def test_of_a_traceback_without_its_end_the_code_that_raises_is_shown(prefix: str, tmp_path: Path) -> None:
    def cut(raises: str) -> str:
        frames = ('  File "/env/lib/python3.13/site-packages/serve/cache.py", line 9, in fit', *raises.splitlines())
        return "".join(f"{prefix}{line}\n" for line in frames)

    verdict = verdict_of(cut('    raise ValueError("No room for "\n    ~~~~~~~~~\n         "one block.")'), tmp_path)
    assert verdict.cause == "traceback-cut-short"
    assert 'in fit: raise ValueError("No room for " "one block.")' in str(verdict.text)
    starts = cut("    raise ChildFailedError(").replace("serve/cache.py", "torch/distributed/run.py")
    assert not verdict_of(starts, tmp_path).found
    assert str(verdict_of(cut("    self.handle = dlopen(path)"), tmp_path).text).endswith("self.handle = dlopen(path)")


def test_what_an_exception_of_cpp_says_is_shown_with_its_class(tmp_path: Path) -> None:
    thrown = "terminate called after throwing an instance of 'shard::Error'\n  what():  shard 7 holds no rows\n"
    verdict = verdict_of(f"{thrown}Aborted (core dumped)\n", tmp_path)
    assert (verdict.cause, verdict.line) == ("aborted", 1)
    assert str(verdict.text).endswith("'shard::Error' what():  shard 7 holds no rows")


def test_of_a_message_that_quotes_a_traceback_the_exception_is_shown(tmp_path: Path) -> None:
    quoted = "".join(f"    /env/keras/layer{at}.py:{at} call\n        x = self.inner(x)\n" for at in range(40))
    log = traceback("ValueError: in user code:") + f"\n{quoted}\n    ValueError: found ndim=5, expected ndim=4\n\n"
    assert "found ndim=5" in str(verdict_of(log, tmp_path).text)


def test_what_torch_adds_to_each_error_of_cuda_says_nothing(tmp_path: Path) -> None:
    added = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    log = traceback("RuntimeError: CUDA error: operation not permitted when stream is capturing") + added
    assert verdict_of(log, tmp_path).cause == "python-exception"
    assert (
        verdict_of(traceback("RuntimeError: CUDA error: device-side assert triggered"), tmp_path).cause
        == "gpu-illegal-access"
    )


def test_a_store_that_torch_cannot_make_is_no_peer_that_has_gone(tmp_path: Path) -> None:
    said = "torch.distributed.DistStoreError: use_libuv was requested but PyTorch was built without libuv support"
    assert verdict_of(traceback(said), tmp_path).cause == "python-exception"


def test_an_exception_whose_words_stand_below_its_class_or_are_missing_is_named(tmp_path: Path) -> None:
    below = "RuntimeError:\n        An attempt has been made to start a new process before the\n        current one has begun.\n"
    assert verdict_of(below, tmp_path).cause == "main-without-guard"
    assert "no rows" in str(verdict_of("RuntimeError:\n        There are no rows.\n", tmp_path).text)
    cell = "ValueError                                Traceback (most recent call last)\nCell In[3], [line 46](x:?line=46)\n"
    assert verdict_of(cell, tmp_path).text == "ValueError"


def test_what_stands_above_a_shells_word_of_an_abort_is_shown_with_it(tmp_path: Path) -> None:
    said = "rocBLAS error: Cannot read the library for gfx1032"
    verdict = verdict_of(f"step 1\n{said}\nAborted (core dumped)\n", tmp_path)
    assert (verdict.cause, verdict.text) == ("aborted", f"{said} (Aborted (core dumped))")
    assert verdict_of("step 1\nsaved\nAborted (core dumped)\n", tmp_path).text == "Aborted (core dumped)"


def test_a_traceback_cut_short_beside_victims_is_not_blamed(tmp_path: Path) -> None:
    cut = "".join(traceback("ValueError: x", prefix="[rank3]: ").splitlines(keepends=True)[:-1])
    assert not verdict_of(watchdog(0) + watchdog(1) + cut, tmp_path).found


def test_a_prefix_before_a_traceback_names_the_rank_of_other_lines(tmp_path: Path) -> None:
    learned = "[2026-01-01 10:00:0{rank}][trainer][rank{rank}][pid:71{rank}] "
    text = (
        traceback("RuntimeError: x", prefix=learned.format(rank=2))
        + learned.format(rank=5)
        + "Bus error (core dumped)\n"
    )
    verdict = verdict_of(text, tmp_path)
    assert {(event.code, event.rank) for event in verdict.events} | {
        (each.code, each.rank) for each in verdict.pointers
    } >= {("shared-memory-exhausted", 5)}


def test_a_program_that_reports_a_notebooks_exception_is_not_its_cause(tmp_path: Path) -> None:
    rule = "-" * 75
    cell = f"{rule}\nNameError{'Traceback (most recent call last)':>66}\nCell In[4], line 5\n----> 5 load(path)\n\n"
    log = traceback("runner.CellError: ") + rule + f'\nException encountered at "In [4]":\n{cell}'
    assert (
        verdict_of(log + "NameError: name 'load' is not defined\n", tmp_path).text
        == "NameError: name 'load' is not defined"
    )
    assert str(verdict_of(steps(9) + cell, tmp_path).text).startswith("NameError: at ")  # its end was cut off


def test_an_exception_that_another_ranks_frame_tore_apart_is_put_together(tmp_path: Path) -> None:
    frame = '  File "/app/layers.py", line 976, in forward\n'
    log = f"AssertionError{frame}\n: size (1) is no multiple of 2\n    return self.forward(x)\n{frame}"
    for begin in ("", f"Traceback (most recent call last):\n{frame}"):
        assert verdict_of(begin + log, tmp_path).text == "AssertionError: size (1) is no multiple of 2"
