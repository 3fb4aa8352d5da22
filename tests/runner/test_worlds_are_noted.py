"""A process leaves its rank and world size when MPI, Horovod or TensorFlow's strategy has joined it with others."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from amlstack.base.paths import PACKAGE
from amlstack.sandbox import gpu_code
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

MPI = """\
class COMM_WORLD:
    Get_rank = staticmethod(lambda: 1)
    Get_size = staticmethod(lambda: 2)
begun = {begun}
def Is_initialized(): return begun
def Init(): global begun; begun = True
Init_thread = Init
"""
HOROVOD = """\
class HorovodBasics:
    def init(self, *comm): self.n = 4
    def rank(self): return 3
    def size(self): return self.n
"""
TENSORFLOW = (
    "class CollectiveAllReduceExtended:\n def __init__(self, n): self._num_workers, self._id_in_cluster = n, 0\n"
)
STRATEGY = "tensorflow.python.distribute.collective_all_reduce_strategy"


@for_each(
    "module, text, code, seen",
    [
        ("mpi4py.MPI", MPI.format(begun=True), "", [(1, 2)]),
        ("mpi4py.MPI", MPI.format(begun=False), "", []),
        ("mpi4py.MPI", MPI.format(begun=False), "m.Init()", [(1, 2)]),
        ("mpi4py.MPI", MPI.format(begun=False), "m.Init_thread()", [(1, 2)]),
        ("horovod.common.basics", HOROVOD, "assert m.HorovodBasics().init() is None", [(3, 4)]),
        (STRATEGY, TENSORFLOW, "m.CollectiveAllReduceExtended(1)", [(0, 1)]),
        (STRATEGY, "nothing = True", "", []),
    ],
)
def test_who_has_joined_others_says_so(
    module: str, text: str, code: str, seen: list[tuple[int, int]], tmp_path: Path
) -> None:
    *packages, name = module.split(".")
    folder = tmp_path.joinpath("lib", *packages)
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(text)
    gpu_code.worlds_folder(tmp_path).mkdir()
    program = f"import amlcpu, importlib; m = importlib.import_module({module!r}); {code}"
    paths = os.pathsep.join([str(tmp_path / "lib"), str(PACKAGE)])
    env = {"PYTHONPATH": paths, gpu_code.WORLDS: str(gpu_code.worlds_folder(tmp_path))}
    subprocess.run([sys.executable, "-S", "-c", program], env=env, check=True)
    assert gpu_code.joined(tmp_path) == seen
