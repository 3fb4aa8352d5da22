"""Every parameter of every construct, given what reading cannot know: a placeholder with its finding, nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from amlstack.migrate.constructs import constructs
from amlstack.migrate.migration import migrate
from amlstack.migrate.report import markdown
from amlstack.migrate.values import MARK

if TYPE_CHECKING:
    from pathlib import Path

HEAD = (
    "import absent, sys\nfrom absent import y\nfrom azureml.core import *\n"
    "def f():\n    return y\nclass C:\n    a = y\n"
)
VALUES = ("y", "absent.z", "f", "C", "C()", "lambda: 1", "sys.argv[1]", "b'x'", "1j", "...", "[y]", "(f, C())",
          "{'a': y}", "{y: f}", "{(1, 2): C}", "f'{f}'", "'%s' % C", "'{}'.format(f)", "str(C())",
          "ws", "{1, y}")  # fmt: skip
PARTS = (
    "ScriptRunConfig({0}, {0}, [{0}], compute_target={0}, environment={0}, distributed_job_config={0})",
    "Estimator({0}, entry_script={0}, script_params={{{0}: {0}}}, distributed_training={0}, inputs=[{0}])",
    "HyperDriveConfig({0}, {0}, {0}, {0}, {0}, {0}, {0}, run_config={0})",
    "Pipeline(ws, [PythonScriptStep({0}, {0}, [{0}], {0}, {0}, inputs=[{0}], outputs=[{0}]), {0}])",
    "Pipeline(ws, [ParallelRunStep({0}, {0}, [{0}], {0}), HyperDriveStep({0}, {0}, {0})])",
)
"""Objects of v1 that hold another in each of their places."""
LEAKED = re.compile(r"\w+\((?:dotted|text|kind|node|of)=|<(?:function|class|amlstack)| object at 0x|Ellipsis|b'x'")


def program(value: str, *, handed_on: bool) -> str:
    """A program that makes each construct out of a value, and hands either the value or each construct to others."""
    lines = [HEAD]
    for number, row in enumerate(each for each in constructs().values() if each.takes and each.name[0] not in ".*"):
        given = ", ".join(f"{name}={value}" for name in row.takes if name[0] not in "_*")
        lines += [f"o{number} = {row.name}({given})", f"o{number}.a = o{number}.compute = {value}"]
        lines += [part.format(f"o{number}") for part in PARTS if handed_on]
    return "\n".join([*lines, *(part.format(value) for part in PARTS)])


@pytest.mark.parametrize(("value", "handed_on"), [*((each, False) for each in VALUES), ("y", True)])
def test_no_output_holds_anything_but_text_and_placeholders(tmp_path: Path, value: str, *, handed_on: bool) -> None:
    (tmp_path / "submit.py").write_text(program(value, handed_on=handed_on), "utf-8")
    found = migrate([tmp_path / "submit.py"], tmp_path / "v2")
    assert len(found.files) > len(PARTS)
    outputs = "\n".join([*found.files.values(), markdown(found.items, [*found.files]), *map(str, found.items)])
    assert LEAKED.findall(MARK.sub("", outputs)) == []
    named = {(item.construct, item.place) for item in found.items}
    marks = {match.groups() for text in found.files.values() for match in MARK.finditer(text)}
    assert {(what, f"{file}:{line}") for what, file, line in marks} <= named
