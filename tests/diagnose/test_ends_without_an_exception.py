"""Waits, calls that are tried again, refusals, tables and records: the end of a run without a traceback of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from tests.support.diagnose.log_texts import child_failed, row, steps, traceback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis

REFUSED = "gpu-1:94:95 [0] NCCL INFO Call to connect returned Connection refused, retrying\n"
WAITING = (
    "2026-04-17 20:50:08.7: I tensorflow/core/master.cc:221] CreateSession still waiting for response from worker: "
    "/job:ps/replica:0/task:0\n"
)
PENDING = (
    "Warning  FailedScheduling  2s (x57 over 15m)  scheduler  0/6 nodes are available: 6 Insufficient nvidia.com/gpu.\n"
)
DIAL = "[09:20:29] rpc.cc:46: Cannot connect to server tcp://10.1.2.3:2333. Wait to retry\n"


def verdict_of(text: str, folder: Path) -> Diagnosis:
    (folder / "out.log").write_text(text)
    return diagnose([folder])


@pytest.mark.parametrize(
    ("tried", "cause", "told"),
    [
        (REFUSED * 3 + "gpu-1:94:95 [0] NCCL WARN Connect to 10.1.2.3<21724> failed : Connection refused\n"
         "gpu-1:94:95 [0] NCCL INFO bootstrap.cc:100 -> 2\n" * 4, "connection-refused", ""),
        (WAITING * 3 + "2026-04-17 20:50:58.7\n", "waiting-for-peer", "ps 0"),
        (PENDING, "resources-pending", "nvidia.com/gpu"),
        (DIAL * 2, "connection-failed", "10.1.2.3:2333"),
    ],
)  # fmt: skip
def test_what_the_log_ends_with_is_the_cause_until_something_else_is_said(
    tried: str, cause: str, told: str, tmp_path: Path
) -> None:
    verdict = verdict_of(f"starting\n{tried}", tmp_path)
    assert (verdict.cause, verdict.rank) == (cause, None)
    assert told in verdict.advice
    assert not verdict_of(f"{tried}connected to all\n", tmp_path).found
    assert not verdict_of(tried + steps(3), tmp_path).found


def test_a_retry_at_the_level_of_a_warning_behind_a_module_is_no_alarm(tmp_path: Path) -> None:
    retried = (
        "][huggingface_hub][WARNING] - '(MaxRetryError(\"HTTPSConnectionPool: Max retries exceeded with url: /x\"))'\n"
    )
    log = f"[2026-12-06 15:32:18,446{retried}[2026-12-06 15:32:18,447][huggingface_hub][WARNING] - Retrying in 1s\n"
    assert verdict_of(f"{log}[2026-12-06 15:32:20,373][trainer][INFO] - Saved model\n", tmp_path).cause is None


def test_a_stack_below_a_warning_of_the_teardown_ends_nothing(tmp_path: Path) -> None:
    warned = (
        "[rank1]:[W526 18:23:42.9 TCPStore.cpp:125] [c10d] recvValue failed: Failed to recv, got 0 bytes.\n"
        "Exception raised from recvBytes at c10d/Utils.hpp:697 (most recent call first):\n"
        "frame #5: c10d::ProcessGroupNCCL::HeartbeatMonitor::runLoop() + 0x2d0 (0x40 in libtorch_cuda.so)\n"
    )
    log = "UserWarning: Failed to import a plugin: ImportError(\"cannot import name 'X' from 'peft'\")\n" + warned
    assert not verdict_of(log, tmp_path).found


def test_a_report_that_a_job_failed_names_no_cause_by_itself(tmp_path: Path) -> None:
    for report in ("State: FAILED (exit code 7)\nNodes: 8\n", "Job failed.\n\nTask and CPU statistics:\n"):
        verdict = verdict_of(report, tmp_path)
        assert (verdict.found, verdict.fatal) == (False, True)


@for_each("line, cause", [
        ("sbatch: error: Batch job submission failed: Requested node configuration is not available", "slurm-refused"),
        ("Error operation not supported at line 351 in file /src/csrc/pythonInterface.c", "native-fatal-error"),
        ('    "message": "RendezvousConnectionError: The connection to the store failed.",', "rendezvous-timeout"),
        ("7.batch      batch      main          4 OUT_OF_ME+    0:125", "host-out-of-memory"),
        ("rank2 (local rank: 2)exitcode: -9 (pid: 36071)error file: <N/A>", "signal-9-likely-out-of-memory"),
        ("Failures:\n[0]:\nrank2 (local rank: 2)exitcode: -11 (pid: 36071)", "segmentation-fault"),
        ("State: TIMEOUT (exit code 0)\nNodes: 8\nMemory Efficiency: 0.13% of 1000.00 GB", "job-timeout"),
        ("State: CANCELLED (exit code 0)\nNodes: 8", "job-cancelled"),
        ("[ERROR] no solver in the PATH\n" + "\nJob 7 ran.\n" * 4 + "Job failed.\n" + "row\n" * 14
         + "Job 7 completed at Thu Apr 23 17:39:48 CEST 2026", "logged-error"),
        ("cannot allocate memory for thread-local data: ABORT", "host-out-of-memory"),
        ("RuntimeError: [gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:41234: Connection refused",
         "rendezvous-timeout"),
        ("srun: unrecognized option '--mpi'\nTry \"srun --help\" for more information", "wrong-arguments"),
        ('{"code":"UserError","message":"It has a T4 vCPU quota of 0 and cannot"}', "quota"),
        ("Epoch 1/10\n\nProcess finished with exit code -1073740791 (0xC0000409)", "aborted"),
        ("ASSERTION_FAILED (train[5.5]:Select():device.cc:260) Assertion failed: (n > 0)", "native-fatal-error"),
        ("E0101 10:00:00.1 12 client.cc:2809] Execution of replica 0 failed: INTERNAL: no", "native-fatal-error"),
        ("012 (123.000) Job was held.\n\tError from n1: memory usage exceeded request_memory", "host-out-of-memory"),
        ("/opt/bin/luajit: /opt/torch/File.lua:210: write error: wrote 3 blocks\nstack traceback:\n"
         + "\t[C]: in function 'write'\n" * 20, "native-fatal-error"),
        ('FATAL:   "grid": executable file not found in $PATH\n' * 3
         + "srun: error: n1: tasks 0-2: Exited with exit code 255\nsrun: Terminating StepId=7.0", "missing-launcher"),
        ('GPU 0: Detected Critical Xid Error\nTraceback (most recent call last):\n  File "/a.py", line 2, in main\n',
         "gpu-xid"),
        ("[14:49:15] /src/rpc/tcp_socket.cc:76: Failed bind on <my_", "native-fatal-error"),
        ("failed    37\nexit_status  137       (Killed)\nru_wallclock 18001s", "signal-9-likely-out-of-memory"),
        ("Application terminated with error: ??+0 (0x7F)\n\n(NCudaLib::TOutOfMemoryE", "cuda-out-of-memory"),
        (" CUDA Error: invalid argument\ndarknet: utils.c:326: error: Assertion `0' failed.", "native-fatal-error"),
        ("Memory access fault by GPU node-1 on address 0x7f8. Reason: Page not present", "gpu-illegal-access"),
        ("Index.cu:92: block: [3363,0,0], thread: [31,0,0] Assertion `-n <= index` failed.", "gpu-illegal-access"),
        ("n1: Test NCCL failure common.cu:1285 'internal error'", "native-fatal-error"),
        ("2026-02-14: E xla/status_macros.cc:57] INTERNAL: RET_CHECK failure (gpu.cc:626) dnn != nullptr",
         "native-fatal-error"),
        ('step 7 loss=0\n^CTraceback (most recent call last):\n  File "/a/b.py", line 9, in <module>\n    x()\n',
         "terminated-from-outside"),
        ("[rank5]:[E602 11:17:52 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught collective operati",
         "collective-timed-out"),
        ('{\n  "message": {\n    "message": "RendezvousTimeoutError: ",\n    "extraInfo": {', "rendezvous-timeout"),
        ("[08:41:20] dmlc/logging.h:300: [08:41:20] src/store.cc:37: built without dist_sync", "native-fatal-error"),
        ("[m7:7:0] UCX  ERROR  QP failed\nAbort(1) on node 2 (rank 2 in comm 0): Fatal error in PMPI_Init: rank2",
         "ucx-error"),
        ("#\n# A fatal error has been detected\n#\n#  SIGSEGV (0xb) at pc=0x003, pid=7\n#\n# C  memcpy",
         "segmentation-fault"),
        ("'LR' n'est pas reconnu en tant que commande interne\nou externe.\n\nC:\\u>set LR=1", "missing-launcher"),
        ("Optimization Done.\ndouble free or corrupti", "heap-corrupted"),
        ("epoch 1 step 8 loss=0.10\n" * 3 + "[16:24:41] dmlc/logging.h:303: [16:24:41] io.cc:39: Check failed: a == b\n"
         "\nStack trace returned 10 entries:\n[bt] (0) /lib/x.so(write+0x1)", "native-fatal-error"),
        ("[10:00:01][GRAPH   ][error][tid:4F8A] No kernel for node 7", "logged-error"),
        ("WARNING tune.py:219 -- Stop signal received (e.g. via SIGINT/Ctrl+C), ending Ray Tune run. Saving.",
         "terminated-from-outside"),
        ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nExited with signal termination: 25.\n"
         + "    Max Swap :      -\n" * 20, "host-out-of-memory"),
        ("Shard process was signaled to shutdown with signal 4 rank=2 of rank2", "illegal-instruction"),
])  # fmt: skip
def test_refusals_records_and_rows_name_the_cause(line: str, cause: str, tmp_path: Path) -> None:
    verdict = verdict_of(f"{line}\n", tmp_path)
    assert (verdict.cause, verdict.rank) == (cause, 2 if "rank2" in line else None)


def test_an_exception_that_speaks_of_what_is_ignored_counts_where_a_rank_ended(tmp_path: Path) -> None:
    raised = "ValueError: with a config file these variables will be ignored: ['zero_stage']\n"
    ended = "[01:26:13] ERROR    failed (exitcode: 1) local_rank: 0 (pid: 152) of binary: /usr/bin/python3\n"
    assert "zero_stage" in str(verdict_of(raised + ended, tmp_path).text)
    assert not verdict_of(raised, tmp_path).found


def test_a_traceback_whose_begin_was_cut_off_is_read_as_one(tmp_path: Path) -> None:
    log = '  File "/app/train.py", line 15, in main\n    assert ready\nAssertionError\n'
    verdict = verdict_of(log, tmp_path)
    assert (verdict.cause, str(verdict.source)) == ("python-exception", "/app/train.py:15 in main")
    assert not verdict_of(steps(8) + log, tmp_path).found


@pytest.mark.parametrize(
    ("name", "cause"), [("DATA", "environment-variable-missing"), ("RANK", "launch-variable-missing")]
)
def test_a_missing_environment_variable_is_told_from_a_missing_key(name: str, cause: str, tmp_path: Path) -> None:
    begin = 'Traceback (most recent call last):\n  File "/app/train.py", line 3, in main\n    root = os.environ["X"]\n'
    inside = '  File "/usr/lib/python3.8/os.py", line 675, in __getitem__\n    raise KeyError(key) from None\n'
    verdict = verdict_of(f"{begin}{inside}KeyError: '{name}'\n", tmp_path)
    assert verdict.cause == cause
    assert name in verdict.advice
    assert ("Set DATA for the job" in verdict.advice) is (name == "DATA")
    assert verdict_of(f"{begin}KeyError: 'DATA'\n", tmp_path).cause == "python-exception"


def test_a_message_that_announces_a_list_is_shown_with_its_first_row(tmp_path: Path) -> None:
    log = traceback("pydantic.ValidationError: 1 validation error for Config") + "  Value error, 64 heads by 3\n"
    assert str(verdict_of(log, tmp_path).text).endswith("for Config Value error, 64 heads by 3")


def test_a_message_that_was_broken_at_its_spaces_is_read_as_one_sentence(tmp_path: Path) -> None:
    begin = "RuntimeError: The model of the second stage could not be moved to the device: CUDA out"
    assert (
        verdict_of(traceback(begin) + "of memory. Tried to allocate 2.00 GiB.\n", tmp_path).cause
        == "cuda-out-of-memory"
    )
    assert verdict_of(traceback("RuntimeError: CUDA out") + "of memory\n", tmp_path).cause == "python-exception"


def test_a_program_that_says_that_it_stops_training_ended_there(tmp_path: Path) -> None:
    log = steps(30) + "Loss is nan, stopping training\n"
    assert verdict_of(log, tmp_path).cause == "loss-not-finite"
    assert not verdict_of(log + steps(30), tmp_path).found


def test_nameless_exceptions_as_many_as_the_table_has_rows_are_those_ranks(tmp_path: Path) -> None:
    same = traceback("AssertionError: no bf16")
    ended = child_failed(row(3, 1), row(7, 1))
    verdict = verdict_of(same * 2 + ended, tmp_path)
    assert (verdict.rank, verdict.ranks) == (None, (3, 7))
    assert verdict_of(same + ended, tmp_path).ranks == ()


def test_a_cancelled_job_had_caught_what_it_logged_as_a_note(tmp_path: Path) -> None:
    failed = "The server socket has failed to listen on any local network address."
    log = f"[E socket.cpp:500] [c10d] {failed}\nINFO:root:not distributed: {failed}\nINFO:root:Running\n"
    end = "slurmstepd: error: *** JOB 2567 ON gpu1 CANCELLED AT 2024-07-09T14:25:08 ***\n"
    assert verdict_of(log + end, tmp_path).cause == "job-cancelled"
    assert verdict_of(log.replace("INFO:root:not", "not") + end, tmp_path).cause == "port-in-use"


def test_a_loaders_worker_terminated_after_its_process_was_is_no_cause(tmp_path: Path) -> None:
    killed = traceback("RuntimeError: DataLoader worker (pid 4020) is killed by signal: Terminated. ")
    verdict = verdict_of(
        f"{steps(30)}Epoch 0:  31%|███| 12/39 [1:07:35<2:33:02][rank: 2] Received SIGTERM: 15\n{killed}", tmp_path
    )
    assert (verdict.cause, verdict.ranks) == ("terminated-from-outside", (2,))
    assert verdict_of(steps(30) + killed, tmp_path).cause == "data-loader-worker-killed"


@pytest.mark.parametrize(
    ("before", "last", "cause"),
    [
        ("New Epoch: 24\n" * 3, "FATAL:   could not open image /x/a.sif: no such file or directory", "file-missing"),
        ("find: '/x/y': No such file or directory\n" * 9, "job.sh: line 99: syntax error: unexpected end of file",
         "logged-error"),
        ("Submitting 1 runs\n", "[2026-11-06 16:05:26Z] Execution of experiment failed, cancel running nodes.", None),
    ],
)  # fmt: skip
def test_an_error_that_a_log_ends_with_ended_it(before: str, last: str, cause: str | None, tmp_path: Path) -> None:
    verdict = verdict_of(f"{before}{last}\n", tmp_path)
    assert (verdict.fatal, verdict.cause) == (True, cause)
    assert verdict.text is not None
    assert verdict.text in last


@pytest.mark.parametrize(
    "before",
    [
        "/opt/lib/site-packages/torch/cuda/__init__.py:141: UserWarning: CUDA initialization: no NVIDIA driver found\n",
        traceback("ConnectionResetError: [Errno 104] Connection reset by peer").replace(
            "torch/nn/modules/module.py", "multiprocessing/connection.py"
        ),
    ],
)
def test_who_was_interrupted_by_hand_was_not_ended_by_a_warning_or_a_lost_pipe(before: str, tmp_path: Path) -> None:
    verdict = verdict_of(steps(50) + before + traceback("KeyboardInterrupt"), tmp_path)
    assert (verdict.cause, verdict.text) == ("terminated-from-outside", "KeyboardInterrupt")
