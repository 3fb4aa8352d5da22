"""A sample in the form of a known data set is read in a rehearsal, though its checksum is another."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from amlstack.base import paths

if TYPE_CHECKING:
    from pathlib import Path

UTILS = """\
import hashlib, os

def check_integrity(fpath, md5=None):
    if not os.path.isfile(fpath):
        return False
    return md5 is None or hashlib.md5(open(fpath, "rb").read()).hexdigest() == md5
"""
USE = """\
import sys
sys.path.insert(0, sys.argv[1])
import amlcpu
from torchvision.datasets import cifar
print(cifar.check_integrity("here", "0"), cifar.check_integrity("here", "0"), cifar.check_integrity("away", "0"))
"""


def test_a_file_that_is_there_is_taken_and_named_once_and_a_missing_one_is_not(tmp_path: Path) -> None:
    package = tmp_path / "torchvision" / "datasets"
    package.mkdir(parents=True)
    (tmp_path / "torchvision" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "utils.py").write_text(UTILS)
    (package / "cifar.py").write_text("from .utils import check_integrity\n")
    (tmp_path / "here").write_text("a sample")
    ended = subprocess.run(
        [sys.executable, "-c", USE, str(paths.PROJECT)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "True True False\n"
    assert ended.stderr.count("it is read as it is") == 1
