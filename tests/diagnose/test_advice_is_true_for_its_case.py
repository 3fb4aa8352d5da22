from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from amlstack.diagnose.events import Frame
from amlstack.diagnose.reading.scanner import scan
from amlstack.diagnose.signatures import by_code, table
from tests.support.diagnose.kept_logs import HERE, LINES
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis

MORE = tomllib.loads((HERE / "advice.toml").read_text())
UNCONDITIONAL = ("", "^")
ROWS = [(each.code, at) for each in table() for at, (when, _) in enumerate(each.advice) if when.pattern != "^"]
UNRELATED = ("step 1 loss 2.0", "Epoch 3 done in 12 s")
NEVER_READ = {"exit-without-reason", "environment-variable-missing"}  # shown by records, and by frames of a traceback
NCCL = {"nccl-system-error"}  # its condition is another line near it


def shown(code: str) -> list[str]:
    logs = [*LINES.get(code, ()), *MORE.get(code, ())]
    return [each.shown for log in logs for each in scan("log", [log.encode() + b"\n"]).events if each.code == code]


@for_each("code", MORE)
def test_each_kept_log_of_an_advice_gives_its_code(code: str) -> None:
    for log in MORE[code]:
        assert code in [each.code for each in scan("log", [log.encode() + b"\n"]).events], log


@for_each("code, at", ROWS)
def test_a_sentence_with_a_precondition_stands_in_one_answer_and_lacks_in_two(code: str, at: int) -> None:
    signature = by_code(code)
    when, sentence = signature.advice[at]
    words = max(re.split(r"\{\w+\}", sentence), key=len)
    texts = [*shown(code), *UNRELATED]
    texts += ["rank 3 ended with exit code 7", "KeyError: 'DATA'\ncode: /app/a.py:3"] * (code in NEVER_READ) + [
        "x\nNCCL WARN Bootstrap: no socket"
    ] * (code in NCCL)
    answers = [signature.advised(text) for text in texts]
    holds = [words in answer for answer in answers]
    assert any(holds)
    if when.pattern:
        assert holds.count(False) >= 2
        assert not any(held for held, text in zip(holds, texts, strict=True) if not when.search(text))
    else:
        others = [other for other, _ in signature.advice[:at] if other.pattern not in UNCONDITIONAL]
        assert not any(
            held for held, text in zip(holds, texts, strict=True) if any(each.search(text) for each in others)
        )


@for_each("code", [each.code for each in table()])
def test_no_answer_has_a_slot_that_the_log_did_not_fill(code: str) -> None:
    for text in shown(code):
        assert not re.search(r"(?<!\{)\{[a-z]+\}", by_code(code).advised(text)), text


def answer(folder: Path, log: str) -> Diagnosis:
    file = folder / "log.txt"
    file.write_text(log)
    return diagnose([file])


TRACE = 'Traceback (most recent call last):\n  File "/app/train.py", line 3, in main\n    go()\n'
INSIDE = '  File "/opt/conda/lib/python3.10/site-packages/PIL/Image.py", line 9, in open\n    raise\n'


@for_each("log, quoted", [
        (f"{TRACE}{INSIDE}PIL.UnidentifiedImageError: cannot identify image '/data/cat 12.jpg'", "/data/cat 12.jpg"),
        (f"{TRACE}FileNotFoundError: [Errno 2] No such file or directory: '/data/train.csv'", "/data/train.csv"),
        (f"{TRACE}ImportError: tokenizers>=0.21,<0.22 is required for this module, but found tokenizers==0.20.3.",
         "Install tokenizers>=0.21,<0.22: tokenizers==0.20.3 is there"),
        (f"{TRACE}RuntimeError: The socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
         "The port is 29500"),
        (f"{TRACE}ModuleNotFoundError: No module named 'apex.amp'", "`apex.amp`"),
        (f"{TRACE}KeyError: 'label'", "The missing key is 'label'"),
        (f"{TRACE}ray.exceptions.ActorDiedError: It died.\n\tpid: 7\nWorker exit type: SYSTEM_ERROR", "SYSTEM_ERROR"),
        (f"{TRACE}OSError: [Errno 98] bind ('0.0.0.0', 8265): address already in use", "The port is 8265"),
        ("ERROR: (ClusterCoreQuotaReached) Operation results in exceeding quota.", "ClusterCoreQuotaReached"),
        ("Code: WorkspaceDatastoreCountExceeded", "WorkspaceDatastoreCountExceeded"),
])  # fmt: skip
def test_fact_that_answers_the_question_is_quoted(tmp_path: Path, log: str, quoted: str) -> None:
    assert quoted in answer(tmp_path, log).advice


@for_each(
    "log, wrong",
    [
        (
            "E0000 00:00:00 add_port.cc:10] Failed to add port: Address already in use\nRuntimeError: bind",
            "The port is",
        ),
        (
            "python: can't open file '/mnt/azureml/cr/exe/wd/trian.py': [Errno 2] No such file or directory",
            "inputs.NAME",
        ),
        (f"{TRACE}torch.OutOfMemoryError: CUDA out of memory.", "It asked for"),
        (f"{TRACE}ValueError: bad label 4", "The message names"),
        (f"{TRACE}ValueError: bad label 4\n{INSIDE}", "library"),
        (f"{TRACE}OSError: [Errno 98] Address already in use", "The port is"),
    ],
)
def test_nothing_is_quoted_that_the_log_does_not_say(tmp_path: Path, log: str, wrong: str) -> None:
    said = answer(tmp_path, log)
    assert said.found
    assert wrong not in said.advice


def test_out_of_memory_of_several_tasks_is_the_nodes(tmp_path: Path) -> None:
    said = answer(tmp_path, "step 1\nsrun: error: n1: tasks 2-3: Out Of Memory\n")
    assert (said.cause, said.rank) == ("host-out-of-memory", None)


@pytest.mark.parametrize("log", ["Code: DeadlineExceeded", "the limit is exceeded", "step 4: retries exceeded"])
def test_exceeded_is_a_refusal_only_where_it_is_a_code(tmp_path: Path, log: str) -> None:
    assert answer(tmp_path, log).cause is None


@for_each("file", ["/opt/conda/lib/code.py", "/usr/lib/python3/dist-packages/x.py", r"C:\Python39\lib\runpy.py",
    "<frozen runpy>", r"C:\Users\me\miniconda3\envs\t\Lib\site-packages\x.py",
    "/root/.cache/huggingface/modules/m/modeling.py"])  # fmt: skip
def test_file_of_a_library_is_never_called_the_programs_own(tmp_path: Path, file: str) -> None:
    assert not Frame(file, 3, "f").own
    said = answer(tmp_path, f'Traceback (most recent call last):\n  File "{file}", line 3, in f\nValueError: no')
    assert said.source is None
    assert f"a library's, {file}:3" in said.advice
    assert " own" not in said.advice


@pytest.mark.parametrize("file", ["/opt/conda/work/train.py", "/home/me/lib/train.py", "train.py", "Cell In[3]"])
def test_file_of_the_program_is_its_own(file: str) -> None:
    assert Frame(file, 3, "f").own


RULE = "-" * 74
MPIRUN = f"""{RULE}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{RULE}
{RULE}
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[1234,1],3]
  Exit code:    1
{RULE}"""
SRUN = """srun: error: node1: task 3: Exited with exit code 1
srun: error: node1: tasks 0-2: Killed
srun: Terminating StepId=12.0"""
WATCHDOG = (
    "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE) ran for 600001 ms"
)


@for_each("after", [MPIRUN, SRUN, WATCHDOG])
@for_each("lead", ["", TRACE])
def test_what_a_launcher_or_watchdog_says_later_is_no_cause(tmp_path: Path, lead: str, after: str) -> None:
    said = answer(tmp_path, f"step 1\nstep 2\n{lead}ValueError: Unknown split: traine\n{after}\n")
    assert said.text == "ValueError: Unknown split: traine"
    assert said.cause == ("python-exception" if lead else "bare-exception")
    assert said.rank == (None if after == WATCHDOG else 3)


@pytest.mark.parametrize("after", [MPIRUN, SRUN])
def test_table_of_a_launcher_alone_names_the_rank_and_no_cause(tmp_path: Path, after: str) -> None:
    said = answer(tmp_path, f"step 1\nstep 2\n{after}\n")
    assert (said.found, said.rank) == (False, 3)


def test_exception_without_header_after_which_its_rank_went_on_is_no_cause(tmp_path: Path) -> None:
    later = "".join(f"step {at} loss 2.0\n" for at in range(3, 40))
    said = answer(tmp_path, f"step 1\nValueError: Unknown split: traine\n{later}{SRUN}\n")
    assert said.cause is None


@pytest.mark.parametrize("later", ["Connection reset by peer", "[Rank 0] NCCL communicator was aborted", WATCHDOG])
def test_exception_of_a_library_outside_of_communication_stays_the_cause(tmp_path: Path, later: str) -> None:
    said = answer(tmp_path, f"{TRACE}{INSIDE}OSError: image file is truncated\n{later}\n")
    assert said.text == "OSError: image file is truncated"


def test_exception_of_communication_that_follows_a_timeout_is_a_consequence(tmp_path: Path) -> None:
    inside = INSIDE.replace("PIL/Image.py", "torch/distributed/distributed_c10d.py")
    said = answer(tmp_path, f"{TRACE}{inside}RuntimeError: work failed\n{WATCHDOG}\n")
    assert (said.cause, said.rank) == ("collective-timed-out", None)
