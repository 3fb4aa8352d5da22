"""Commands are read by their words, plain ones by the short way and with the same result."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jobs
from amlstack.base.findings import Level
from amlstack.code_reading.shell import steps

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.base.findings import Finding


def found(folder: Path, command: str, **fields: Any) -> list[Finding]:
    job = jobs.Job(**{"command": command, "environment": "azureml:e:1", "code": "src", **fields})
    plan = jobs.plan(job, jobs.Target(size="Standard_ND96asr_v4"), source=jobs.Source(base=folder))
    return [each for each in plan.findings if each.level is not Level.INFO]


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "src" / "tools").mkdir(parents=True)
    (tmp_path / "src" / "train.py").write_text("from torch import multiprocessing\n")
    (tmp_path / "src" / "run.sh").write_text("")
    (tmp_path / "src" / "tools" / "prepare.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "python train.py",
        "python -u -W ignore train.py --config trian.py",
        "python3.11 tools/prepare.py && python made_by_that.py",
        "torchrun --nnodes 2 --nproc_per_node 8 train.py --lr ${{inputs.lr}}",
        "python -m torch.distributed.run --nproc_per_node=8 train.py",
        "accelerate launch --config_file a.yaml train.py",
        "deepspeed --hostfile=h.py train.py",
        "bash run.sh",
        "./run.sh",
        "A=1 B='x y' python train.py",
        "pip install -r requirements.txt && export A=1 && python train.py",
        "python -m package.of_somebody",
        "python -c 'import other.py'",
        "git clone https://example.org/r . && python fetched.py",
        "cd elsewhere; python other.py",
        "python /mnt/other.py",
        "python $SCRIPT.py",
        "python ${{inputs.script}}.py",
        "python shared/common.py",
        "python 'unbalanced.py",
        "nvidia-smi | tee gpus.txt\npython train.py",
    ],
)
def test_command_gives_no_finding_when_its_script_is_there_or_may_be_made(command: str, code: Path) -> None:
    job = {"inputs": {"lr": 1, "script": "train"}, "code": jobs.Code(path="src", includes=("../shared",))}
    assert [each for each in found(code, command, **job) if each.code == "script-missing"] == []


@pytest.mark.parametrize(
    ("command", "script", "remedy"),
    [
        ("python trian.py", "trian.py", "Did you mean `train.py`?"),
        ("python -u trian.py --epochs 3", "trian.py", "Did you mean `train.py`?"),
        ("pip install x; python3 prepare.py", "prepare.py", "Did you mean `tools/prepare.py`?"),
        ("torchrun --nproc_per_node 8 trian.py", "trian.py", "Did you mean `train.py`?"),
        ("python -m torch.distributed.launch --nproc_per_node 8 trian.py", "trian.py", "Did you mean `train.py`?"),
        ("A=1 bash start.sh", "start.sh", "There are `run.sh`, `tools/prepare.py`, `train.py`."),
        ("./start", "./start", "There are `run.sh`, `tools/prepare.py`, `train.py`."),
    ],
)
def test_command_gives_a_finding_when_its_script_is_not_in_the_code(
    command: str, script: str, remedy: str, code: Path
) -> None:
    (finding,) = found(code, command)
    assert (finding.code, finding.where, finding.level) == ("script-missing", "command", Level.ERROR)
    assert f"`{script}`" in finding.seen
    assert sorted(finding.remedy.split("`")) == sorted(remedy.split("`"))


def test_missing_script_is_a_warning_when_the_code_holds_no_script_yet(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (finding,) = found(tmp_path, "python train.py")
    assert (finding.code, finding.level) == ("script-missing", Level.WARNING)


def test_binding_with_single_braces_is_an_error(code: Path) -> None:
    (finding,) = found(code, "python train.py --lr ${inputs.lr} --n ${{inputs.lr}} --home ${HOME}", inputs={"lr": 0.1})
    assert (finding.code, finding.level) == ("binding-of-the-shell", Level.ERROR)
    assert finding.remedy == "Write `${{inputs.lr}}`."


@pytest.mark.parametrize(
    ("words", "nodes", "codes"),
    [
        ("--local_rank $RANK", 2, ["local-rank-from-rank"]),
        ("--local-rank=${RANK}", 2, ["local-rank-from-rank"]),
        ("--local_rank $RANK", 1, []),
        ("--local_rank $LOCAL_RANK", 2, []),
        ("--local_rank $RANK_FILE", 2, []),
    ],
)
def test_global_rank_as_local_rank_is_a_finding_on_several_nodes(
    words: str, nodes: int, codes: list[str], code: Path
) -> None:
    assert [each.code for each in found(code, f"python train.py {words}", nodes=nodes)] == codes


def test_local_input_that_does_not_exist_is_a_finding(code: Path) -> None:
    fields = {"inputs": {"d": jobs.Input(path="./data"), "e": jobs.Input(path="./src")}}
    missing = [
        each
        for each in found(code, "python train.py ${{inputs.d}} ${{inputs.e}}", **fields)
        if each.code == "input-path-missing"
    ]
    assert [(each.where, each.level) for each in missing] == [("inputs.d.path", Level.WARNING)]


def test_steps_are_the_words_of_each_simple_command() -> None:
    assert [
        list(step) for step in steps("A=1 python a.py --x 'b c' && ls | wc; echo \"${{ inputs.x }}\"\npython b.py")
    ] == [
        ["A=1", "python", "a.py", "--x", "b c"],
        ["ls"],
        ["wc"],
        ["echo", "BOUND"],
        ["python", "b.py"],
    ]


WORDS = st.text(alphabet=st.one_of(st.sampled_from("abc-_.=/$#{}[]*?!~%@:,+ \t\r\x0b\xa0é"), st.characters()))


@given(WORDS.filter(lambda text: not set(text) & set(";&|()<>\n'\"\\")))
def test_the_words_are_those_of_the_lexer(command: str) -> None:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    bound = "[[" in command or "]]" in command or "${{" in command
    words = list(lexer)
    assert bound or [list(step) for step in steps(command)] == ([words] if words else [])
