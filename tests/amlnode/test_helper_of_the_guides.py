from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from amlnode import bundle
from amlnode.__main__ import main
from amlstack.base.paths import PROJECT
from tests.support.amlnode.launch_variables import BATCH, MASTER, ompi, torch
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = """
import os
from aml_mpienv import (get_global_size, get_local_rank, get_local_size, get_rank, get_world_size,
                        set_environment_variables_for_nccl_backend)
set_environment_variables_for_nccl_backend()
print(get_rank(), get_local_rank(), get_global_size(), get_world_size(), get_local_size(), os.environ["LOCAL_RANK"])
"""


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder of user code with both files written into it; the package itself is out of reach."""
    assert main(["write", str(tmp_path)]) == 0
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def run(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    # -S: what is installed, the package among it, is not to be found.
    return subprocess.run(
        [sys.executable, "-S", *words],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("environ", "printed"),
    [
        (ompi(3, 4, 1, 2, **BATCH), ["3", "4", "10.0.0.4", "6105", "3 1 4 4 2 1"]),
        (ompi(1, 2, 1, 2, AZ_BATCHAI_MPI_MASTER_NODE="10.0.0.9"), ["1", "2", "10.0.0.9", "54965", "1 1 2 2 2 1"]),
        (ompi(3, 4, 1, 2, MASTER_PORT="9", **BATCH), ["3", "4", "10.0.0.4", "9", "3 1 4 4 2 1"]),
        (torch(3, 4, LOCAL_RANK=1, NODE_RANK=1, **MASTER), ["3", "4", "10.0.0.4", "6105", "3 1 4 4 2 1"]),
        ({}, ["0", "1", "127.0.0.1", "54965", "0 0 1 1 1 0"]),
    ],
)
def test_code_after_the_guides_runs_with_the_file_beside_it(
    beside: Path, environ: dict[str, str], printed: list[str]
) -> None:
    done = run(beside, "train.py", **environ)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.split(" = ")[-1] for line in lines] == printed
    assert [line.split(" = ")[0] for line in lines[:4]] == ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"]


def test_the_port_of_the_call_is_for_several_nodes(beside: Path) -> None:
    (beside / "train.py").write_text(TRAIN.replace("backend()", "backend(master_port=7777, verbose=False)"))
    done = run(beside, "-c", "import os, train; print(os.environ['MASTER_PORT'])", **ompi(0, 2, 0, 1, **BATCH))
    assert done.stdout.splitlines()[-1] == "7777"


def test_the_size_that_only_others_know_is_asked_for(beside: Path) -> None:
    done = run(beside, "train.py", **torch(0, 4, LOCAL_RANK=0, NODE_RANK=0, **MASTER))
    assert done.returncode == 1
    assert "Set LOCAL_WORLD_SIZE among the job's environment variables." in done.stderr


def test_launch_per_node_starts_the_ranks_of_its_node(beside: Path) -> None:
    (beside / "example.py").write_text(TRAIN + "import sys; print(sys.argv[1:])\n")
    words = ("launch.py", "--nproc_per_node", "2", "--use_env", "example.py", "--epochs", "3")
    done = run(beside, *words, **ompi(1, 2, 0, 1, **BATCH))
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert "[rank 2]: 2 0 4 4 2 0" in lines
    assert "[rank 3]: 3 1 4 4 2 1" in lines
    assert "[rank 3]: ['--epochs', '3']" in lines
    assert "[rank 3]: MASTER_ADDR = 10.0.0.4" in lines


LAUNCHER = """
import os, subprocess, sys
from aml_mpienv import set_environment_variables_for_nccl_backend
set_environment_variables_for_nccl_backend(verbose=False)
nodes, node, each = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]), 4
for local in range(each):
    place = {**os.environ, "WORLD_SIZE": str(nodes * each), "RANK": str(node * each + local), "LOCAL_RANK": str(local)}
    print(subprocess.run([sys.executable, "-S", "train.py"], env=place, capture_output=True, text=True), flush=True)
"""


@pytest.mark.parametrize("node", [0, 1])
def test_a_per_node_launcher_of_the_users_own_may_call_the_helper_and_so_may_its_ranks(beside: Path, node: int) -> None:
    (beside / "own.py").write_text(LAUNCHER)
    done = run(beside, "own.py", **ompi(node, 2, 0, 1, **BATCH))
    assert done.returncode == 0, done.stderr
    for local in range(4):
        assert f"{node * 4 + local} {local} 8 8 4 {local}" in done.stdout, done.stdout


def test_script_gets_its_local_rank_without_use_env(beside: Path) -> None:
    (beside / "example.py").write_text("import sys; print(sys.argv[1:])\n")
    done = run(beside, "launch.py", "--nproc_per_node", "2", "example.py", "--epochs", "3", **ompi(1, 2, 0, 1, **BATCH))
    assert {"[rank 2]: ['--local_rank=0', '--epochs', '3']", "[rank 3]: ['--local_rank=1', '--epochs', '3']"} <= {
        *done.stdout.splitlines()
    }


def test_a_launcher_started_per_process_is_refused(beside: Path) -> None:
    done = run(beside, "launch.py", "--nproc_per_node", "2", "train.py", **ompi(1, 4, 1, 2, **BATCH))
    assert done.returncode == 1
    assert "process_count_per_instance: 1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", sorted(bundle.FILES))
def test_the_single_files_need_nothing_and_an_old_python(name: str) -> None:
    import ast

    text = bundle.text(name)
    tree = ast.parse(text, feature_version=(3, 8))
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported <= set(sys.stdlib_module_names)
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--stdin-filename", f"examples/written/{name}", "-"],
        cwd=PROJECT,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert len(defined) == len(set(defined)), "two modules use one name"


@for_each("path", sorted((PROJECT / "amlnode").rglob("*.py")))
def test_every_module_is_of_a_python_as_old_as_images_have(path: Path) -> None:
    import ast

    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    newer = {"removeprefix", "removesuffix", "pairwise", "batched", "is_relative_to"}
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert used & newer == set()
    strict = [word.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords]
    assert "strict" not in strict
    assert "slots" not in strict
