"""DeepSpeed's tuner is imported in each of its processes; MLflow, which it imports, is executed when it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from amlnode.remote.main import WITHOUT_MLFLOW
from amlstack.base.paths import PACKAGE
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "lib/deepspeed/__init__.py": "",
    "lib/deepspeed/autotuning/__init__.py": "",
    "lib/deepspeed/autotuning/autotuner.py": "try:\n import mlflow\n has = True\nexcept Exception:\n has = False\n",
    "lib/mlflow/__init__.py": "print('executed')\nlogged = 'logged'\n",
    "before/mlflow.py": WITHOUT_MLFLOW,
}
TUNER = "from deepspeed.autotuning import autotuner; print(autotuner.has)"
USES = "import mlflow; print('imported'); print(mlflow.logged)"


@for_each(
    "name, before, code, printed",
    [
        ("train.py", False, f"{TUNER}; {USES}", "True imported executed logged"),
        ("train.py", True, f"{TUNER}; {USES}", "True imported executed logged"),
        ("train.py", False, f"{TUNER}; print(autotuner.mlflow.logged)", "True executed logged"),
        ("train.py", False, USES, "executed imported logged"),
        ("deepspeed", True, TUNER, "False"),
    ],
)
def test_what_is_printed_in_which_order(name: str, *, before: bool, code: str, printed: str, tmp_path: Path) -> None:
    for file, text in {**FILES, name: f"import amlcpu\n{code}\n"}.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    paths = [*([str(tmp_path / "before")] if before else []), str(tmp_path / "lib"), str(PACKAGE)]
    done = subprocess.run(
        [sys.executable, "-S", str(tmp_path / name)],
        env={"PYTHONPATH": os.pathsep.join(paths)}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.split() == printed.split()
