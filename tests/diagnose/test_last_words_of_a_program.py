"""The last error that a program logged is the cause only of a failed run without a better sign."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from tests.support.diagnose.log_texts import child_failed, row, steps, traceback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis


def verdict_of(text: str, folder: Path) -> Diagnosis:
    (folder / "out.log").write_text(text)
    return diagnose([folder])


@for_each(
    "line",
    [
        "2026-03-01 10:00:00 ERROR trainer: the validation set has no rows",
        "[10:00:00] CRITICAL - config: unknown schedule `cosin`",
        "fatal: detected dubious ownership in repository at '/code'",
        "/usr/bin/env: exec format error: ./train",
        "train.sh: line 7: syntax error near unexpected token `('",
        "In 'config': Could not find 'model/large'",
        "docker: Error response from daemon: Conflict. The container name is in use",
    ],
)
def test_an_error_without_a_signature_is_the_cause_when_it_is_the_last_word(line: str, tmp_path: Path) -> None:
    verdict = verdict_of(f"starting\n{line}\n\n", tmp_path)
    assert (verdict.cause, verdict.line, verdict.confidence) == ("logged-error", 2, "low")


@pytest.mark.parametrize("line", ["ERROR uploader: metrics were not sent", "error: 0.0312", "INFO error rate 3"])
def test_an_error_in_a_run_that_goes_on_or_succeeds_is_no_cause(line: str, tmp_path: Path) -> None:
    assert not verdict_of(steps(60) + f"{line}\n" + steps(3), tmp_path).found
    assert not verdict_of(f"{line}\ntraining finished\n", tmp_path).found


def test_a_signature_is_better_than_a_logged_error(tmp_path: Path) -> None:
    verdict = verdict_of("ERROR trainer: giving up\n" + traceback("ValueError: seven"), tmp_path)
    assert (verdict.cause, "seven" in str(verdict.text)) == ("python-exception", True)


def test_an_exception_before_the_word_of_success_of_its_own_writer_ended_nothing(tmp_path: Path) -> None:
    shown = traceback("ValueError: no cache", prefix="[rank1]: ")
    assert not verdict_of(f"{shown}[rank1]: training finished\n", tmp_path).found
    assert verdict_of(f"{shown}[rank0]: training finished\n", tmp_path).rank == 1


@pytest.mark.parametrize("end", ["using the slow path", "falling back to eager mode", "this feature will be disabled"])
def test_a_failure_that_the_program_does_without_is_no_cause(end: str, tmp_path: Path) -> None:
    assert not verdict_of(f"ImportError: cannot import name 'fast_op', {end}\n", tmp_path).found


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("starting\n" + "info line\n" * 14 + "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error\n"
         + "  at exit\n" * 12, "shared-memory-exhausted"),
        ("torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection failed\n",
         "rendezvous-timeout"),
        ("/bin/sh: 1: torchrun: not found\n", "missing-launcher"),
        ("ValueError:the outputs are no numbers! Stopped\n", "bare-exception"),
    ],
)  # fmt: skip
def test_an_excerpt_without_progress_is_about_what_it_shows(text: str, cause: str, tmp_path: Path) -> None:
    assert verdict_of(text, tmp_path).cause == cause


def test_an_abort_after_a_timeout_is_the_watchdogs(tmp_path: Path) -> None:
    waited = "NCCL communicator was aborted on rank 0. Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)"
    ended = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -6) local_rank: 1 (pid: 88)"
    verdict = verdict_of(f"{traceback(f'RuntimeError: {waited}')}{ended}\n", tmp_path)
    assert (verdict.cause, verdict.rank) == ("collective-timed-out", None)


def test_an_exception_far_from_the_end_is_the_cause_when_the_run_only_lists_things_after_it(tmp_path: Path) -> None:
    listing = "".join(f"  - dataset_{number}\n" for number in range(600))
    ended = child_failed(row(1, 1), row(0, 1))
    verdict = verdict_of(steps(5) + traceback("ValueError: no dataset of that name") + listing + ended, tmp_path)
    assert (verdict.cause, "no dataset" in str(verdict.text)) == ("python-exception", True)
    went_on = steps(5) + traceback("ValueError: caught") + listing + steps(40, begin=5) + listing + ended
    assert not verdict_of(went_on, tmp_path).found


def test_an_exception_that_most_ranks_raise_blames_none(tmp_path: Path) -> None:
    def run(ranks: range) -> str:
        seen = "".join(f"[rank{rank}]: ready\n" for rank in range(8))
        return seen + "".join(traceback("KeyError: 'labels'", prefix=f"[rank{rank}]: ") for rank in ranks)

    assert verdict_of(run(range(2, 7)), tmp_path).rank is None
    assert verdict_of(run(range(2, 4)), tmp_path).rank == 2


def test_a_header_behind_a_progress_bar_belongs_to_the_rank_before_it(tmp_path: Path) -> None:
    shown = traceback("KeyError: 'x'", prefix="1: [rank4]: ")
    lines = shown.replace("1: [rank4]: Trace", "1:  96%|###| [rank4]: Trace", 1)
    verdict = verdict_of(lines, tmp_path)
    assert (verdict.cause, verdict.rank) == ("python-exception", 4)
    assert verdict.source is not None


def test_a_step_that_slurm_ended_for_one_task_was_not_ended_from_outside(tmp_path: Path) -> None:
    cancelled = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-03-01T10:00:00 DUE TO {} ***\n"
    assert verdict_of(cancelled.format("SIGNAL Terminated"), tmp_path).cause == "terminated-from-outside"
    assert verdict_of(cancelled.format("TASK FAILURE"), tmp_path).cause is None


def test_a_warning_in_a_short_log_is_no_cause(tmp_path: Path) -> None:
    warned = "[node1:6956] plm:rsh: Warning: setpgid(6961,6961) failed in parent with errno=Permission denied(13)\n"
    assert not verdict_of(warned + "model saved\n", tmp_path).found
    assert verdict_of(warned.replace("Warning: ", "") + "model saved\n", tmp_path).cause == "permission-denied"


NEXTFLOW = (
    "ERROR ~ Error executing process > 'GRID'\n\nCommand exit status:\n  1\n\nCommand output:\n  (empty)\n\n"
    "Command error:\n  reading\n  no rows of the grid\n\nWork dir:\n  /w/12\n\nTip: you can replicate it\n"
)
OF_OTHER_PROGRAMS = [
    ("Error in library(sf) : there is no package called 'sf'\nExecution halted\n", "called 'sf'"),
    ("grid.c:4:2: error: 'rows' undeclared\n    4 | rows\nmake: *** [Makefile:3: grid.o] Error 1\n", "'rows'"),
    ("CMake Error at CMakeLists.txt:9 (message):\n  no BLAS\n\n-- Configuring incomplete, errors!\n", "no BLAS"),
    ("ERROR: UndefVarError: `mesh` not defined\nStacktrace:\n [1] top-level scope\n", "`mesh`"),
    ("main.go:7: open grid.yaml: no such file or directory\nexit status 1\n", "grid.yaml"),
    ("forrtl: severe (29): file not found, unit 9, file /data/grid.in\nImage      PC     Routine\n", "grid.in"),
    ("     Error in routine readpp (1):\n     file grid.upf is not readable\n\n     stopping ...\n", "grid.upf"),
    ("first part of the run completed\ngrid pipeline failed: there are no rows\n\nTotal time: 12 s\n", "no rows"),
    ("sh: ./grid.sh: No such file or directory\n", "grid.sh"),
    (
        "scons: Building targets ...\nscons: *** Do not know how to make File target `grid'.  Stop.\nscons: ended\n",
        "`grid'",
    ),
    ("Can't locate Grid.pm in @INC at grid.pl line 3.\nBEGIN failed--compilation aborted\n", "Grid.pm"),
    ("job.sh: line 3: GRID_HOME: unbound variable\n", "GRID_HOME"),
    ("job.sh: line 9: 4711 Terminated              python grid.py\n", "Terminated"),
    (
        "[10:00:01] [error] [MainThread]: Encountered an error:\nParsing Error\n  no profile\n"
        + "    line\n" * 12
        + "[10:00:01] [debug] [MainThread]: Command `dbt run` failed at 10:00:01 after 1.2 seconds\n",
        "no profile",
    ),
    ("{\bError using horzcat\nThe arrays do not agree.\n\nError in grid (line 4)\n} \b\n", "do not agree"),
    ("{\bIndex exceeds 10.\n\nError in grid (line 3)\ny = x(11);\n} \b\n", "exceeds 10"),
    (". use grid.dta\nfile grid.dta is not there\nr(601);\n\nend of do-file\n\nr(601);\n", "grid.dta"),
    ("ORCA finished by error termination in GRID\n", "GRID"),
    ("run.pl: job failed, log is in exp/grid.log\n", "exp/grid.log"),
    ("run.pl: 4 / 4 failed, log is in exp/grid.*.log\n", "grid.*"),
    ("zsh: killed     python grid.py\n", "killed"),
    ("[1]    77 killed     python grid.py\n", "killed"),
    ("[1]+  Terminated              python grid.py\n", "Terminated"),
    ('{"level":"fatal","msg":"no rows"}\n', "no rows"),
    ("Command '['grid']' returned non-zero exit status 1.\n", "non-zero"),
    ("'rows'\n", "'rows'"),
    ("Failed to load grid.pt\n", "grid.pt"),
    ("Grid file not found: grid.nc\n", "grid.nc"),
    ("❌ Error: no rows\n", "no rows"),
    ("OMP: Error #15: Initializing libiomp5.so\n", "#15"),
    ("EnvironmentNameNotFound: Could not find conda environment: grid\n", "grid"),
    ("License checkout failed.\nLicense Manager Error -4\n", "License"),
    ("Process finished with exit code -1073741819 (0xC0000005)\n", "-1073741819"),
    ("[INFO] BUILD FAILURE\n[ERROR] Failed to build grid\n[ERROR] \n[ERROR] Read more\n", "build grid"),
    (
        "GridError in rule grid:\nJob 2 completed successfully, but no\nExiting because a job execution failed\n",
        "grid:",
    ),
    ("Terminating processes on user request, this might take some time.\n", "user request"),
    ("reading the grid^C\n", "^C"),
    ("GPUassert: out of memory grid.cu 44\n", "grid.cu"),
    ("==7==ERROR: AddressSanitizer: heap-buffer-overflow\n", "Sanitizer"),
    ("'grid' is not recognized as an internal or external command,\n", "'grid'"),
    ("zsh: command not found: grid\n", "grid"),
    ("=>> PBS: job killed: ncpus 12.3 exceeded limit 8 (sum)\n", "ncpus"),
    ("Expected 5 columns at grid.pl line 44, <IN> line 3.\n", "Expected 5"),
    (
        "PHP Fatal error:  Uncaught Exception: no rows in grid.php:3\n#0 {main}\n  thrown in grid.php on line 3\n",
        "no rows",
    ),
    ("! Undefined control sequence.\nl.7 \\grid\n!  ==> Fatal error occurred, no output PDF\n", "Undefined control"),
    (NEXTFLOW, "no rows of"),
    ("005 (12.0.0) 10:05 Job terminated.\n\t(0) Abnormal termination (signal 11)\n\t(0) No core file\n", "signal 11"),
    ("python3: can't open file '/code/grid.py': [Errno 2] No such file or directory\nended\n", "grid.py"),
    ("[pid=1] is running beyond physical memory limits. Killing container.\n", "beyond physical"),
]


@pytest.mark.parametrize(("words", "reason"), OF_OTHER_PROGRAMS)
def test_last_words_of_any_program_name_the_reason_above_them(words: str, reason: str, tmp_path: Path) -> None:
    listed = "".join(f"reading part {part} of the grid\n" for part in range(50))
    verdict = verdict_of(steps(60) + listed + words, tmp_path)
    assert verdict.found
    assert reason in str(verdict.text)


@pytest.mark.parametrize(("words", "reason"), OF_OTHER_PROGRAMS)
def test_words_of_an_end_are_none_where_the_run_goes_on_or_succeeds(words: str, reason: str, tmp_path: Path) -> None:
    assert reason in words
    assert not verdict_of(steps(60) + words + steps(40, begin=60), tmp_path).found
    assert not verdict_of(steps(60) + words + "training finished successfully\n", tmp_path).found


@pytest.mark.parametrize(
    "words",
    ["SyntaxErrorSyntaxError: : invalid syntaxinvalid syntax\n", "    SyntaxError^\n: SyntaxErrorinvalid syntax: \n"],
)
def test_a_program_that_two_processes_cannot_read_is_the_cause_however_their_words_are_torn(
    words: str, tmp_path: Path
) -> None:
    place = '  File "grid.py", line 7\n' * 2 + "        rows = [1,\nrows = [1,\n        ^\n^\n"
    verdict = verdict_of("reading\n" * 70 + place + words, tmp_path)
    assert (verdict.cause, str(verdict.source)) == ("python-exception", "grid.py:7")
    assert "SyntaxError" in str(verdict.text)
    assert not verdict_of(place + words + steps(60), tmp_path).found


@pytest.mark.parametrize("parts", ["ValueError\n: no rows\n", "ValueError\n: \nno rows\n"])
def test_an_exception_in_two_or_three_parts_is_one_line(parts: str, tmp_path: Path) -> None:
    assert verdict_of(steps(60) + traceback(parts.rstrip()), tmp_path).text == "ValueError: no rows"
    assert verdict_of(steps(60) + traceback("ValueError") + "no rows\n", tmp_path).text == "ValueError"


def test_threads_that_raise_after_the_end_of_a_training_end_nothing(tmp_path: Path) -> None:
    raised = "".join(f"Exception in thread Thread-{at}:\n{traceback('OSError: handle is closed')}" for at in (1, 2))
    assert not verdict_of(steps(60) + "End training....\n" + raised, tmp_path).found
    assert verdict_of(steps(60) + raised, tmp_path).found


def test_a_macro_of_a_compiler_is_no_missing_library(tmp_path: Path) -> None:
    compiled = "g++ -D_GLIBCXX_USE_CXX11_ABI=0 -c grid.cpp\n"
    assert not verdict_of(compiled, tmp_path).found
    assert verdict_of("libm.so: version `GLIBCXX_3.4.29' not found\n", tmp_path).cause == "library-mismatch"


@pytest.mark.parametrize(
    "words",
    [
        "Stacktrace:\n  none\n",
        "0 errors generated.\n",
        "Use of uninitialized value $rows at grid.pl line 3.\n",
        "conftest.c:9:1: fatal error: grid.h: No such file or directory\ncompilation terminated.\nchecking... yes\n",
        "make: [Makefile:3: clean] Error 1 (ignored)\n",
        "Number of failed jobs: 0\nJob failed: 0\n",
        "wandb: ERROR the run was deleted before\n",
        "[C 14:00:48.619 NotebookApp] received signal 15, stopping\n[I 14:00:48.620 NotebookApp] Shutting down\n",
        "training finished\nException ignored in: <stdout>\nBrokenPipeError: [Errno 32] Broken pipe\n",
    ],
)
def test_words_that_read_like_an_end_and_are_none(words: str, tmp_path: Path) -> None:
    verdict = verdict_of("".join(f"reading part {part} of the grid\n" for part in range(50)) + words, tmp_path)
    assert not (verdict.fatal and (verdict.found or verdict.text))


SLIM = "ERROR (Eidos): undefined identifier rows.\n\nError on script line 3, character 4:\n\n    rows = 1;\n    ^^^^\n"


def test_a_log_that_only_repeats_an_error_failed_of_it(tmp_path: Path) -> None:
    assert "undefined identifier" in str(verdict_of(SLIM * 20, tmp_path).text)
    assert not verdict_of("reading\n" + SLIM * 20, tmp_path).found


TESTED = (
    "===== test session starts =====\ncollected 9 items\n\n===== ERRORS =====\n    raise ValueError(rows)\n"
    "E   ValueError: no rows\n\ngrid.py:7: ValueError\n{noise}===== short test summary info =====\n"
    "ERROR test_grid.py::test_rows - ValueError...\n===== 1 warning, 4 errors in 1.89s =====\n"
)


@pytest.mark.parametrize("noise", ["", "warned of the grid\n" * 300])
def test_tests_that_failed_as_the_last_words_of_a_log_name_the_first_exception(noise: str, tmp_path: Path) -> None:
    tested = TESTED.format(noise=noise)
    verdict = verdict_of(tested, tmp_path)
    assert (verdict.cause, str(verdict.text).strip(), verdict.line) == ("logged-error", "ValueError: no rows", 6)
    assert not verdict_of(f"{tested}building the image\n" + "copied\n" * 40, tmp_path).found
    assert not verdict_of(tested.replace("4 errors", "4 passed").replace("ERROR ", "PASSED "), tmp_path).found


@pytest.mark.parametrize("script", [3, 300])
def test_the_last_words_of_a_job_stand_above_the_report_of_its_batch_system(script: int, tmp_path: Path) -> None:
    report = (
        f"\n{'-' * 60}\nSender: LSF System <a@b>\nSubject: Job 7 Exited\n\n# LSBATCH: User input\n"
        + "python grid.py\n" * script
        + "\nExited with exit code 2.\n\nThe output (if any) is above this job summary.\n\n"
    )
    verdict = verdict_of(f"7.shell: line 1: syntax error near unexpected token `newline'\n{report}", tmp_path)
    assert (verdict.cause, verdict.line) == ("logged-error", 1)
    well = report.replace("Exited with exit code 2.", "Successfully completed.")
    assert not verdict_of(f"7.shell: line 1: syntax error near unexpected token `newline'\n{well}", tmp_path).found


def test_the_last_words_of_a_program_stand_above_those_of_who_started_it(tmp_path: Path) -> None:
    words = "FATAL ERROR: variable is partially present on the device\n file:/code/grid.c line:116\n\n"
    started = "The target application returned non-zero exit code 1\n" + "Saving the report\n" * 20
    verdict = verdict_of(steps(60) + words + started, tmp_path)
    assert (verdict.cause, verdict.line) == ("logged-error", 61)
    assert "partially present" in str(verdict.text)
    assert not verdict_of(steps(60) + words + "reading the grid\n" * 20 + started, tmp_path).found


@pytest.mark.parametrize("rows", [20, 3000])
def test_all_that_is_indented_below_an_exception_is_its_message(rows: int, tmp_path: Path) -> None:
    raised = traceback("ValueError: Some errors were detected !") + "    Line #84 (6 columns instead of 7)\n" * rows
    assert "Some errors" in str(verdict_of(raised, tmp_path).text)
    assert not verdict_of(raised + "reading the next grid\n" * 300, tmp_path).found


def test_a_place_that_a_warning_names_is_no_traceback_cut_short(tmp_path: Path) -> None:
    assert not verdict_of('warning: two targets\nFile "/code/SConstruct", line 7, in <module>\n', tmp_path).found


def test_a_launcher_that_exits_for_a_signal_of_the_terminal_was_interrupted(tmp_path: Path) -> None:
    killed = "[2026-03-01 10:00:00,1] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 36\n"
    verdict = verdict_of(
        steps(60) + killed + killed.replace("Killing subprocess 36", "received SIGINT, exiting"), tmp_path
    )
    assert verdict.cause == "terminated-from-outside"
    assert "SIGINT" in str(verdict.text)
    assert not verdict_of(steps(60) + killed, tmp_path).found


def test_the_last_cause_of_an_exception_of_java_is_named(tmp_path: Path) -> None:
    raised = "java.lang.IllegalStateException: no start\n\tat a.B.c(B.java:3)\n"
    cause = "Caused by: java.io.FileNotFoundException: /x/y.txt (No such file or directory)\n\tat a.B.d(B.java:3)\n"
    listed = "".join(f"reading part {part} of the grid\n" for part in range(50))
    assert "y.txt" in str(verdict_of(listed + raised + cause, tmp_path).text)
    assert not verdict_of(listed + raised + cause + steps(40), tmp_path).found


def test_a_checkpoint_that_has_no_folder_is_a_missing_file(tmp_path: Path) -> None:
    assert (
        verdict_of("RuntimeError: Parent directory /x/checkpoints does not exist.\n", tmp_path).cause == "file-missing"
    )


@for_each(
    "last",
    [
        "user@host:~$ ^C", "Failed to load the fast kernel, using the default", "[1]+  Done     python grid.py",
        "WARNING grid not found: grid.nc", "✓ Error: 0.031", "Error (3): 0.02", "Killed the old server",
        "ERROR 08-01 21:34:51 [loop.py:70]     raise self._of(out) from None",
    ],
)  # fmt: skip
def test_a_last_line_that_only_reads_like_the_end_of_a_program_is_none(last: str, tmp_path: Path) -> None:
    assert not verdict_of(f"{steps(60)}{last}\n", tmp_path).fatal


def test_an_exception_that_a_logger_recorded_before_it_wrote_on_ended_nothing(tmp_path: Path) -> None:
    recorded = (
        '{level} grid: slow\nTraceback (most recent call last):\n  File "/code/grid.py", line 2, in load\nOSError: no\n'
    )
    info = "2026-03-01 10:00:{:02},000 INFO grid: row {}\n"
    warned, failed = (f"2026-03-01 10:00:00,000 {recorded.format(level=level)}" for level in ("WARNING", "ERROR"))
    for shown, rows in ((warned, 1), (failed, 20)):
        assert not verdict_of(shown + "".join(info.format(row, row) for row in range(rows)), tmp_path).found
        assert verdict_of(shown + "".join(info.format(row, row) for row in range(rows - 1)), tmp_path).found
    # an uncaught one comes through the program's own top
    assert verdict_of(warned.replace("in load", "in <module>") + info.format(1, 1), tmp_path).found


def test_what_a_script_says_after_its_programs_exception_is_not_the_programs_own(tmp_path: Path) -> None:
    raised = steps(60) + traceback("ValueError: no rows")
    assert verdict_of(f"{raised}All done, evaluation finished\n", tmp_path).found
    assert not verdict_of(f"{raised}INFO evaluation finished\n", tmp_path).found
    assert not verdict_of(f"{raised}round=3 mae=0.1\nevaluation finished\n", tmp_path).found
    assert not verdict_of(f"{raised}" + "row\n" * 6 + "Grid Execution Complete\n", tmp_path).found


def test_what_a_child_printed_is_the_cause_rather_than_that_its_parent_says_so(tmp_path: Path) -> None:
    failed = traceback("subprocess.CalledProcessError: Command '['cmake']' returned non-zero exit status 2.")
    verdict = verdict_of(f"{steps(60)}grid.c:4:2: error: no rows\nmake: *** [grid] Error 1\n{failed}", tmp_path)
    assert (verdict.cause, verdict.text, verdict.line) == ("logged-error", "grid.c:4:2: error: no rows", 61)
    assert verdict_of(steps(60) + failed, tmp_path).cause == "python-exception"
    indented = "".join(f"  {line}\n" for line in ("9 errors detected in the compilation", *failed.splitlines()))
    assert str(verdict_of(indented, tmp_path).text).strip() == "9 errors detected in the compilation"


def test_a_chain_of_exceptions_is_one_however_long_it_is_and_whatever_stood_before_its_header(tmp_path: Path) -> None:
    handled = "\nDuring handling of the above exception, another exception occurred:\n\n"
    raised = [traceback(f"ValueError: row {row}") for row in range(4)]
    bar = "Rank 0 Epoch 1:   0%|          | 0/93 [00:00<?, ?it/s]"
    for begin in ("", bar):
        verdict = verdict_of(begin + handled.join(raised), tmp_path)
        assert [event.text for event in verdict.events] == ["ValueError: row 0", "ValueError: row 3"]
    worker = traceback("RuntimeError: Caught KeyError in worker") + "Original " + traceback("KeyError: 'rows'")
    assert verdict_of(bar + worker, tmp_path).text == "KeyError: 'rows'"


def test_the_last_of_a_storm_of_tracebacks_has_its_place_though_its_header_was_one_of_too_many(tmp_path: Path) -> None:
    handled = "\nDuring handling of the above exception, another exception occurred:\n\n"
    storm = handled.join([traceback("OSError: broken image")] * 400)
    verdict = verdict_of(storm + handled + traceback("RecursionError: too deep", line=77), tmp_path)
    assert (verdict.text, str(verdict.source)) == ("RecursionError: too deep", "/code/train.py:77 in main")


def test_the_message_of_an_exception_may_begin_in_the_next_line(tmp_path: Path) -> None:
    raised = steps(60) + traceback("RuntimeError:") + "Fatal Error: no rows\n"
    assert verdict_of(raised, tmp_path).text == "RuntimeError: Fatal Error: no rows"


def test_a_server_that_was_told_to_stop_did_not_lose_its_engine(tmp_path: Path) -> None:
    told = "INFO 08-01 21:34:51 [core.py:1214] [shutdown] EngineCore: trigger received signal=SIGTERM\n"
    lost = traceback("EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.")
    assert not verdict_of(told + lost, tmp_path).fatal
    assert verdict_of("INFO 08-01 21:34:51 [core.py:1214] serving\n" + lost, tmp_path).fatal


def test_a_chain_whose_last_exception_is_cut_off_is_named_by_the_one_before(tmp_path: Path) -> None:
    raised = traceback("InvalidArgumentError (see above for traceback): indices[1] does not index into param")
    handled = "\nDuring handling of the above exception, another exception occurred:\n\n"
    for cut in (
        'Traceback (most recent call last):\n  File "/app/fit.py", line 9, in <module>\n',
        "InvalidArgumentError        Traceback (most recent call last)\n~/app/fit.py in train(model)\n      9\n",
    ):
        assert "does not index" in str(verdict_of(raised + handled + cut, tmp_path).text)


@pytest.mark.parametrize("name", ["InvalidArgumentError", "OutOfRangeError", "AbortedError"])
def test_an_exception_at_which_tensorflow_stopped_is_the_cause_though_it_says_finished(
    name: str, tmp_path: Path
) -> None:
    step = "INFO:tensorflow:global step {}: loss = 5.3843 (0.160 sec/step)\n"
    words = (
        f"INFO:tensorflow:Error reported to Coordinator: <class 'tensorflow.errors_impl.{name}'>, Retval[0] is lost\n"
    )
    log = f"{step.format(1)}{step.format(2)}{words}{step.format(3)}INFO:tensorflow:Finished training! Saving model.\n"
    stops = name == "InvalidArgumentError"  # the others are how data end, or a session that is made anew
    verdict = verdict_of(log, tmp_path)
    assert (verdict.found, "Retval[0] is lost" in str(verdict.text)) == (stops, stops)


def test_an_exception_as_python_represents_it_is_the_cause_wherever_it_stands(tmp_path: Path) -> None:
    said = "Error in call to target 'app.Trainer':\nUsageError('the batch must be divisible')\nfull_key: trainer\n\n"
    hydra = "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
    assert verdict_of("read a row\n" * 300 + said + hydra, tmp_path).text == "UsageError: the batch must be divisible"


def test_what_a_program_passes_on_at_another_level_is_no_last_word(tmp_path: Path) -> None:
    passed = "".join(f"ERROR Tracker$Logger: 2026-06-01 INFO [{turn}] logloss:0.00{turn}\n" for turn in range(9))
    assert not verdict_of(f"{passed}ERROR Trac", tmp_path).found
    assert verdict_of(passed.replace("INFO", "ERROR") + "ERROR Trac", tmp_path).found


def test_a_record_of_an_error_without_words_is_no_last_word(tmp_path: Path) -> None:
    assert not verdict_of("starting\n(Engine pid=7) ERROR 10-25\n", tmp_path).found
    assert verdict_of("starting\n(Engine pid=7) ERROR 10-25 keine Daten\n", tmp_path).found
