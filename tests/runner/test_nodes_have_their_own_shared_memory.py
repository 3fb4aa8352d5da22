from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox import contract
from amlstack.sandbox.runner import namespace
from tests.support.rows import for_each

if TYPE_CHECKING:
    from tests.support.runner.runner_lab import Lab

needs_mounts = pytest.mark.skipif(
    not namespace.possible(), reason="this machine does not permit a private mount of /dev/shm (unshare, mount)"
)

LOOK = """
import os, sys
found = os.statvfs("/dev/shm")
print(found.f_blocks * found.f_frsize)
if len(sys.argv) > 1:
    open("/dev/shm/" + sys.argv[1] + os.environ["RANK"], "w").close()
    print(*os.listdir("/dev/shm"), os.getuid())
"""


@for_each(
    "text, size", [("2g", 2 << 30), ("64M", 64 << 20), ("512k", 512 << 10), ("100b", 100), ("7", 7), (" 1 g ", 1 << 30)]
)
def test_sizes_are_read_as_docker_reads_them(text: str, size: int) -> None:
    assert contract.size(text) == size


@for_each("text", ["", "g", "2t", "0", "-1g", "2.5g", "two"])
def test_what_is_no_size_is_refused(text: str) -> None:
    assert contract.size(text) is None
    if text:
        with pytest.raises(contract.RefusedError, match="is no size such as 64g"):
            contract.read({"jobType": "Command", "command": "x", "environmentId": "e", "resources": {"shmSize": text}})


@for_each(
    "resources, size",
    [
        ({}, 2 << 30),
        ({"shmSize": "8g"}, 8 << 30),
        ({"shmSize": "8g", "dockerArgs": "--ulimit memlock=-1"}, 8 << 30),
        ({"shmSize": "8g", "dockerArgs": "--ipc=host --ulimit memlock=-1"}, None),
        ({"dockerArgs": "--ipc host"}, None),
    ],
)
def test_a_container_has_what_azure_would_give_it(resources: dict[str, str], size: int | None) -> None:
    read = contract.read({"jobType": "Command", "command": "x", "environmentId": "e", "resources": resources})
    assert read.shm == size


@needs_mounts
def test_each_node_has_as_much_as_declared_and_sees_its_own(lab: Lab) -> None:
    resources = {"instanceCount": 2, "shmSize": "3m"}
    name = f"amlstack-test-{os.getpid()}-"
    job = lab.job(f"python look.py {name}", resources=resources, codeId=lab.code({"look.py": LOOK}))
    assert lab.run(job).status == "Completed"
    for rank in (0, 1):
        assert lab.log(job, rank).split() == [str(3 << 20), f"{name}{rank}", str(os.getuid())]
        assert not Path(f"/dev/shm/{name}{rank}").exists()
    assert json.loads((lab.folder(job) / "report.json").read_text())["replaced"] == {}


def test_a_job_on_the_host_s_shared_memory_has_the_machine_s(lab: Lab) -> None:
    resources = {"instanceCount": 1, "shmSize": "3m", "dockerArgs": "--ipc=host"}
    job = lab.job("python look.py", resources=resources, codeId=lab.code({"look.py": LOOK}))
    assert lab.run(job).status == "Completed"
    found = os.statvfs("/dev/shm")
    assert lab.log(job).split() == [str(found.f_blocks * found.f_frsize)]


def test_where_it_cannot_be_mounted_the_job_runs_and_says_so(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    # The runner is a process of its own: it learns on its way up that nothing can be mounted.
    blocked = lab.home / "sitecustomize.py"
    blocked.write_text("import amlstack.sandbox.runner.namespace as own\nown.possible = lambda *places: False\n")
    monkeypatch.setenv("PYTHONPATH", str(lab.home))
    job = lab.job("echo ran")
    assert lab.run(job).status == "Completed"
    fields = json.loads((lab.folder(job) / "report.json").read_text())["replaced"]
    assert fields == {"resources.shmSize": [str(2 << 30), ""]}
    assert "shared memory is this machine's own" in (lab.folder(job) / "runner.log").read_text()
