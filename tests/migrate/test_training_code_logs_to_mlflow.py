"""Training code that logs to a run of SDK v1 gets a patch; what is not a call stays as it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.migrate.migration import migrate
from amlstack.migrate.training_code import difference, patched
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

IMPORT = "from azureml.core import Run\n"
CASES = {
    "formatting stays": (
        f"{IMPORT}\nrun = Run.get_context()  # ours\n\nrun.log('loss',   0.5)   # each\n",
        "import mlflow\n\npass  # ours\n\nmlflow.log_metric('loss',   0.5)   # each\n",
    ),
    "names of arguments": (
        f"import os\n{IMPORT}run = Run.get_context()\nrun.log(name='a', value=i, description='d')\n",
        "import os\nimport mlflow\nmlflow.log_metric(key='a', value=i)\n",
    ),
    "calls that go": (
        f"{IMPORT}run = Run.get_context(allow_offline=True)\nif main:\n    run.tag('é', 'b')\n    run.complete()\n",
        "import mlflow\nif main:\n    mlflow.set_tag('é', 'b')\n",
    ),
    "a run as an attribute": (
        f"{IMPORT}def f(self):\n    self.run = Run.get_context()\ndef g(self):\n    self.run.log('a', 1, '', 3)\n",
        "import mlflow\ndef f(self):\n    pass\ndef g(self):\n    mlflow.log_metric('a', 1, 3)\n",
    ),
    "other names of the import": (
        "from azureml.core import Run, Model\nrun = Run.get_context()\nModel()\nrun.log('a', 1)\n",
        "import mlflow\nfrom azureml.core import Run, Model\nModel()\nmlflow.log_metric('a', 1)\n",
    ),
}


@for_each("before, after", CASES.values())
def test_calls_become_mlflow_and_all_else_stays(before: str, after: str) -> None:
    found = patched(before, "train.py")
    assert found.text == after
    assert {item.state for item in found.items} <= {"migrated", "dropped"}


@for_each(
    "line, construct",
    [
        ("run.log_list('a', [1])", "Run.log_list"),
        ("run.log_image('a', plot=p)", "Run.log_image"),
        ("run.log('a', 'text')", "Run.log"),
        ("run.log(*pair)", "Run.log"),
        ("ws = run.experiment.workspace", "Run.experiment"),
        ("train(run)", "Run"),
        ("run.input_datasets['x']", "Run.input_datasets"),
        ("run.something_new()", "Run.something_new"),
    ],
)
def test_what_a_person_has_to_do_is_named_and_its_line_stays(line: str, construct: str) -> None:
    before = f"from azureml.core import Run\nrun = Run.get_context()\nrun.log('b', 1)\n{line}\n"
    found = patched(before, "train.py")
    assert found.text == before.replace("run.log('b'", "mlflow.log_metric('b'").replace(
        "from az", "import mlflow\nfrom az", 1
    )
    [item] = [item for item in found.items if item.state == "hand"]
    assert (item.construct, item.line) == (construct, 4)
    assert item.how


def test_a_patch_is_a_unified_diff() -> None:
    end = "\\ No newline at end of file\n"
    expected = f"--- a/src/train.py\n+++ b/src/train.py\n@@ -1,2 +1,2 @@\n a\n-b\n{end}+c\n{end}"
    assert difference("a\nb", "a\nc", "src/train.py") == expected


@for_each("text", ["", "x = 1\n", "import get_context\n", "get_context(", "run = 1\nrun.log(2)\n# get_context"])
def test_other_code_is_left_alone(text: str) -> None:
    assert patched(text, "train.py") == (text, ())


@for_each(
    "line, named",
    [
        ("rank = os.environ['AZ_BATCHAI_TASK_INDEX']", ["AZ_BATCHAI_TASK_INDEX"]),
        ("hosts = os.environ['AZ_BATCH_NODE_LIST']", ["AZ_BATCH_NODE_LIST"]),
        ("log = 'azureml-logs/70_driver_log_0.txt'", ["azureml-logs/70_driver_log_0.txt"]),
        ("log = '70_driver_log.txt'  # azureml", ["70_driver_log.txt"]),
        ("log = 'outputs/170_driver_log.txt'  # azureml", []),
        ("rank = os.environ['RANK']  # azureml", []),
    ],
)
def test_variables_and_logs_of_v1_in_training_code_are_named(line: str, named: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"import os\n{line}\n")
    items = migrate([tmp_path], tmp_path / "out").items
    assert [(item.construct, item.line, item.state) for item in items] == [(name, 2, "hand") for name in named]
