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
