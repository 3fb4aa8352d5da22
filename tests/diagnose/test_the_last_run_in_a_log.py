"""Several runs, or several processes, write into one log: only what ended the last one is its cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.diagnose import diagnose
from tests.support.diagnose.log_texts import steps, traceback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis

RULE = "-" * 74 + "\n"
STOPPED = (
    f"{RULE}Primary job  terminated normally, but 1 process returned\na non-zero exit code.\n{RULE}{RULE}"
    f"mpirun noticed that process rank 2 with PID 0 on node n1 exited on signal 15 (Terminated).\n{RULE}"
)
BANNER = "read the options of the run\nbuild the tables of the terrain\nconnect the joints of the robot\n"
UNREAD = '  File "{file}", line 7\n    return total\n         ^\nIndentationError: expected an indented block\n'
JULIA = "ERROR: LoadError: DomainError with -0.5:\nsqrt got a negative number.\nStacktrace:\n" + "  [1] f\n" * 70
FRAMES = "\tat org.a.Job.run(Job.java:13)\n" * 20
LSF = (
    "-----\nSender: LSF System <lsf@hpc>\nSubject: Job 7: <train> in cluster <dcc> Exited\n\nJob <train> was sent\n"
    "Job was executed on host(s) <n-1>\nStarted at noon\n\n{end}\n\nResource usage summary:\n\n    CPU time : 17 sec.\n"
    "    Max Memory : 29 MB\n    Average Memory : 27 MB\n    Max Swap : -\n    Max Processes : 4\n    Max Threads : 6\n"
    "    Run time : 3384 sec.\n\nThe output (if any) is above this job summary.\n\n\nPS:\n\nRead file <err> for it.\n"
)
CHILD = traceback("subprocess.CalledProcessError: Command 'render scene' died with <Signals.SIGABRT: 6>.")
BUFFERS = "".join(f"\tBuffer {number}:\n\t\tSize: 64.00MiB\n\t\tShape: f32[64,8,{number}]\n\n" for number in range(24))
NO_MEMORY = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9663676416 bytes."


def verdict_of(text: str, folder: Path) -> Diagnosis:
    (folder / "out.log").write_text(text)
    return diagnose([folder])


@for_each("text, cause, shown", [
        # The second run was interrupted; without a step of its own it may be a process of the first.
        (traceback("TypeError: no dict") + steps(3) + traceback("KeyboardInterrupt"), "terminated-from-outside", ""),
        (traceback("TypeError: no dict") + traceback("KeyboardInterrupt"), "python-exception", "no dict"),
        # A batch script went on from one of its programs, and from cp, to one of Julia.
        (traceback("AttributeError: no such thing") + "cp: cannot stat 'grid.jld2': No such file or directory\n"
         + JULIA + "srun: error: n1: task 0: Exited with exit code 1\n", "python-exception", "DomainError with -0.5"),
        # Other ranks write the banner too.
        (BANNER + "warned\n" * 70 + traceback("FileExistsError: [Errno 17] File exists: 'a'") + BANNER
         + "warned\n" * 12 + STOPPED, "python-exception", "File exists"),
        # What a message lists is no banner.
        (f"E client.cc:25] Execution failed: {NO_MEMORY}\n{BUFFERS}" + traceback(f"XlaRuntimeError: {NO_MEMORY}")
         + BUFFERS, "cuda-out-of-memory", "9663676416"),
        ("note\n" * 50 + UNREAD.format(file="train.py") + "note\n" * 15, "python-exception", "indented"),
        ("note\n" * 50 + UNREAD.format(file="/opt/lib/python3.9/site-packages/old/x.py") + "note\n" * 15, None, ""),
        ("Failed to connect to the renderer\nAborted (core dumped)\n" + CHILD, "connection-failed", "renderer"),
        (steps(5) + "[E] ERROR: no parser for the node\n[E] engine\n[I] done\n&&&& FAILED TensorRT.trtexec # x\n",
         "logged-error", "no parser"),
        # TensorRT quotes the node before it says why.
        (steps(5) + "[E] [TRT] a.cpp:723: --- End node ---\n[E] [TRT] a.cpp:726: ERROR: no shape\n"
         "[E] engine\n&&&& FAILED x\n",
         "logged-error", "no shape"),
        # Who cannot be read has done nothing before.
        ("[rank1]: ready\n" + traceback("ImportError: no rows") + "note\n" * 50 + UNREAD.format(file="train.py"),
         "python-exception", "indented"),
        ("note\n" * 50 + UNREAD.format(file="train.py").replace("Error: expected", "Error^\n: expected"),
         "python-exception", "IndentationError: expected an indented block"),
        # Java's deepest cause, with frames to the log's end; what Maven writes below it is a summary.
        (f'Exception in thread "main" java.lang.X: n\n{FRAMES}Caused by: org.LoggingException: two bindings\n{FRAMES}',
         "native-fatal-error", "two bindings"),
        (f"org.a.FileAlreadyExistsException: out/1 is there\n{FRAMES}java.lang.NullPointerException\n{FRAMES}",
         "bare-exception", "out/1"),
        ("a.JobException: Job failed.\n" + FRAMES + "Caused by: a.TimeoutException: no broker\n" + FRAMES * 2
         + "[ERROR] Failed to execute goal x: failed\n[ERROR] -e\n", "bare-exception", "no broker"),
        # Raised again without its words.
        ("0: " + traceback("AssertionError: no memory").replace("\n", "\n0: ") + "\n0: "
         + traceback("AssertionError").replace("\n", "\n0: ") + "\nsrun: error: n1: task 0: Exited with exit code 1\n",
         "python-exception", "no memory"),
        # A step of Slurm is no step of a training, and LSF's report no banner.
        ("slurmstepd: error: *** JOB 41 ON c1 CANCELLED AT 2024-07-09T14:51:59 ***\n"
         + "slurmstepd: error: *** STEP 42.0 ON c1 CANCELLED AT 2024-07-09T14:52:03 ***\n" * 30,
         "job-cancelled", "JOB 41"),
        (LSF.format(end="Exited with exit code 1.") + "ready\n" * 40
         + LSF.format(end="TERM_OWNER: job killed by owner."), "job-cancelled", "TERM_OWNER"),
        # Azure ML's own log of a job quotes the program's last words.
        ("INFO close\n" * 60 + "INFO job completed\n" + "2025-06-09T03:40:15.43Z ERROR " + "cycler:" * 200
         + " Failure { exit_code: 2, error_message: \"User process 'python' exited with status code 2. Error: "
         + "/env" * 40 + "/lib.so: old\\npython: can't open file '/a.py': [Errno 2] No such file or directory\\n\" })\n"
         + "2025-06-09T03:40:15.45Z  INFO end: close\n" * 7, "file-missing", "a.py"),
        # The shell's word stands in the line of the bar.
        (steps(5) + "train:  68%|██████▊   | 15/22 [00:19<00:09,  1.29s/it]Killed\n",
         "signal-9-likely-out-of-memory", "Killed"),
        ("09:00:01  Encountered an error:\nRuntime Error\n  the profile has no target\n09:00:02  summary\n",
         "logged-error", "no target"),
])  # fmt: skip
def test_what_ended_the_last_run_is_the_cause(text: str, cause: str | None, shown: str, tmp_path: Path) -> None:
    verdict = verdict_of(text, tmp_path)
    assert verdict.cause == cause
    assert shown in str(verdict.text)


def test_a_traceback_that_shows_no_line_of_the_program_names_no_cause(tmp_path: Path) -> None:
    begin = 'Traceback (most recent call last):\n  File "<frozen runpy>", line 88, in _run_code\n'
    library = '  File "/opt/lib/python3.12/site-packages/trainer/__main__.py", line 12, in <module>\n'
    verdict = verdict_of(begin + library, tmp_path)
    assert (verdict.found, verdict.fatal) == (False, True)
    shown = verdict_of(f'{begin}{library}  File "/code/train.py", line 3, in main\n', tmp_path)
    assert shown.cause == "traceback-cut-short"
