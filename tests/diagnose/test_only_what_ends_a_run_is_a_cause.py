"""A line that reads like an error is a cause only where something ended, and near that end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from amlstack.diagnose.reading.collector import MOST_OF_ONE
from amlstack.diagnose.reading.scanner import scan
from tests.support.diagnose.log_texts import CLOSED, LIB, child_failed, row, steps, traceback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis

HARMLESS = [
    "run.sh: line 13: sudo: command not found",
    "slurmstepd: error: _is_a_lwp: open() /proc/89925/status failed: No such file or directory",
    "[node1:59487] pml_ucx.c:226 Error: UCP worker does not support MPI_THREAD_MULTIPLE",
    "node1:1493:1797 [0] misc/ibvwrap.cc:212 NCCL WARN Call to ibv_open_device failed",
    "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
    "loss is nan",
    "ssh: connect to host node2 port 22: Connection timed out",
    "BrokenPipeError: [Errno 32] Broken pipe",
]


def verdict_of(text: str, folder: Path, name: str = "out.log") -> Diagnosis:
    (folder / name).write_text(text)
    return diagnose([folder])


GOES_ON = [
    (traceback("OSError: no shard"), "round=3 mae=0.12\nround=4 mae=0.11\n", "*** Experiment Success ***"),
    (traceback("OSError: no shard"), "", "INFO:     Finished server process [7]"),
    ("Could not load it: CUDA out of memory. Tried to allocate 2 GiB\n", "An answer.\n" * 5, "Another answer."),
    ("# CUDA out of memory on the small nodes\n", "", "export BATCH"),
    ("[debug] CUDA out of memory\n", "", "served"),
    ("[  31ms] [ERROR] Failed to load resource: the server responded with a status of 404\n", "", "x"),
]
ENDS = [
    (traceback("bdb.BdbQuit"), "bdb.BdbQuit"),
    ("THCudaCheck FAIL\n/bin/luajit: nn.lua:2: cuda runtime error (2) : out of memory\n" + "\t[C]: in x\n" * 9, "(2)"),
    ("run failed: CUDA out of memory\n\nEnd.\n", "CUDA"),
]


def test_what_a_program_says_after_an_error_tells_whether_it_went_on(tmp_path: Path) -> None:
    for error, then, last in GOES_ON:
        verdict = verdict_of(f"{steps(60)}{error}{then}{last}\n", tmp_path)
        assert (verdict.found, verdict.fatal) == (False, False), error
    for error, named in ENDS:
        assert named in str(verdict_of(steps(60) + error, tmp_path).text)


def test_a_program_that_refuses_its_arguments_was_found_whatever_its_script_cannot_start(tmp_path: Path) -> None:
    rest, refused = "bash: --rows: command not found\n", "grid.py: error: unrecognized arguments: x\n"
    for text in (refused + rest, steps(60) + rest + refused):
        assert verdict_of(text, tmp_path).cause == "wrong-arguments"
    assert not verdict_of(steps(60) + rest, tmp_path).found
    assert verdict_of("bash: grid: command not found\n", tmp_path).cause == "missing-launcher"


@pytest.mark.parametrize(
    "line", ['error: The following module(s) are unknown: "grid/3"', "bash: grid: command not found"]
)
def test_what_a_script_could_not_load_ended_nothing_where_its_program_came_forward(line: str, tmp_path: Path) -> None:
    (tmp_path / "job.out").write_text(steps(60))
    assert not verdict_of(f"{line}\n", tmp_path, "job.err").fatal
    (tmp_path / "job.out").write_text("GPU node\n")
    assert verdict_of(f"{line}\n", tmp_path, "job.err").found
    (tmp_path / "job.out").rename(tmp_path / "other.out")
    (tmp_path / "other.out").write_text(steps(60))
    assert diagnose([tmp_path]).found


@pytest.mark.parametrize("place", ["error.err", "out.log"])
def test_the_one_process_that_aborted_is_the_one_that_did_not_catch_an_exception(place: str, tmp_path: Path) -> None:
    thrown = "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"
    ended = "mpirun noticed that process rank 7 with PID 0 on node n2 exited on signal {}.\n"
    for end, rank in (
        (ended.format("6 (Aborted)"), 7),
        (ended.format("9 (Killed)"), None),
        (child_failed(row(3, -6)), 3),
    ):
        (tmp_path / place).write_text(steps(60) + thrown)
        with (tmp_path / "out.log").open("a") as out:
            out.write(end)
        verdict = diagnose([tmp_path])
        assert (verdict.cause, verdict.rank) == ("host-out-of-memory", rank)
        (tmp_path / "out.log").unlink()
    assert verdict_of(
        steps(60) + thrown.replace("bad_alloc", "range") + child_failed(row(3, -6), row(1, -6)), tmp_path, place
    ).ranks == (1, 3)


def test_a_tracker_tells_of_an_end_only_where_the_run_could_not_begin(tmp_path: Path) -> None:
    begin = "2026-03-01 10:00:00,208 INFO    MainThread:7 [wandb_setup.py:_flush():76] Current SDK version is 0.16\n"
    raised = traceback("wandb.errors.CommError: no permission")
    inside = raised.replace("torch/nn/modules/module.py", "wandb/sdk/wandb_init.py")
    assert not verdict_of(begin + raised, tmp_path).found
    assert "CommError" in str(verdict_of(begin + inside, tmp_path).text)


def test_mpirun_names_the_rank_of_an_exception_that_all_processes_raised(tmp_path: Path) -> None:
    end = "mpirun detected that one or more processes exited with non-zero status\n\n  Process name: [[44,1],5]\n"
    assert verdict_of(traceback("AssertionError") * 3 + end, tmp_path).rank == 5


@for_each("line", HARMLESS)
def test_a_sign_that_the_run_outlived_is_a_note(line: str, tmp_path: Path) -> None:
    verdict = verdict_of(steps(50) + f"{line}\n" + steps(300, begin=50), tmp_path)
    assert (verdict.found, verdict.fatal, verdict.rank) == (False, False, None)
    assert [line[:40] in note.text for note in verdict.notes] == [True]


def test_a_caught_exception_is_no_cause(tmp_path: Path) -> None:
    verdict = verdict_of(steps(50) + traceback("ValueError: x", prefix="[rank3]: ") + steps(300, begin=50), tmp_path)
    assert (verdict.found, verdict.fatal) == (False, False)


@for_each("line", HARMLESS[:5])
def test_a_sign_far_from_the_end_is_not_what_ended_the_run(line: str, tmp_path: Path) -> None:
    end = child_failed(row(1, 1))
    verdict = verdict_of(steps(50) + f"{line}\n" + steps(300, begin=50) + end, tmp_path)
    assert (verdict.found, verdict.fatal) == (False, True)


@pytest.mark.parametrize("line", HARMLESS[2:5])
def test_a_sign_just_before_the_end_is_the_cause(line: str, tmp_path: Path) -> None:
    verdict = verdict_of(steps(350) + f"{line}\n" + traceback(CLOSED) + child_failed(row(1, 1)), tmp_path)
    assert verdict.found
    assert verdict.line == 351


def test_the_last_of_many_is_near_the_end(tmp_path: Path) -> None:
    """The first few of a code are kept and the last one: a run may outlive a hundred warnings and not the last."""
    often = "".join(steps(30, begin=30 * each) + "RuntimeError: CUDA out of memory.\n" for each in range(40))
    verdict = verdict_of(steps(50) + often + traceback(CLOSED), tmp_path)
    assert (verdict.cause, verdict.line) == ("cuda-out-of-memory", 50 + 40 * 31)
    assert len(scan("log", [often.encode()]).events) <= MOST_OF_ONE + 1


def test_ranks_that_end_one_after_the_other_are_one_end(tmp_path: Path) -> None:
    """The first traceback of 64 ranks is thousands of lines before the log's end, all of them victims."""
    victims = "".join(traceback(CLOSED, prefix=f"[rank{rank}]: ") for rank in range(64) if rank != 7)
    verdict = verdict_of(steps(50) + traceback("ValueError: x", prefix="[rank7]: ") + victims, tmp_path)
    assert (verdict.cause, verdict.rank) == ("python-exception", 7)


def test_a_victim_that_was_logged_as_a_note_ended_nobody(tmp_path: Path) -> None:
    line = "node1:189:472 [2] NCCL INFO [Service thread] Connection closed by localRank 2\n"
    assert not verdict_of(steps(50) + line, tmp_path).fatal


def test_progress_of_other_ranks_does_not_clear_an_exception(tmp_path: Path) -> None:
    others = "".join(f"[rank{rank}]: step 51 loss 0.1\n" for rank in range(8) if rank != 3)
    verdict = verdict_of(steps(50) + traceback("ValueError: x", prefix="[rank3]: ") + others, tmp_path)
    assert (verdict.cause, verdict.rank) == ("python-exception", 3)


def test_an_exception_at_the_interpreters_exit_ends_nothing(tmp_path: Path) -> None:
    text = steps(30) + "Error in atexit._run_exitfuncs:\n" + traceback("RuntimeError: the pool is closed already")
    assert not verdict_of(text, tmp_path).found


def test_what_native_code_says_before_it_aborts_is_the_cause(tmp_path: Path) -> None:
    said = "trainer: /src/native/queue.cpp:88: void Queue::push(Item): Assertion `size_ < capacity_' failed."
    verdict = verdict_of(steps(30) + f"{said}\nAborted (core dumped)\n", tmp_path)
    assert (verdict.cause, verdict.text) == ("native-fatal-error", said)


@pytest.mark.parametrize("metric", ["Error: 0.{}", "TestError: 0.{}", "ERROR: 0.{}"])
def test_a_metric_that_is_called_an_error_is_no_cause_at_the_logs_end(metric: str, tmp_path: Path) -> None:
    assert not verdict_of("".join(f"{metric.format(at)}\n" for at in range(10, 50)), tmp_path).found


THREAD = "Exception in thread Thread-3 (_writer):\n" + traceback("OSError: handle is closed")
TASK = "future: <Task finished name='Task-14' exception=RuntimeError('x')>\n" + traceback(
    "RuntimeError: loop is closed"
)


@pytest.mark.parametrize("aside", [THREAD, TASK])
def test_an_exception_that_ends_only_a_thread_or_a_task_is_not_before_the_programs_own(
    aside: str, tmp_path: Path
) -> None:
    verdict = verdict_of(steps(9) + aside + "saving\n" + traceback("ValueError: seven"), tmp_path)
    assert "seven" in str(verdict.text)
    assert verdict_of(steps(9) + aside, tmp_path).text == aside.splitlines()[-1]


def test_a_line_that_the_program_outlived_is_not_before_its_own_exception(tmp_path: Path) -> None:
    text = "No module named 'extra'\n" + "reading shards\n" * 150 + traceback("ValueError: seven")
    assert "seven" in str(verdict_of(text, tmp_path).text)
    assert "extra" in str(verdict_of(text.replace("reading shards\n", "", 149), tmp_path).text)


def test_a_launchers_crash_code_after_an_exception_is_no_cause(tmp_path: Path) -> None:
    code = "[ERROR] [launch.py:341:sigkill_handler] ['train.py', '--local_rank=3'] exits with return code = -11\n"
    verdict = verdict_of(traceback("ValueError: seven", prefix="[rank0]: ") + code, tmp_path)
    assert (verdict.rank, verdict.cause) == (0, "python-exception")
    assert verdict_of(steps(3) + code, tmp_path).cause == "segmentation-fault"


def test_who_was_killed_after_the_first_process_ended_is_no_cause(tmp_path: Path) -> None:
    first = (
        "[2026-03-01 10:00:01] Horovod detected that one or more processes exited with non-zero status, thus causing "
        "the job to be terminated. The first process to do so was:\nExit code: 1\nProcess name: 1\n"
    )
    later = "[2026-03-01 10:00:22] container failed with non-zero exit code: (exit code 137)\n"
    assert not verdict_of(first + later, tmp_path).found
    assert verdict_of(later, tmp_path).cause == "signal-9-likely-out-of-memory"


def test_arguments_that_an_earlier_start_refused_are_not_why_a_later_one_was_interrupted(tmp_path: Path) -> None:
    refused = "train.py: error: argument --workers: expected one argument\n"
    assert verdict_of(refused + traceback("KeyboardInterrupt"), tmp_path).cause == "terminated-from-outside"
    assert verdict_of(traceback("KeyboardInterrupt") + refused, tmp_path).cause == "wrong-arguments"


def test_the_schedulers_word_about_memory_is_why_subprocesses_died(tmp_path: Path) -> None:
    died = traceback(
        "RuntimeError: One of the subprocesses has abruptly died during map operation.", prefix="[rank1]: "
    )
    killed = "slurmstepd-gpu1: error: Detected 4 oom_kill events in StepId=2.batch.\n"
    assert verdict_of(died + child_failed(row(1, 1)) + killed, tmp_path).cause == "host-out-of-memory"
    assert verdict_of(died + child_failed(row(1, 1)), tmp_path).cause == "subprocess-died"


def test_a_peer_that_a_rank_never_met_is_named_and_one_that_it_lost_is_not(tmp_path: Path) -> None:
    frame = '  File "/opt/conda/lib/python3.6/site-packages/torch/distributed/distributed_c10d.py", line 3, in {}\n'
    for function, cause in (("init_process_group", "rendezvous-timeout"), ("all_reduce", None)):
        head = f"Traceback (most recent call last):\n{frame.format(function)}    x()\n"
        assert verdict_of(f"{head}RuntimeError: Connection reset by peer\n", tmp_path).cause == cause


def test_the_end_of_a_long_message_is_the_cause_where_hydra_says_that_it_ended(tmp_path: Path) -> None:
    listing = "    XLA label: fusion = fusion(a, b), kind=kOutput\n" * 300
    hydra = "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
    full = "RuntimeError: Ran out of memory in memory space hbm. Used 41.20G of 15.48G hbm."
    assert verdict_of(steps(9) + traceback(full) + listing + hydra, tmp_path).cause == "tpu-out-of-memory"


def test_an_exception_far_before_an_end_that_gives_no_reason_is_the_cause(tmp_path: Path) -> None:
    dump = "[rank3]:[W316 22:17:51.947 TCPStore.cpp:125] recvValue failed on SocketImpl: Connection reset by peer\n"
    frames = "frame #8: <unknown function> + 0x126850 (0x7f91068d8850 in libc.so.6)\n" * 300
    end = "[ERROR] [launch.py:341:sigkill_handler] ['train.py', '--local_rank=3'] exits with return code = 1\n"
    raised = traceback("ValueError: seven", prefix="[rank2]: ")
    verdict = verdict_of(steps(9) + raised + (dump + frames) * 3 + dump + end, tmp_path)
    assert (verdict.rank, "seven" in str(verdict.text)) == (2, True)


def test_a_progress_bar_in_a_traceback_or_a_table_is_no_exception(tmp_path: Path) -> None:
    cut = traceback("ValueError: seven").rpartition("ValueError")[0]
    assert "seven" in str(verdict_of(f"{cut}Map:  19Dataset loaded.\nValueError: seven\n", tmp_path).text)
    assert not verdict_of(child_failed(row(1, 1, reason="Loading:  40%")), tmp_path).found


def test_an_exception_as_python_represents_it_is_one(tmp_path: Path) -> None:
    said = (
        "Error in call to target 'encoder.Encoder':\nAttributeError(\"'NoneType' object has no attribute 'values'\")\n"
    )
    hydra = "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
    assert "'values'" in str(verdict_of(said + hydra, tmp_path).text)


def test_of_a_long_line_the_part_with_the_sign_is_shown(tmp_path: Path) -> None:
    line = f"Job failed. Error: usage: test {'[--option OPTION] ' * 60}test: error: unrecognized arguments: --dash\n"
    assert "--dash" in str(verdict_of(line, tmp_path).text)


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_of_several_runs_in_one_log_the_last_one_counts(prefix: str, tmp_path: Path) -> None:
    runs = (traceback(f"ValueError: {each}", prefix=prefix) for each in ("first", "second", "third"))
    verdict = verdict_of("".join(f"loading\n{each}" for each in runs), tmp_path)
    assert verdict.text == "ValueError: third"


def test_another_rank_is_no_later_run(tmp_path: Path) -> None:
    text = traceback("ValueError: first", prefix="[rank3]: ") + traceback("KeyError: 'later'", prefix="[rank1]: ")
    verdict = verdict_of(text, tmp_path)
    assert {verdict.text, *(each.text for each in verdict.pointers)} == {"ValueError: first", "KeyError: 'later'"}


def test_what_a_second_launcher_starts_is_the_last_run(tmp_path: Path) -> None:
    end = "E0206 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 0 (pid: 7)\n"
    first = traceback("ValueError: first", prefix="[rank0]: ") + end
    second = "loading\n" * 120 + traceback("KeyError: 'second'", prefix="[rank1]: ") + end
    assert verdict_of(first + second, tmp_path).text == "KeyError: 'second'"


HANDLED = (
    f'Traceback (most recent call last):\n  File "{LIB}/torch/cache.py", line 4, in get\n    x[0]\nIndexError: 0\n'
)


def test_what_was_raised_while_an_exception_was_handled_is_shown_with_it(tmp_path: Path) -> None:
    again = "\nDuring handling of the above exception, another exception occurred:\n\n"
    for own in (True, False):  # who handled it: the program, or the library that had raised it
        first = traceback("IndexError: 0") if own else HANDLED
        text = first + again + traceback("ValueError: no run in logs/x")
        shown = [each.text for each in verdict_of(text, tmp_path).events[:2]]
        assert shown == ["IndexError: 0", "ValueError: no run in logs/x"][:: 1 if own else -1]


def test_a_record_of_a_low_level_is_no_end(tmp_path: Path) -> None:
    record = '{"time":"2025-02-25T23:59:33+08:00","level":"INFO","msg":"connection closed by peer","id":"127.0.0.1"}\n'
    assert not verdict_of(record, tmp_path).fatal


AFTERWARDS = [
    "Segmentation fault (core dumped)",
    "/var/spool/slurmd/job1/slurm_script: line 9: 33 Segmentation fault      (core dumped) python train.py",
    "double free or corruption (!prev)\nAborted (core dumped)",
    "rm: cannot remove '/tmp/x': Permission denied",
    "cp: cannot stat 'out/model.pt': No such file or directory",
    "/var/spool/slurmd/job1/slurm_script: line 12: publish: command not found",
]


@for_each("prefix", ["", "[rank2]: "])
@for_each("line", AFTERWARDS)
def test_what_a_process_or_its_script_does_after_an_exception_is_no_cause(
    line: str, prefix: str, tmp_path: Path
) -> None:
    verdict = verdict_of(steps(30) + traceback("ValueError: bad batch", prefix=prefix) + f"{line}\n", tmp_path)
    assert verdict.text == "ValueError: bad batch"


CAUGHT = traceback("ModuleNotFoundError: No module named 'apex'").replace("<module>", "_try_import")
BEFORE = [
    CAUGHT,
    "/home/u/.bashrc: line 12: module: command not found\n",
    "Failed to initialize NVML: Driver/library version mismatch\n",
    "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n",
]


@pytest.mark.parametrize("text", BEFORE)
def test_what_a_process_went_on_from_is_not_the_cause_of_its_own_mistake(text: str, tmp_path: Path) -> None:
    assert verdict_of(text + traceback("KeyError: 'labels'"), tmp_path).text == "KeyError: 'labels'"


@pytest.mark.parametrize("text", BEFORE[:2])
def test_what_it_caught_is_not_the_cause_of_what_it_raised(text: str, tmp_path: Path) -> None:
    assert verdict_of(text + traceback("ValueError: bad batch"), tmp_path).text == "ValueError: bad batch"


def test_a_program_that_an_exception_is_about_may_be_what_is_missing(tmp_path: Path) -> None:
    text = "build.sh: line 3: nvcc: command not found\n" + traceback("RuntimeError: nvcc failed")
    assert verdict_of(text, tmp_path).cause == "missing-launcher"


TRACKERS = '  File "/opt/lib/python3.12/site-packages/wandb/sdk/lib/service/service_client.py", line 64, in publish\n'
LOST = f"Traceback (most recent call last):\n{TRACKERS}    await drain()\nConnectionResetError: Connection lost\n"


def test_a_trackers_own_log_shows_no_failure_of_the_run(tmp_path: Path) -> None:
    at = "wandb-AsyncioManager-main:25307 [asyncio_manager.py:fn_wrap_exceptions():183]"
    said = f"2026-12-03 05:24:56,632 ERROR   {at} Uncaught exception in run_soon callback.\n"
    assert not verdict_of((said + LOST) * 3, tmp_path).fatal
    closed = LOST.replace("ConnectionResetError: Connection lost", "wandb.sdk.lib.sock_client.SockClientClosedError")
    direct = "\nThe above exception was the direct cause of the following exception:\n\n"
    assert not verdict_of(f"{said}{closed}{direct}{closed}INFO    MsgRouterThr Closing mailbox\n", tmp_path).fatal
    own = LOST.replace(TRACKERS, '  File "/home/me/train.py", line 5, in <module>\n    wandb.init()\n' + TRACKERS)
    assert verdict_of(own, tmp_path).fatal


@pytest.mark.parametrize(
    "line",
    [
        "[2026-06-01 04:33:05] Ignore import error when loading sglang.models.x: No module named 'vllm'",
        "[2026-06-01 04:33:05] import error",
        "A module that was compiled using NumPy 1.x cannot be run in",
        f"[2026-08-02 19:07:39,354 INFO] Processing ['{'It crashed. ' * 1500}Illegal instruction (core dumped)",
    ],
)
def test_words_that_only_resemble_a_failure_are_no_cause(line: str, tmp_path: Path) -> None:
    assert not verdict_of(f"{line}\nThe engine is ready\n", tmp_path).fatal
    assert (
        verdict_of(line + "\n" + traceback("FileNotFoundError: x.json"), tmp_path).text == "FileNotFoundError: x.json"
    )


def test_an_argument_of_a_function_is_none_of_the_command_line(tmp_path: Path) -> None:
    verdict = verdict_of(traceback("TypeError: argument of type 'NoneType' is not iterable"), tmp_path)
    assert verdict.cause == "python-exception"


def test_a_traceback_at_the_level_of_a_warning_was_caught(tmp_path: Path) -> None:
    level = "(EngineCore pid=24969) WARNING 06-25 16:32:09 [import_utils.py:408] "
    rows = traceback("ImportError: libnvrtc.so.13: cannot open shared object file").splitlines()
    warned = "".join(f"{level}{each}\n" for each in rows)
    verdict = verdict_of(f"{steps(3)}{warned}answers are written\nresults are in exp1.json\n", tmp_path)
    assert (verdict.found, verdict.fatal) == (False, False)


@for_each("said", [
        "No fast kernels here, some optimizations will not be enabled\n",
        "ops.py:50: UserWarning: the plugin was not built. Falling back to the slow\nones. Details:\n\n",
])  # fmt: skip
def test_what_a_library_does_without_ended_nothing(said: str, tmp_path: Path) -> None:
    raised = "\nModuleNotFoundError: No module named 'kernels'\n"
    caught = (
        'Traceback (most recent call last):\n  File "/env/site-packages/fast.py", line 5, in available\n    x' + raised
    )
    assert not verdict_of(f"{said}{caught}", tmp_path).found
    ended = caught.replace("in available", "in <module>")
    assert verdict_of(f"{said}{ended}", tmp_path).cause == "missing-module"
    assert verdict_of(caught, tmp_path).cause == "missing-module"


def test_a_mere_line_before_a_programs_steps_is_not_the_cause_of_its_exception(tmp_path: Path) -> None:
    skipped = "Error in model gem\n\t- cannot import name 'pretrained' from 'metrics' (/app/metrics.py)\n"
    raised = traceback("RuntimeError: a view of a leaf was changed")
    assert "leaf" in str(verdict_of(skipped + steps(1) + raised, tmp_path).text)
    warned = "W tensorflow/default/dso_loader.cc:64] Could not load dynamic library 'libcuda.so.1'; dlerror: none\n"
    ignored = (
        "unable to open mca_pml_pami: libpami.so.3: cannot open shared object file: No such file or directory (ignored)"
    )
    assert not verdict_of(f"[login3:29852] mca_base_component_repository_open: {ignored}\n", tmp_path).found
    assert not verdict_of(f"[1,1]<stderr>:2026-10-25 15:45:55.510473: {warned}", tmp_path).found


def test_what_a_script_lacks_ends_nothing_where_its_program_writes_on(tmp_path: Path) -> None:
    lacks = "/spool/slurm_script: line 13: activate: No such file or directory\n"
    assert verdict_of(f"{lacks}done\n", tmp_path).found
    assert not verdict_of(lacks + "opened the library of device 0\n" * 5, tmp_path).found


def test_a_warning_of_nccl_is_a_cause_only_where_the_log_ends_with_it(tmp_path: Path) -> None:
    warned = "n1:24:48 [0] socket.cc:765 NCCL WARN Maximum retry reached for connect 3.\n"
    assert verdict_of(f"{warned}n1:24:48 [0] NCCL INFO net.cc:70 -> 2\n", tmp_path).cause == "nccl-warning"
    goes_on = "".join(f"n1:24:48 [0] NCCL INFO {what}\n" for what in ("Connected", "qid: 3", "Accepted data socket 3"))
    assert not verdict_of(warned + goes_on, tmp_path).found


def test_an_exception_that_a_record_right_below_tries_again_ended_nothing(tmp_path: Path) -> None:
    said = (
        "<urllib3.connection.HTTPConnection object at 0x7f>: Failed to establish a new connection: [Errno 111] refused"
    )
    refused = traceback(f"urllib3.exceptions.NewConnectionError: {said}")
    again = "[2026-08-20 02:31:49,690] [8] [WARNING] [store] Could not connect. Retry 1 of 4. Waiting for 30sec\n"
    assert not verdict_of(f"{refused}{again}[2026-08-20 02:32:19,796] [8] [INFO] [store] Connected\n", tmp_path).found
    assert not verdict_of(f"{refused}Retrying in 5 seconds...\ndownloaded\n", tmp_path).found
    assert verdict_of(refused, tmp_path).found


def test_a_line_above_the_source_of_a_warning_is_one(tmp_path: Path) -> None:
    said = "Failed to load the extension: libx.so: cannot open shared object file: No such file or directory\n"
    assert verdict_of(said, tmp_path).cause == "library-mismatch"
    assert not verdict_of(said + '  warn(f"Failed to load the extension: {e}")\nNamespace(batch=3)\n', tmp_path).found


def test_a_child_whose_parent_has_ended_on_windows_is_a_victim(tmp_path: Path) -> None:
    frame = '  File "D:\\python\\lib\\multiprocessing\\reduction.py", line 131, in detach\n'
    child = f"Traceback (most recent call last):\n{frame}PermissionError: [WinError 5] Access is denied\n"
    small = "OSError: [WinError 1455] The paging file is too small. Error loading x.dll\n"
    assert verdict_of(small + child, tmp_path).cause == "host-out-of-memory"


def test_a_thread_that_raises_after_the_end_of_training_fails_no_run(tmp_path: Path) -> None:
    raised = "Exception in thread Thread-133:\n" + traceback("AssertionError: only in dynamic graph mode")
    end = "23-05-12 18:04:37.203 - INFO: End of training.\n"
    verdict = verdict_of(f"{steps(50)}{end}{raised}\n", tmp_path)
    assert (verdict.found, verdict.fatal) == (False, False)
    assert verdict_of(f"{steps(50)}{raised}\n", tmp_path).found


def test_the_report_of_lsf_says_that_a_job_failed(tmp_path: Path) -> None:
    report = "Started at Thu Mar 10 12:19:31 2022\n\nExited with exit code {}.\n\nResource usage summary:\n"
    assert verdict_of(f"{steps(5)}{report.format(2)}", tmp_path).fatal
    assert not verdict_of(f"{steps(5)}Successfully completed.\n", tmp_path).fatal


BANNER = "load the model of the small run\nnumber of parameters: 1200000\nread the pairs of shard 0\n"


def test_a_program_that_is_started_again_had_not_ended_the_log(tmp_path: Path) -> None:
    """Its first words come once more: what ended the start before is not what the log ends with."""
    first = BANNER + "writes a table\n" * 50 + traceback("ValueError: first")
    assert not verdict_of(first + BANNER.replace("12", "13") + "writes a table\n" * 12, tmp_path).fatal
    assert verdict_of(first + BANNER + "writes a table\n" * 60 + traceback("KeyError: 'x'"), tmp_path).text == (
        "KeyError: 'x'"
    )
    for text in (first + BANNER, "".join(f"[rank{rank}]: {first}{BANNER}" for rank in range(4))):
        assert verdict_of(text, tmp_path).text == "ValueError: first"  # only begun, or another rank's


@pytest.mark.parametrize("rest", ["--batch-size", "epochs=3", "d"])
def test_the_rest_of_a_command_behind_its_program_is_no_missing_program(rest: str, tmp_path: Path) -> None:
    line = f"run.sh: line 41: {rest}: command not found\n"
    assert not verdict_of("accuracy of a class 0.5\n" * 60 + line, tmp_path).fatal
    assert not verdict_of(steps(5) + line, tmp_path).fatal
    for text in (line, steps(5) + line.replace(f" {rest}:", " torchrun:")):
        assert verdict_of(text, tmp_path).cause == "missing-launcher"


@pytest.mark.parametrize(
    "header",
    [
        "Exception happened during processing of request from ('10.0.0.7', 4711)",
        "Exception occurred during processing of request from ('10.0.0.7', 4711)",
        "ERROR:    Exception in ASGI application",
        "[2026-01-02 03:04:05,678] ERROR in app: Exception on /answer [POST]",
    ],
)
def test_a_server_that_fails_at_a_request_goes_on(header: str, tmp_path: Path) -> None:
    raised = traceback("ValueError: no such question").replace("<module>", "handle")
    before = "10.0.0.7 asked for /answer\n" * 10
    assert not verdict_of(f"{before}{header}\n{raised}10.0.0.7 asked for /answer\n", tmp_path).fatal
    assert verdict_of(f"{raised}", tmp_path).fatal


def test_a_note_of_what_was_done_instead_is_not_before_what_failed(tmp_path: Path) -> None:
    text = (
        "slurmstepd: error: couldn't chdir to `/work': No such file or directory: going to /tmp instead\n"
        "slurmstepd: error: execve(): /home/u/run.sh: Permission denied\n"
        "srun: error: n1: task 0: Exited with exit code 13\n"
    )
    assert verdict_of(text, tmp_path).cause == "permission-denied"


def test_a_step_that_slurm_refuses_while_a_job_ends_is_not_why_it_ended(tmp_path: Path) -> None:
    text = (
        "srun: error: Unable to create step for job 7: Job/step already completing or completed\n"
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-04T18:05:12 DUE TO TIME LIMIT ***\n"
    )
    assert verdict_of(text, tmp_path).cause == "job-timeout"


def test_a_worker_whose_parent_was_interrupted_found_no_damaged_file(tmp_path: Path) -> None:
    frame = '  File "/opt/lib/python3.10/multiprocessing/spawn.py", line 126, in _main\n'
    cut = f"Traceback (most recent call last):\n{frame}    load()\n_pickle.UnpicklingError: pickle data was truncated\n"
    assert verdict_of(f"{steps(3)}Keyboard interruption, end of training\n{cut}", tmp_path).cause == (
        "terminated-from-outside"
    )


@pytest.mark.parametrize("end", ["Terminated", "[2026-06-01 04:38:43] SIGTERM received. signum=None. Shutting down..."])
def test_a_signal_from_outside_is_the_cause_and_no_warning_before_it(end: str, tmp_path: Path) -> None:
    warned = "[2026-06-01 04:33:05] Ignore import error when loading models.x: No module named 'vllm'\n"
    assert verdict_of(f"{warned}the engine is ready\n{end}\n", tmp_path).cause == "terminated-from-outside"


def test_the_last_error_of_a_log_counts_where_other_signs_are_far(tmp_path: Path) -> None:
    listing = "  using ::sin;\n" * 500
    text = traceback("RuntimeError:") + listing + "nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
    assert "invalid value" in str(verdict_of(text, tmp_path).text)


def test_an_error_of_a_program_that_then_comes_forward_ended_nothing(tmp_path: Path) -> None:
    said = "Error: no interpreter is found here, another one is taken\n"
    assert not verdict_of(f"{said}loading:  50%|##   | 1/2\n", tmp_path).fatal
    assert verdict_of(f"loading:  50%|##   | 1/2\n{said}", tmp_path).fatal


def test_stacks_behind_a_host_and_the_good_end_of_a_launcher_show_no_failure(tmp_path: Path) -> None:
    stack = "gpu-7: frame #5: c10d::ProcessGroupNCCL::HeartbeatMonitor::runLoop() + 0x3c8 (0x7e in libtorch.so)\n"
    end = "gpu-7: [2026-04-11 11:24:14,452] [INFO] [launch.py:367:main] Process 4189 exits successfully.\n"
    assert not verdict_of(steps(9) + stack + end, tmp_path).fatal


def test_what_hydra_does_not_find_is_the_cause(tmp_path: Path) -> None:
    lost = "Cannot find primary config 'large'. Check that it's in your config search path.\n"
    hydra = "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
    verdict = verdict_of(traceback("TypeError: earlier").replace("<module>", "run") + lost + hydra, tmp_path)
    assert "large" in str(verdict.text)


@pytest.mark.parametrize(
    "thread", ["[Service thread] Accept failed Success", "[Proxy Service 3] Failed to execute operation Close"]
)
def test_threads_of_nccl_that_are_torn_down_end_no_run(thread: str, tmp_path: Path) -> None:
    line = f"node1:279:280 [6] proxy.cc:1458 NCCL WARN {thread}\n"
    assert not verdict_of(f"{steps(9)}results are written\n{line}", tmp_path).fatal


def test_a_loader_that_lost_its_worker_when_a_person_pressed_ctrl_c_is_no_cause(tmp_path: Path) -> None:
    frame = '  File "/opt/lib/python3.10/multiprocessing/connection.py", line 383, in _recv\n'
    lost = f"Exception in thread Thread-1:\nTraceback (most recent call last):\n{frame}    raise EOFError\nEOFError\n"
    verdict = verdict_of(f"{steps(3)}{lost}Keyboard interruption. Exiting from early training\n", tmp_path)
    assert verdict.cause == "terminated-from-outside"


def test_a_tracebacks_level_is_that_of_a_note_where_it_was_caught(tmp_path: Path) -> None:
    raised = (
        traceback("TypeError: no integer").replace("Traceback", "[INFO:loader] Traceback").replace("<module>", "get")
    )
    assert not verdict_of(f"{steps(3)}{raised}another sample is taken\n", tmp_path).fatal


def test_the_log_that_a_tracker_keeps_of_itself_names_no_cause(tmp_path: Path) -> None:
    begin = "2026-06-11 14:13:32,315 DEBUG   HandlerThread:203246 [handler.py:handle_request():158] keepalive\n"
    raised = "socket.gaierror: [Errno -3] Temporary failure in name resolution\n"
    assert not verdict_of(begin + traceback(raised) + begin, tmp_path).fatal
    assert verdict_of(traceback(raised) + begin, tmp_path).fatal


def test_a_bar_that_reached_its_end_in_one_line_came_forward(tmp_path: Path) -> None:
    raised = traceback("ModuleNotFoundError: No module named 'grid'")
    bar = "".join(f" {at}%|##     | {at}/99 [00:02<00:40, 2.13s/it]" for at in range(1, 100))
    assert not verdict_of(raised + bar + "\n", tmp_path).found
    assert verdict_of(raised + " 7%|##     | 7/99 [00:02<00:40, 2.13s/it]" * 8 + "\n", tmp_path).found


def test_an_exception_that_a_function_caught_and_showed_before_more_was_written_ended_nothing(tmp_path: Path) -> None:
    logged = (
        "ERROR:2026-03-01 10:00:00,615:jax._src.xla_bridge:477: Jax plugin configuration error\n"
        'Traceback (most recent call last):\n  File "/opt/site-packages/jax/bridge.py", line 4, in find\n'
        "    plugin.initialize()\nRuntimeError: operation cuInit(0) failed\n"
    )
    assert not verdict_of(logged + "row of the grid\n" * 12, tmp_path).found
    assert verdict_of(logged + "row of the grid\n" * 3, tmp_path).found
    assert verdict_of(logged + "row of the grid\n" * 12 + "Killed\n", tmp_path).found
    printed = 'Traceback (most recent call last):\n  File "/code/grid.py", line 4, in {}\nValueError: no rows\n'
    assert not verdict_of(printed.format("load") + "row of the grid\n" * 24, tmp_path).found
    assert verdict_of(printed.format("<module>") + "row of the grid\n" * 24, tmp_path).found
    assert verdict_of(printed.format("load") + "row of the grid\n" * 3, tmp_path).found


@pytest.mark.parametrize(
    "seen",
    [
        "Error: <class 'openai.error.APIError'>\n",
        "CUDA out of memory, trying a smaller batch\n",
        'Traceback (most recent call last):\n  File "/code/grid.py", line 41, in load\nValueError: bad row\n',
    ],
)
@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ("Terminated\n", "terminated-from-outside"),
        ("job.sh: line 9: 77 Killed                  python grid.py\n", "signal-9-likely-out-of-memory"),
        ("srun: error: n1: task 0: Killed\n", "signal-9-likely-out-of-memory"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME LIMIT ***\n", "job-timeout"),
        ("panic: no rows\n\ngoroutine 1 [running]:\nexit status 2\n", "native-fatal-error"),
    ],
)
def test_what_a_program_outlived_did_not_end_it(seen: str, end: str, cause: str, tmp_path: Path) -> None:
    lived = "".join(f"An answer of {number} words.\n" for number in range(40))
    assert verdict_of(f"start\n{lived}{seen}{lived}{end}", tmp_path).cause == cause
    shortly = "An answer.\n" * 3
    assert verdict_of(f"start\n{lived}{seen}{shortly}Terminated\n", tmp_path).cause != "terminated-from-outside"


def test_what_a_shell_did_not_find_before_its_program_ran_did_not_end_it(tmp_path: Path) -> None:
    missing = "job.sh: line 7: module: command not found\n"
    killed = "job.sh: line 9: 77 Killed                  python grid.py\n"
    assert verdict_of(f"{missing}reading the grid\n{killed}", tmp_path).cause == "signal-9-likely-out-of-memory"
    made = "/bin/sh: 1: cmake: not found\nmake: *** [Makefile:3: all] Error 127\n"
    assert verdict_of(f"reading the grid\n{made}", tmp_path).cause == "missing-launcher"


def test_the_last_error_of_a_program_that_wrote_many_and_went_on_is_no_last_word(tmp_path: Path) -> None:
    tried = "".join(f"row {number}\nFailed to retrieve data for grid {number}. Code: 404\n" for number in range(6))
    assert not verdict_of(steps(60) + tried, tmp_path).fatal
    assert verdict_of(steps(60) + "Failed to retrieve data for grid 1. Code: 404\n", tmp_path).found


def test_several_runs_of_one_rank_in_a_log_are_of_that_rank(tmp_path: Path) -> None:
    run = traceback("FileNotFoundError: [Errno 2] No such file or directory: 'rows'") + child_failed(row(0, 1))
    assert verdict_of(run * 3, tmp_path).rank == 0
