from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amlnode.preflight import checks as checks_module
from amlnode.preflight.checks import PlannedNode, amount, read_plan
from amlnode.preflight.main import judge, main, verdict
from amlnode.rank import NodeError
from amlstack.sandbox import contract
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

H200 = PlannedNode(size="Standard_ND96isr_H200_v5", gpus=8, infiniband=8, shm=1 << 30)
ACTIVE = "4: ACTIVE"


class Node:
    """A made-up root of a file system, as an ND H200 node shows it, until it is broken."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for index in range(8):
            self.port(f"mlx5_ib{index}", ACTIVE, "InfiniBand", "400 Gb/sec (4X NDR)")
            self.write(f"dev/infiniband/uverbs{index}", "")
            self.write(f"proc/driver/nvidia/gpus/000{index}:00:00.0/information", "")
        self.port("mlx5_an0", ACTIVE, "Ethernet", "100 Gb/sec (4X EDR)")
        for name in ("eth0", "lo", "docker0"):
            self.write(f"sys/class/net/{name}/mtu", "1500")
        self.memlock("unlimited")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def port(self, device: str, state: str, link: str, rate: str = "") -> None:
        for name, text in (("state", state), ("link_layer", link), ("rate", rate)):
            self.write(f"sys/class/infiniband/{device}/ports/1/{name}", text + "\n")

    def memlock(self, soft: str) -> None:
        line = f"Max locked memory         {soft}            {soft}            bytes     \n"
        self.write("proc/self/limits", "Limit  Soft Limit  Hard Limit  Units\n" + line)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "root")


def none() -> str | None:
    return None


def smi(count: int, more: str = "") -> str:
    return "".join(f"GPU {index}: NVIDIA H200 (UUID: GPU-{index:08d})\n" for index in range(count)) + more


def test_a_sound_node_is_good(node: Node) -> None:
    assert checks_module.gpus(H200, node.root, none).state == "good"
    found = checks_module.infiniband(H200, node.root)
    assert (found.state, found.seen) == ("good", "8 of 8 ports active (400 Gb/sec (4X NDR))")
    assert checks_module.memlock(H200, node.root).state == "good"
    assert checks_module.nccl(H200, {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_HCA": "mlx5_ib"}, node.root).state == "good"


@pytest.mark.parametrize(
    ("planned", "printed", "state", "seen"),
    [
        (8, smi(8), "good", "8 of 8 GPUs"),
        (8, smi(7), "bad", "7 of 8 GPUs"),
        (8, "", "bad", "0 of 8 GPUs"),
        (8, smi(7, "Unable to determine the device handle for gpu 0006:00:00.0: GPU is lost.\n"), "bad", "GPU is lost"),
        (8, "NVIDIA-SMI has failed because it could not talk to the driver\n", "bad", "has failed"),
        (8, "no answer within 60 s", "bad", "no answer within 60 s"),
        (4, smi(8), "warning", "8 of 4 GPUs"),
        (2, smi(1) + "  MIG 1g.18gb Device 0: (UUID: MIG-1)\n", "bad", "1 of 2 GPUs"),
        (0, smi(8), "not judged", "no GPU planned"),
        (None, smi(8), "not judged", "the plan has no number of GPUs"),
    ],
)
def test_gpus_are_counted_as_the_driver_answers(
    node: Node, planned: int | None, printed: str, state: str, seen: str
) -> None:
    found = checks_module.gpus(PlannedNode(gpus=planned), node.root, lambda: printed)
    assert found.state == state
    assert seen in found.seen


def test_amds_gpus_are_counted_without_its_cpus(tmp_path: Path) -> None:
    for index, units in enumerate((0, 0, 304, 304)):
        folder = tmp_path / f"sys/class/kfd/kfd/topology/nodes/{index}"
        folder.mkdir(parents=True)
        (folder / "properties").write_text(f"cpu_cores_count {48 if not units else 0}\nsimd_count {units}\n")
    assert checks_module.gpus(PlannedNode(gpus=2), tmp_path, none).seen == "2 of 2 GPUs"


@pytest.mark.parametrize("state", ["1: DOWN", "2: INIT", "3: ARMED", "5: ACTIVE_DEFER", ""])
def test_a_port_that_is_not_active_is_named(node: Node, state: str) -> None:
    node.port("mlx5_ib3", state, "InfiniBand", "400 Gb/sec (4X NDR)")
    found = checks_module.infiniband(H200, node.root)
    assert found.state == "bad"
    assert found.seen.startswith("7 of 8 ports active; mlx5_ib3:1 ")


def test_an_rdma_device_alone_proves_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for index in range(8):
        node.port(f"mlx5_ib{index}", ACTIVE, "Ethernet", "100 Gb/sec")
    found = checks_module.infiniband(H200, node.root)
    assert found.state == "bad"
    assert "only Ethernet: mlx5_an0:1 ACTIVE (Ethernet, 100 Gb/sec (4X EDR))" in found.seen
    assert "no RDMA device" in checks_module.infiniband(H200, tmp_path / "empty").seen


def test_ports_that_the_container_cannot_open_are_bad(node: Node) -> None:
    for path in (node.root / "dev/infiniband").iterdir():
        path.unlink()
    found = checks_module.infiniband(H200, node.root)
    assert found.state == "bad"
    assert "uverbs" in found.seen


@pytest.mark.parametrize(
    ("plan", "soft", "state", "seen"),
    [
        (H200, "unlimited", "good", "unlimited"),
        (H200, "65536", "bad", "64 KiB may be locked"),
        (PlannedNode(infiniband=0), "65536", "not judged", "no InfiniBand planned"),
        (PlannedNode(), "65536", "not judged", "not planned"),
    ],
)
def test_locked_memory_wants_no_limit_for_infiniband(
    node: Node, plan: PlannedNode, soft: str, state: str, seen: str
) -> None:
    node.memlock(soft)
    found = checks_module.memlock(plan, node.root)
    assert (found.state, found.seen) == (state, seen)


@for_each(
    "plan, size, state",
    [
        (PlannedNode(shm=64 << 30), 64 << 30, "good"),
        (PlannedNode(shm=64 << 30), (64 << 30) - 4096, "good"),
        (PlannedNode(shm=64 << 30), 2 << 30, "bad"),
        (PlannedNode(), 64 << 20, "bad"),
        (PlannedNode(gpus=8), 2 << 30, "warning"),
        (PlannedNode(gpus=8), 3 << 30, "good"),
        (PlannedNode(), 2 << 30, "not judged"),
        (PlannedNode(), None, "bad"),
    ],
)
def test_shared_memory_is_as_planned(tmp_path: Path, plan: PlannedNode, size: int | None, state: str) -> None:
    assert checks_module.shm(plan, tmp_path, lambda _: size).state == state


@for_each(
    "plan, size, state",
    [
        (PlannedNode(disk=100), 100, "good"),
        (PlannedNode(disk=100), 99, "bad"),
        (PlannedNode(), 1 << 40, "not judged"),
        (PlannedNode(), 5, "warning"),
        (PlannedNode(), None, "bad"),
    ],
)
def test_the_disk_has_room(tmp_path: Path, plan: PlannedNode, size: int | None, state: str) -> None:
    assert checks_module.disk(plan, tmp_path, lambda _: size).state == state


@pytest.mark.parametrize(
    ("environ", "state", "names"),
    [
        ({}, "good", ()),
        ({"NCCL_IB_DISABLE": "0"}, "good", ()),
        ({"NCCL_IB_DISABLE": "1"}, "bad", ("NCCL_IB_DISABLE",)),
        ({"NCCL_NET": "Socket"}, "bad", ("NCCL_NET",)),
        ({"NCCL_NET": "socket", "NCCL_IB_DISABLE": "1"}, "bad", ("NCCL_IB_DISABLE", "NCCL_NET")),
        ({"NCCL_NET": "IB"}, "good", ()),
        ({"NCCL_IB_HCA": "mlx5_an0"}, "bad", ("NCCL_IB_HCA",)),
        ({"NCCL_IB_HCA": "^mlx5_an0"}, "good", ()),
        ({"NCCL_IB_HCA": "^mlx5"}, "bad", ("NCCL_IB_HCA",)),
        ({"NCCL_IB_HCA": "=mlx5_ib"}, "bad", ("NCCL_IB_HCA",)),
        ({"NCCL_IB_HCA": "=mlx5_ib0:1,mlx5_ib1:1"}, "good", ()),
        ({"NCCL_SOCKET_IFNAME": "ib0"}, "bad", ("NCCL_SOCKET_IFNAME",)),
        ({"NCCL_SOCKET_IFNAME": "^docker0,lo"}, "good", ()),
        ({"NCCL_SOCKET_IFNAME": "^docker,lo,eth"}, "bad", ("NCCL_SOCKET_IFNAME",)),
        ({"NCCL_TOPO_FILE": "/opt/none.xml"}, "warning", ("NCCL_TOPO_FILE",)),
        ({"NCCL_GRAPH_FILE": "/opt/none.xml"}, "warning", ("NCCL_GRAPH_FILE",)),
        ({"NCCL_P2P_DISABLE": "1"}, "warning", ("NCCL_P2P_DISABLE",)),
        ({"NCCL_SHM_DISABLE": "1"}, "warning", ("NCCL_SHM_DISABLE",)),
        # Azure's own settings for racks of Grace Blackwell.
        ({"NCCL_SHM_DISABLE": "1", "NCCL_MNNVL_ENABLE": "1"}, "good", ()),
        ({"NCCL_P2P_DISABLE": "1", "NCCL_MNNVL_ENABLE": "1"}, "warning", ("NCCL_P2P_DISABLE",)),
    ],
)
def test_settings_that_keep_nccl_off_the_fabric_are_named(
    node: Node, environ: dict[str, str], state: str, names: tuple[str, ...]
) -> None:
    found = checks_module.nccl(H200, environ, node.root)
    assert found.state == state
    assert found.remedy == (f"Remove or correct {', '.join(names)}." if names else "")


def test_nccls_own_files_count_and_variables_win(node: Node) -> None:
    node.write("etc/nccl.conf", "# site\nNCCL_IB_DISABLE=1\n")
    found = checks_module.nccl(H200, {}, node.root)
    assert (found.state, found.seen) == ("bad", "NCCL_IB_DISABLE=1 (/etc/nccl.conf): it forbids InfiniBand")
    assert checks_module.nccl(H200, {"NCCL_IB_DISABLE": "0"}, node.root).state == "good"
    node.write("home/me/.nccl.conf", "NCCL_IB_DISABLE = 0\n")
    assert checks_module.nccl(H200, {"HOME": "/home/me"}, node.root).state == "good"


def test_settings_are_only_a_warning_when_no_infiniband_is_planned(node: Node) -> None:
    assert checks_module.nccl(PlannedNode(gpus=1, infiniband=0), {"NCCL_IB_DISABLE": "1"}, node.root).state == "warning"
    assert checks_module.nccl(PlannedNode(gpus=0), {"NCCL_IB_DISABLE": "1"}, node.root).state == "not judged"


def test_a_rehearsal_never_passes_nor_fails_hardware_that_it_has_not(tmp_path: Path) -> None:
    environ = {"AMLSTACK_SANDBOX_JOB": "/home:job", "PATH": ""}
    checks = {check.name: check for check in judge(H200, environ, tmp_path)}
    assert {checks[name].state for name in ("gpus", "infiniband", "shm")} == {"not judged"}
    assert checks["gpus"].seen.startswith("a rehearsal, not the planned node: 0 of 8 GPUs")
    # On the nodes of a site, which have GPUs of their own, it does.
    of_a_site = {**environ, contract.JUDGED: "1"}
    for judged in ({}, of_a_site):
        assert {check.name: check.state for check in judge(H200, judged, tmp_path)}["infiniband"] == "bad"


@for_each(
    "skews, missing, go, clocks",
    [
        ([(0.0, 0.0), (0.3, 0.001)], [], True, ["good", "good"]),
        ([(0.0, 0.0), (-1.5, 0.001)], [], False, ["good", "bad"]),
        ([(0.0, 0.0), (1.5, 0.9)], [], True, ["good", "good"]),
        ([(0.0, 0.0)], [1], False, ["not judged"]),
        ([(None, None)], [], True, ["not judged"]),
        ([], [], False, []),
    ],
)
def test_the_verdict_of_all_nodes(skews: list[Any], missing: list[int], go: bool, clocks: list[str]) -> None:
    reports = [
        {"node": index, "host": f"h{index}", "rank": index, "checks": [], "skew": skew, "skew_error": error}
        for index, (skew, error) in enumerate(skews)
    ]
    result = verdict({"reports": reports, "missing": missing}, 2, 1.0)
    assert result["go"] is go
    assert [node["checks"][-1]["state"] for node in result["nodes"]] == clocks


@pytest.mark.parametrize(
    ("given", "plan"),
    [
        ('{"gpus": 8, "shm": "64g", "disk": "1.5T"}', PlannedNode(gpus=8, shm=64 << 30, disk=3 << 39)),
        (
            '{"size": "Standard_ND96isr_H200_v5", "infiniband": 8}',
            PlannedNode("Standard_ND96isr_H200_v5", infiniband=8),
        ),
        ('{"gpus": null}', PlannedNode()),
        ("", PlannedNode()),
    ],
)
def test_a_plan_is_read_from_a_variable(given: str, plan: PlannedNode) -> None:
    assert read_plan(None, {"AMLSTACK_PLAN": given}) == plan


def test_a_plan_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"gpus": 4}')
    assert read_plan(str(tmp_path / "plan.json"), {"AMLSTACK_PLAN": "{"}) == PlannedNode(gpus=4)


@for_each(
    "given, message",
    [
        ("{", "cannot be read as JSON"),
        ('{"gpu": 8}', "Did you mean `gpus`?"),
        ('{"gpus": true}', "The plan's gpus must be a number from 0, got true"),
        ('{"gpus": -1}', "a number from 0"),
        ('{"shm": "64 apples"}', "such as 64g"),
        ("no-such-file", "must be JSON or a file of it"),
    ],
)
def test_plan_is_refused_when_it_is_wrong(given: str, message: str) -> None:
    with pytest.raises(NodeError, match=message.replace("?", r"\?")):
        read_plan(given, {})


@given(st.text(max_size=8))
def test_any_text_is_an_amount_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError, OverflowError):
        assert amount(text) >= 0 or text.lstrip().startswith("-")


def test_one_node_is_judged_printed_and_written(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    plan = json.dumps({"gpus": 8, "infiniband": 8, "shm": 1})
    (node.root / "dev/shm").mkdir()
    assert main(["--plan", plan], environ={}, root=node.root) == 0
    assert "preflight: GO; not judged: clock, disk" in capsys.readouterr().out
    node.port("mlx5_ib0", "1: DOWN", "InfiniBand")
    assert main(["--plan", plan, "--json"], environ={}, root=node.root) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "outputs/preflight.json").read_text())
    assert printed["go"] is False
