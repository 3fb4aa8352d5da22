"""The scripts that a command starts are read: mistakes are found with line and remedy, right ones are left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import jobs
from amlstack.base.findings import Level
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.base.findings import Finding

ARGPARSE = """
import argparse
def arguments():
    parser = argparse.ArgumentParser()
    group = parser.add_argument_group("training")
    group.add_argument("--lr", "-l", type=float, default=0.1)
    group.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--layers", nargs="+")
    parser.add_argument("data", nargs="?")
    return parser.parse_args()
if __name__ == "__main__":
    arguments()
"""
KNOWN = ARGPARSE.replace("parse_args()", "parse_known_args()")
DATACLASSES = """
from dataclasses import dataclass, field
from transformers import HfArgumentParser, TrainingArguments
@dataclass
class ModelArguments:
    model_name: str
    lora: bool = field(default=True, metadata={"help": "LoRA"})
    modules: list[str] = field(default_factory=list)
def main():
    parser = HfArgumentParser((ModelArguments, TrainingArguments))
    if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
        return parser.parse_json_file(sys.argv[1])
    else:
        return parser.parse_args_into_dataclasses()
main()
"""
OWN_DATACLASSES = DATACLASSES.replace("(ModelArguments, TrainingArguments)", "ModelArguments")
CLICK = """
import click
@click.command()
@click.option("--lr", default=0.1)
@click.option("--data", required=True)
@click.option("--fp16/--no-fp16", default=False)
@click.option("--verbose", is_flag=True)
@click.argument("out")
def main(lr, data, fp16, verbose, out): ...
if __name__ == "__main__":
    main()
"""
TYPER = """
import typer
from typing import Annotated
app = typer.Typer()
@app.command()
def main(data: str, learning_rate: float = 0.1, fp16: bool = False,
         epochs: Annotated[int, typer.Option("--epochs", "-e")] = 1, out: str = typer.Option(...)): ...
app()
"""
FIRE = """
import fire
def main(base_model, lr=0.1, fp16=False):
    print(base_model)
fire.Fire(main)
"""
MISTAKES = {
    "argparse: unknown": (ARGPARSE, "--epochs 1 --learning_rate 2", "unknown", "`--learning_rate`"),
    "argparse: near": (ARGPARSE, "--epochs 1 --layrs 2", "unknown", "Did you mean `--layers`?"),
    "argparse: missing": (ARGPARSE, "--lr 1", "missing", "(train.py:7)"),
    "argparse: no value": (ARGPARSE, "--epochs 1 --lr", "value", "Write `--lr VALUE`."),
    "argparse: no value before the next": (ARGPARSE, "--lr --epochs 1", "value", "`--lr`"),
    "argparse: value of a switch": (ARGPARSE, "data --epochs 1 --fp16 True", "extra", "`--fp16 True`"),
    "argparse: two words": (ARGPARSE, "a b --epochs 1", "extra", "`b`"),
    "argparse: missing though the rest is taken": (KNOWN, "--lr 1 --other 3", "missing", "`--epochs VALUE`"),
    "argparse: bound": (ARGPARSE, "--epochs ${{inputs.a}} --learn ${{inputs.a}}", "unknown", "`--learn`"),
    "dataclasses: missing": (DATACLASSES, "--output_dir out", "missing", "(train.py:6)"),
    "dataclasses: unknown": (OWN_DATACLASSES, "--modell_name x --model_name y", "unknown", "`--model_name`?"),
    "click: unknown": (CLICK, "--data d --rate 1 out", "unknown", "`--rate`"),
    "click: missing": (CLICK, "out", "missing", "`--data VALUE`"),
    "click: argument missing": (CLICK, "--data d", "missing", "a positional argument"),
    "typer: underscores": (TYPER, "d --out o --learning_rate 1", "unknown", "Did you mean `--learning-rate`?"),
    "typer: missing": (TYPER, "d", "missing", "`--out VALUE`"),
    "fire: unknown": (FIRE, "--base_model x --rate 1", "unknown", "`--rate`"),
    "fire: missing": (FIRE, "--lr 1", "missing", "`--base_model VALUE`"),
}
DEEPSPEED = "parser = deepspeed.add_config_arguments(parser)"
LOOP = "for n in N: parser.add_argument(f'--{n}')"
IF = ARGPARSE.replace('    group.add_argument("--epochs"', '    if X: group.add_argument("--epochs"')


def with_line(line: str) -> str:
    """The script with a line before its arguments are read."""
    return ARGPARSE.replace("    return", f"    {line}\n    return").replace("argparse\n", "argparse, deepspeed\n", 1)


RIGHT = {
    "argparse": (ARGPARSE, "d --epochs 1 --lr=-1e-3 --layers 1 2 --fp16"),
    "argparse: cut short": (ARGPARSE, "--ep 1 -l2"),
    "argparse: a word that may be more": (ARGPARSE, "$ARGS"),
    "argparse: a binding that may be more": (ARGPARSE, "${{inputs.a}} ${{inputs.a}}"),
    "argparse: an optional part": (ARGPARSE, "--epochs 1 $[[--lr ${{inputs.a}}]]"),
    "argparse: lines": (ARGPARSE, "--epochs 1 \\\n  --lr 2"),
    "argparse: output into a file": (ARGPARSE, "--epochs 1 > log.txt 2>&1"),
    "argparse: an empty value": (ARGPARSE, "--epochs '' --lr 1"),
    "argparse: a value with an equals sign": (ARGPARSE, "--epochs 1 --layers a=1 b=2 --lr x=1"),
    "argparse: help": (ARGPARSE, "--epochs 1 --help"),
    "argparse: known ones only": (KNOWN, "--epochs 1 --other 3"),
    "argparse: parents": (ARGPARSE.replace("ArgumentParser()", "ArgumentParser(parents=[p])"), "--epochs 1 --x 1"),
    "argparse: subcommands": (with_line("sub = parser.add_subparsers()"), "fit --epochs 1 --x 1"),
    "argparse: another module adds": (with_line("lib.add(parser)"), "--epochs 1 --x 1"),
    "argparse: DeepSpeed adds": (with_line(DEEPSPEED), "--epochs 1 --deepspeed --deepspeed_config c.json"),
    "argparse: options in a loop": (with_line(LOOP), "--epochs 1 --x 1"),
    "argparse: required under a condition": (IF, "--lr 1"),
    "argparse: other words than the command's": (ARGPARSE.replace("parse_args()", "parse_args([])"), "--x 1"),
    "argparse: words are changed": (with_line("sys.argv.remove('--x')"), "--epochs 1 --x"),
    "dataclasses": (DATACLASSES, "--model_name x --lora False --modules a b --output_dir o"),
    "dataclasses: a file": (DATACLASSES, "config.json"),
    "dataclasses: negated, with dashes": (OWN_DATACLASSES, "--model-name x --no_lora"),
    "dataclasses: a base of the same name": (
        DATACLASSES.replace("class ModelArguments:", "class ModelArguments(lib.ModelArguments):"),
        "--model_name x --other 1",
    ),
    "click": (CLICK, "--lr 1 --data d --no-fp16 --verbose out"),
    "click: unknown ones are passed on": (
        CLICK.replace("command()", "command(context_settings=S)"),
        "--data d --x out",
    ),
    "click: group": (CLICK.replace("click.command", "click.group"), "fit --x"),
    "typer": (TYPER, "d --learning-rate 1 --no-fp16 -e 2 --out o"),
    "fire": (FIRE, "x --lr 1 --nofp16"),
    "fire: with dashes": (FIRE, "--base-model x -l 2"),
    "fire: any": (FIRE.replace("fp16=False", "**rest"), "--base_model x --any 1"),
    "nothing is read": ("print(1)", "--x 1"),
    "absl": ("from absl import flags\nflags.DEFINE_string('x', '', '')", "--y 1"),
}


def found(folder: Path, command: str, **fields: Any) -> list[Finding]:
    job = jobs.Job(command=command, code=".", environment="acpt-pytorch-2.8-cuda12.6", compute="c", **fields)
    plan = jobs.plan(job, jobs.Target("Standard_ND96asr_v4", "c", 4), source=jobs.Source(base=folder))
    return [each for each in plan.findings if each.code.startswith(("script-", "binding-", "variable-", "version-"))]


@for_each("start", ["python train.py", "torchrun --nproc_per_node 8 train.py", "python -m train"])
@for_each("case", MISTAKES.values())
def test_an_argument_that_the_script_refuses_is_found(case: tuple[str, ...], start: str, tmp_path: Path) -> None:
    script, words, kind, said = case
    (tmp_path / "train.py").write_text(script)
    (finding,) = found(tmp_path, f"{start} {words}", inputs={"a": 1})
    assert (finding.code, finding.where) == (f"script-argument-{kind}", "command")
    assert said in finding.message
    assert finding.level is Level.ERROR


@for_each("case", RIGHT.values())
def test_a_right_command_or_an_unknown_script_has_no_finding(case: tuple[str, str], tmp_path: Path) -> None:
    script, words = case
    (tmp_path / "train.py").write_text(script)
    assert found(tmp_path, f"python train.py {words}", inputs={"a": 1}) == []


@pytest.mark.parametrize("command", ["python train.py || true", "python train.py; echo done", "python train.py & wait"])
def test_a_script_whose_end_is_not_the_jobs_gives_a_warning(command: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ARGPARSE)
    assert [each.level for each in found(tmp_path, command)] == [Level.WARNING]


def test_a_syntax_error_is_found_at_its_line_in_the_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os\nif os.sep\n    pass\n")
    (finding,) = found(tmp_path, "torchrun train.py")
    assert (finding.code, finding.file, finding.line) == ("script-syntax", str(tmp_path / "train.py"), 2)
    assert (finding.level, finding.seen) == (Level.ERROR, "The script is no Python: expected ':'")


@pytest.mark.parametrize("text", ["type X = int\n", "def f[T](x: T): ...\n", 'x = f"{d["a"]}"\n', "\ufeffimport os\n"])
def test_what_a_later_python_reads_is_no_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(text)
    assert [each for each in found(tmp_path, "python train.py") if each.level is Level.ERROR] == []


@for_each(
    "command, codes",
    [
        ("python ../shared/train.py", ["script-outside-code"]),
        ("pip install x && bash ../run.sh", ["script-outside-code"]),
        ("torchrun --nproc_per_node 8 ../shared/train.py", ["script-outside-code"]),
        ("A=1 accelerate launch --multi_gpu ../shared/train.py --lr 1", ["script-outside-code"]),
        ("python -m torch.distributed.run --nnodes 2 ../train.py", ["script-outside-code"]),
        ("torchrun train.py --config ../other.py", []),
        ("cd src && python ../train.py", []),
        ("git clone https://example.org/r ../r && python ../r/train.py", []),
        ("python src/../train.py", []),
        ("python /mnt/train.py", []),
    ],
)
def test_a_script_outside_of_the_code_folder_is_found(command: str, codes: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "src").mkdir()
    assert [each.code for each in found(tmp_path, command)] == codes


@pytest.mark.parametrize(
    ("name", "text", "left_out"),
    [
        (".amlignore", "*.py\n", True),
        (".gitignore", "train.py\n", True),
        (".gitignore", "*.py\n!train.py\n", False),
        (".amlignore", "data/\n", False),
    ],
)
def test_a_script_that_an_ignore_file_leaves_out_is_found(
    name: str, text: str, *, left_out: bool, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / name).write_text(text)
    findings = found(tmp_path, "python train.py")
    assert [(each.code, each.level) for each in findings] == [("script-left-out", Level.ERROR)] * left_out
    assert all(each.remedy == f"Write `!train.py` at the end of `{name}`." for each in findings)


@for_each("written, meant", [
        ("$inputs.lr", True), ("{{inputs.lr}}", True), ("${{inputs.lr}", True), ("$(inputs.lr)", True),
        ("${inputs.lr}", True), ("$outputs.model", False), ("{{inputs.other}}", False),
])  # fmt: skip
def test_other_spellings_of_a_binding_are_found(written: str, *, meant: bool, tmp_path: Path) -> None:
    (finding,) = found(tmp_path, f"python -c 'x' {written} ${{{{inputs.lr}}}}", inputs={"lr": 1})
    assert (finding.code, finding.level) == ("binding-of-the-shell", Level.ERROR if meant else Level.WARNING)
    assert finding.remedy.startswith(("Write `${{inputs.", "Write `${{outputs.model}}`"))


@for_each("written", ["$${{inputs.lr}}", "{inputs.lr}", "$my_inputs.lr", "\\$inputs.lr", "${{ inputs.lr }}"])
def test_what_is_no_binding_or_a_right_one_has_no_finding(written: str, tmp_path: Path) -> None:
    assert found(tmp_path, f"python -c 'x' {written}", inputs={"lr": 1}) == []


def test_a_binding_in_a_variable_is_a_warning_of_what_is_not_known(tmp_path: Path) -> None:
    variables = {"LR": "${{inputs.lr}}", "HOME": "${HOME}"}
    (finding,) = found(tmp_path, "python -c x", inputs={"lr": 1}, environment_variables=variables)
    assert (finding.code, finding.where, finding.level) == (
        "variable-binding", "environment_variables.LR", Level.WARNING
    )  # fmt: skip
    assert finding.remedy == "Set it in the command: `export LR=${{inputs.lr}} && …`."


@for_each(
    "written, right",
    [
        ("azureml:data:latest", "azureml:data@latest"),
        ("azureml:data:@latest", "azureml:data@latest"),
        ("azureml:data:3@latest", "azureml:data@latest"),
        ("azureml://registries/r/data/d/versions/latest", "azureml://registries/r/data/d/labels/latest"),
        ("azureml:data@latest", ""),
        ("azureml:latest:3", ""),
        ("azureml://datastores/d/paths/latest", ""),
    ],
)
def test_a_version_called_latest_is_found(written: str, right: str, tmp_path: Path) -> None:
    findings = found(tmp_path, "python -c x ${{inputs.d}}", inputs={"d": jobs.Input(path=written)})
    assert [each.remedy for each in findings] == [f"Write `{right}`, or better a version."] * bool(right)
