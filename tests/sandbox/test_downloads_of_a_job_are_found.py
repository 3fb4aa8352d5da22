"""Downloads from the internet, and programs that this machine lacks, are found by reading a job's code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.code_reading import code_files, downloads
from amlstack.code_reading.shell import scripts, steps
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


def found(folder: Path, text: str, name: str = "train.py") -> list[tuple[int, str, bool]]:
    (folder / name).write_text(text)
    return [(each.line, each.host, each.certain) for each in downloads.in_code(folder, [name])]


@for_each(
    "text, line, host",
    [
        ("import tensorflow as tf\nx = tf.keras.datasets.mnist.load_data()\n", 2, "storage.googleapis.com"),
        ("from tensorflow import keras\nd = keras.datasets.cifar10\nd.load_data()\n", 3, "storage.googleapis.com"),
        ("from torchvision import datasets\ndatasets.MNIST('d', download=True)\n", 2, "download.pytorch.org"),
        ("import torchvision\ntorchvision.models.resnet18(weights='DEFAULT')\n", 2, "download.pytorch.org"),
        ("import torchvision.models as m\nm.resnet18(pretrained=True)\n", 2, "download.pytorch.org"),
        ("from datasets import load_dataset\nload_dataset('org/set')\n", 2, "huggingface.co"),
        ("import transformers as t\nt.AutoModel.from_pretrained('bert-base-uncased')\n", 2, "huggingface.co"),
        ("import requests\nrequests.get('https://example.org/a')\n", 2, "example.org"),
        ("import pandas as pd\npd.read_csv('https://example.org/a.csv')\n", 2, "example.org"),
        ("from urllib.request import urlretrieve\nurlretrieve('http://example.org/a', 'a')\n", 2, "example.org"),
        (
            "import requests\ndef get():\n    requests.get('https://x.org')\nif __name__ == '__main__':\n    get()\n",
            3,
            "x.org",
        ),
    ],
)
def test_a_line_that_fetches_is_found_with_its_host(text: str, line: int, host: str, tmp_path: Path) -> None:
    assert found(tmp_path, text) == [(line, host, True)]


@for_each(
    "text",
    [
        "from torchvision import datasets\ndatasets.MNIST('d', download=False)\n",
        "from torchvision import datasets\ndatasets.MNIST('d')\n",
        "from torchvision.models import resnet18\nresnet18(weights=None, pretrained=False)\n",
        "from datasets import load_dataset\nload_dataset('csv', data_files='a.csv')\n",
        "from datasets import load_dataset\nload_dataset('./data')\n",
        "from transformers import AutoModel\nAutoModel.from_pretrained(args.path)\n",
        "from transformers import BertConfig\nBertConfig(hidden_size=8)\n",
        "import pandas as pd\npd.read_csv(path)\n",
        "import requests\nrequests.get(url)\n",
        "import torch\ntorch.load('a.pt')\n",
        "class requests:\n    pass\nrequests.get('https://x.org')\n",
    ],
)
def test_a_line_that_fetches_nothing_is_not_found(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "import os, requests\nif not os.path.exists('a'):\n    requests.get('https://x.org')\n",
        "import requests\ntry:\n    requests.get('https://x.org')\nexcept OSError:\n    pass\n",
        "import requests\ndef never():\n    requests.get('https://x.org')\n",
    ],
)
def test_a_line_that_may_not_run_is_uncertain(text: str, tmp_path: Path) -> None:
    assert [certain for *_, certain in found(tmp_path, text)] == [False]


def test_modules_and_shell_scripts_that_a_script_leads_to_are_read(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text("import requests\nrequests.get('https://x.org')\n")
    (tmp_path / "train.py").write_text("import data\n")
    (tmp_path / "run.sh").write_text("#!/bin/bash\n# wget https://no.org/a\nwget -q https://y.org/a\npython train.py\n")
    assert [(each.path, each.line, each.host) for each in downloads.in_code(tmp_path, ["run.sh"])] == [
        ("data.py", 2, "x.org"),
        ("run.sh", 3, "y.org"),
    ]


@for_each(
    "command, hosts",
    [
        ("wget https://example.org/a.tar.gz; tar xf a.tar.gz", ["example.org"]),
        ("git clone https://github.com/org/repo && cd repo && python train.py", ["github.com"]),
        ("pip install git+https://github.com/org/repo && python train.py", ["github.com"]),
        ("X=1 curl -sL https://example.org/a -o a", ["example.org"]),
        ("pip install -r requirements.txt && python train.py --url https://example.org", []),
        ("echo wget https://example.org/a", []),
        ("git status", []),
    ],
)
def test_commands_that_fetch_are_found(command: str, hosts: list[str]) -> None:
    assert [each.host for each in downloads.in_command(steps(command))] == hosts


def test_programs_that_are_not_here_and_those_that_would_change_this_machine_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    command = (
        "sudo -E bash a.sh; apt-get update && JAVA=1 mvn -f pom.xml; python train.py; ./gradlew; echo julia; mvn x"
    )
    assert [(each.name, each.changes) for each in code_files.outside_programs(steps(command))] == [
        ("sudo", True),
        ("apt-get", True),
        ("mvn", False),
    ]


NAMED = "from transformers import AutoModel\nAutoModel.from_pretrained({})\n"


@for_each(
    "before, name, command, certain",
    [
        ("BASE = 'org/base'\n", "BASE", "python train.py", [True]),
        ("import os\nBASE = os.environ.get('BASE_MODEL', 'org/base')\n", "BASE", "python train.py", [True]),
        ("import os\nBASE = os.environ['BASE_MODEL']\n", "BASE", "python train.py", [True]),
        ("p.add_argument('--model-name', default='org/base')\n", "args.model_name", "python train.py", [True]),
        ("p.add_argument('--model-name')\n", "args.model_name", "python train.py --model-name org/base", [True]),
        ("p.add_argument('--model-name')\n", "args.model_name", "python train.py --model-name=org/base", [True]),
        ("p.add_argument('--model', default='b')\n", "args.model", "python train.py --model ${{inputs.m}}", []),
        ("p.add_argument('--model', default='b')\n", "args.model", "python train.py --model ./m", []),
        ("BASE = 'kept'\n", "BASE", "python train.py", []),
        ("BASE = 'org/a'\nBASE = 'org/b'\n", "BASE", "python train.py", []),
        ("cfg = read()\n", "cfg.base_name", "python train.py", [True]),
        ("cfg = read()\n", "cfg.output_dir", "python train.py", []),
        ("cfg = read()\n", "cfg.model_name_or_path", "python train.py", []),
    ],
)
def test_a_models_name_is_looked_up_where_the_code_or_the_command_says_it(
    before: str, name: str, command: str, certain: list[bool], tmp_path: Path
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "train.py").write_text(before + NAMED.format(name))
    given = downloads.given_by(steps(command), {"BASE_MODEL": "org/other"})
    found = downloads.in_code(tmp_path, ["train.py"], given, models=False)
    assert [each.certain for each in found] == certain


def test_a_model_that_nothing_names_may_be_an_input(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(NAMED.format("base_name"))
    assert [each.certain for each in downloads.in_code(tmp_path, ["train.py"])] == [False]


def test_the_file_of_a_module_is_read(tmp_path: Path) -> None:
    (tmp_path / "src" / "run").mkdir(parents=True)
    for name in ("src/train.py", "src/run/__main__.py"):
        (tmp_path / name).write_text(NAMED.format("'org/base'"))
    for command in ("python -m src.train --x 1", "torchrun --nproc_per_node 2 -m src.train", "python -m src.run"):
        assert len(downloads.in_code(tmp_path, scripts(command))) == 1, command
    assert scripts("python -m torch.distributed.run --nproc_per_node 2 train.py") == ("train.py",)
