"""Values are found through assignments, texts, paths, functions and modules; what is not known is never guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.migrate.programs import HEAD, hands, migrated, the_job
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

OPTION = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int, default=4)\n"
CLASS = "class C:\n    def __init__(self):\n        self.n = 5\n    def f(self):\n        return f'run {self.n}'\n"
COMMAND = "\nScriptRunConfig('src', command=x, compute_target='c', environment=env)"


@for_each("program, command", [
        ("a = 'b'\nx = f'run {a} {1 + 2:03d}'", "run b 003"),
        ("import os\nx = 'run ' + os.path.join('a', 'b')", "run a/b"),
        ("from pathlib import Path\nx = 'run ' + str(Path('a') / 'b.py')", "run a/b.py"),
        ("def f(a, b=2):\n    return 'run %s %d' % (a, b)\nx = f('c')", "run c 2"),
        ("x = ['python', 'train.py', '--n', 3]", "python train.py --n 3"),
        ("x = []\nfor n in range(2):\n    x += ['a', n]", "a 0 a 1"),
        ("x = ' '.join(f'--{k} {v}' for k, v in {'a': 1}.items())", "--a 1"),
        (OPTION + "x = f'run {p.parse_args().n}'", "run 4"),
        (CLASS + "x = C().f()", "run 5"),
        ("x = 'a'\nif w:\n    x = 'a'\nelse:\n    x = 'a'", "a"),
        ("try:\n    x = 'a'\nexcept OSError:\n    raise", "a"),
        ("import os\nx = os.environ.get('N', 'run')", "run"),
])  # fmt: skip
def test_a_value_is_found(tmp_path: Path, program: str, command: str) -> None:
    found = migrated(tmp_path, program + COMMAND)
    assert the_job(found)["command"] == command
    assert hands(found) == []


@for_each(
    "program",
    [
        "import sys\nx = sys.argv[1]",
        "x = 'a'\nif w:\n    x = 'b'",
        "x = 'a' if w else 'b'",
        "x = open('f').read()",
        "x = ['a']\nif w:\n    x.append('b')",
        "def f(a):\n    return a\nx = f(w)",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n')\nx = p.parse_args().n",
        "x = 'a' * 10 ** 9",
        "x = 9 ** 9 ** 9",
        "x = ...",
        "def f():\n    return f()\nx = f()",
    ],
)
def test_what_only_the_run_knows_is_a_placeholder_with_its_line(tmp_path: Path, program: str) -> None:
    found = migrated(tmp_path, program + COMMAND)
    assert "<fill:" in the_job(found)["command"]
    [item] = [item for item in found.items if item.state == "hand"]
    assert item.line > 0


def test_a_module_of_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("NODES = 2\ndef name():\n    return 'gpu'\n", "utf-8")
    program = (
        "from settings import NODES, name\nimport settings\n"
        "ScriptRunConfig('src', 'a.py', [settings.NODES], compute_target=name(), environment=env,"
        " distributed_job_config=MpiConfiguration(node_count=NODES))"
    )
    job = the_job(migrated(tmp_path, program))
    assert (job["compute"], job["resources"], job["command"]) == ("azureml:gpu", {"instance_count": 2}, "python a.py 2")


def test_nothing_of_a_program_is_run(tmp_path: Path) -> None:
    harm = f"open({str(tmp_path / 'harm')!r}, 'w')"
    migrated(tmp_path, f"{harm}\ndef f():\n    {harm}\nf()\nimport settings\n")
    assert not (tmp_path / "harm").exists()


def test_a_cluster_that_is_found_or_made_is_one_and_becomes_a_setting(tmp_path: Path) -> None:
    program = (
        "name = 'gpu-cluster'\n"
        "try:\n    target = ComputeTarget(ws, name)\n"
        "except Exception:\n"
        "    config = AmlCompute.provisioning_configuration('Standard_ND96asr_v4', max_nodes=2)\n"
        "    target = ComputeTarget.create(ws, name, config)\n"
        "ScriptRunConfig('src', 'a.py', compute_target=target, environment=env)"
    )
    found = migrated(tmp_path, program)
    assert the_job(found)["compute"] == "azureml:gpu-cluster"
    settings = found.files["Pulumi.migrated.yaml"]
    assert "name: gpu-cluster\n    size: Standard_ND96asr_v4\n    nodes:\n      min: 0\n      max: 2\n" in settings


def test_an_imported_name_in_a_text_is_open_with_its_name_and_import(tmp_path: Path) -> None:
    found = migrated(tmp_path, "from elsewhere import y\nx = f'run {y}'" + COMMAND)
    line = len(HEAD.splitlines()) + 1
    assert the_job(found)["command"] == f"run <fill:elsewhere.y,submit.py:{line}>"
