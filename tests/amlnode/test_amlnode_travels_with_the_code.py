from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import jobs
from amlstack.base.paths import PROJECT
from amlstack.catalog import sizes
from amlstack.snapshot import scan
from jobs.planning.job import check_amlnode, expected_bandwidth, infiniband_ports
from jobs.values import Source
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


RUNS = "python -m amlnode preflight && python train.py"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    return folder


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "amlnode"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "inner" / "a.py").write_text("a = 1\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_bytes(b"\0")
    return folder


def planned(base: Path, command: str, **more: Any) -> jobs.Plan:
    job = jobs.Job(
        command=command,
        code="src",
        environment="acpt-pytorch-2.8-cuda12.6",
        compute="a100",
        **{"nodes": 2, "launcher": jobs.PerProcess(), **more},
    )
    target = jobs.Target("Standard_ND96asr_v4", "a100", max_nodes=2)
    return jobs.plan(job, target, source=Source("job.py", base))


def test_a_package_travels_under_its_own_name(code: Path, package: Path) -> None:
    found = scan(code, (package,))
    assert [file.relative for file in found.files] == ["amlnode/__init__.py", "amlnode/inner/a.py", "train.py"]
    assert found.findings == ()
    (code / "amlnode").mkdir()
    (code / "amlnode" / "inner").mkdir()
    for name in ("__init__.py", "inner/a.py"):
        (code / "amlnode" / name).write_bytes((package / name).read_bytes())
    assert scan(code).hash == found.hash, "as if the person had copied it"


def test_another_version_of_it_is_other_code_and_the_same_identity(code: Path, package: Path) -> None:
    alone, first = scan(code), scan(code, (package,))
    (package / "inner" / "a.py").write_text("a = 2\n")
    second = scan(code, (package,))
    assert len({alone.hash, first.hash, second.hash}) == 3
    assert alone.digests == alone.own_digests == first.own_digests == second.own_digests
    (code / "train.py").write_text("print(2)\n")
    assert scan(code, (package,)).own_digests == scan(code).own_digests != alone.own_digests


def test_a_persons_own_of_that_name_wins(code: Path, package: Path) -> None:
    (code / "amlnode").mkdir()
    (code / "amlnode" / "mine.py").write_text("")
    found = scan(code, (package,))
    assert [file.relative for file in found.files] == ["amlnode/mine.py", "train.py"]
    assert found.digests == found.own_digests


@pytest.mark.parametrize(
    ("command", "source", "travels"),
    [
        (RUNS, "", True),
        ("torchrun --nproc_per_node 2 -m amlnode bandwidth", "", True),
        ("python -m amlnode.preflight.main", "", True),
        ("python train.py", "from amlnode.rank import resolve\n", True),
        ("python train.py", "def f():\n    import amlnode.rank\n", True),
        ("python train.py", "", False),
        ("python train.py", "# import amlnode\nimport amlnodes\n", False),
        ("python -m amlnode2", "", False),
    ],
)
def test_it_travels_when_the_command_or_the_code_asks_for_it(
    code: Path, command: str, source: str, travels: bool
) -> None:
    (code / "train.py").write_text(source)
    plan = planned(code.parent, command)
    assert plan.beside == ((PROJECT / "amlnode",) if travels else ())


def test_amlnode_needs_code_when_the_command_runs_it() -> None:
    job = jobs.Job(command=RUNS, environment="acpt-pytorch-2.8-cuda12.6")
    assert [finding.code for finding in check_amlnode(job)] == ["amlnode-without-code"]


@for_each(
    "name, nodes, least",
    [
        ("Standard_ND96isr_H100_v5", 8, 300),
        ("Standard_ND96isr_H100_v5", 9, None),
        ("Standard_ND128isr_GB300_v6", 17, None),
        ("Standard_ND128isr_GB300_v6", 18, 150),
        ("Standard_ND128isr_GB300_v6", 36, 150),
        ("Standard_ND40rs_v2", 2, 16.3),
        ("Standard_NC80adis_H100_v5", 1, 208),
        ("Standard_HB120rs_v3", 2, None),
    ],
)
def test_the_line_is_that_of_several_racks_where_the_nodes_may_be_of_several(
    name: str, nodes: int, least: float | None
) -> None:
    size = sizes.get(name)
    assert size is not None
    assert expected_bandwidth(size, nodes) == least


@pytest.mark.parametrize(
    ("ranks", "nodes", "plan", "least"),
    [
        (None, 2, {"gpus": 8, "infiniband": 8}, "180"),
        (2, 2, {"gpus": 8, "infiniband": 8}, None),
        (None, 1, {"gpus": 8}, "228"),
        (None, 3, {"gpus": 8, "infiniband": 8}, None),
    ],
)
def test_variables_hold_what_was_planned_for_the_nodes(
    code: Path, ranks: int | None, nodes: int, plan: dict[str, int], least: str | None
) -> None:
    plan_of_job = planned(code.parent, RUNS, nodes=nodes, launcher=jobs.PerProcess(processes_per_node=ranks))
    variables = plan_of_job.enriched.environment_variables
    promised = json.loads(variables["AMLSTACK_PLAN"])
    assert {name: promised[name] for name in promised if name not in ("size", "shm")} == plan
    assert promised["shm"] == plan_of_job.enriched.shm_size
    assert variables.get("AMLSTACK_BUSBW_EXPECTED") == least


def test_plan_is_no_variable_of_other_jobs_and_no_part_of_the_identity(code: Path) -> None:
    plan = planned(code.parent, "python train.py")
    assert "AMLSTACK_PLAN" not in plan.enriched.environment_variables
    assert "AMLSTACK_PLAN" not in json.dumps(planned(code.parent, RUNS).declaration)


def test_a_persons_own_plan_stays(code: Path) -> None:
    plan = planned(code.parent, RUNS, environment_variables={"AMLSTACK_PLAN": "{}"})
    assert plan.enriched.environment_variables["AMLSTACK_PLAN"] == "{}"


@for_each(
    "size, count",
    [
        ("Standard_ND40rs_v2", 1),
        ("Standard_ND96asr_v4", 8),
        ("Standard_ND96isr_H200_v5", 8),
        ("Standard_ND128isr_NDR_GB200_v6", 4),
        ("Standard_ND96isrf_H100_v5", 1),
        ("Standard_HB120rs_v3", 1),
        ("Standard_NC24ads_A100_v4", 0),
    ],
)
def test_ports_follow_from_the_catalogue(size: str, count: int) -> None:
    from amlstack.catalog import sizes

    found = sizes.get(size)
    assert found is not None
    assert infiniband_ports(found) == count
