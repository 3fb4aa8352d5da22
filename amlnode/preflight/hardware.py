"""Checks of what a node has: GPUs, InfiniBand ports, locked memory, shared memory, disk."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlnode.gpus import ROOT, amd, nvidia
from amlnode.preflight.check import BAD, GOOD, UNJUDGED, WARNING, Check, size

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amlnode.preflight.plan import PlannedNode

DOCKERS_OWN = 64 << 20
"""Shared memory of a container without a setting for it."""

AZUREMLS_OWN = 2 << 30
"""Shared memory that Azure ML gives when the job names no size."""

SMI_SECONDS = 60


@dataclass(frozen=True)
class RdmaPort:
    """One port of an RDMA device, as the kernel shows it."""

    device: str
    number: str
    state: str
    link: str
    rate: str

    @property
    def infiniband(self) -> bool:
        """Whether it is one of InfiniBand: an RDMA device may as well be Ethernet (mlx5_an0), which proves nothing."""
        return self.link == "InfiniBand"

    @property
    def active(self) -> bool:
        """Whether it carries traffic: physically up and known to the subnet manager."""
        return self.state.split(": ")[-1] == "ACTIVE"

    def __str__(self) -> str:
        return (
            f"{self.device}:{self.number} {self.state.split(': ')[-1] or 'of unknown state'} ({self.link}, {self.rate})"
        )


def smi() -> str | None:
    """The output of ``nvidia-smi -L``, or why it has none; None where there is no such program."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: PLW1510 - a failing one is judged by its output
            [program, "-L"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SMI_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {SMI_SECONDS} s"
    except OSError as error:
        return str(error)
    return done.stdout.decode(errors="replace")


def gpus(plan: PlannedNode, root: Path = ROOT, ask: Callable[[], str | None] = smi) -> Check:
    """As many GPUs as planned, all answering."""
    if not plan.gpus:
        why = "no GPU planned" if plan.gpus == 0 else "the plan has no number of GPUs"
        return Check("gpus", UNJUDGED, why)
    output = ask()
    if output is not None:
        lines = output.splitlines()
        found = sum(line.startswith("GPU ") and "UUID" in line for line in lines)
        rest = next((line.strip() for line in lines if line.strip() and not line.startswith((" ", "GPU "))), "")
    else:
        found, rest = len(nvidia(root)) or amd(root), ""
    seen = f"{found} of {plan.gpus} GPUs" + (f"; nvidia-smi: {rest}" if rest else "")
    if found == plan.gpus:
        return Check("gpus", GOOD, seen)
    if found > plan.gpus:
        return Check("gpus", WARNING, seen, "The node has more than the job uses: plan for all of them.")
    return Check("gpus", BAD, seen, "The node is broken or of another size: run on others, report the node.")


def ports(root: Path = ROOT) -> list[RdmaPort]:
    """Every port of every RDMA device."""
    found = []
    for device in _entries(root / "sys/class/infiniband"):
        for port in _entries(device / "ports"):
            state, link, rate = (_text(port / name) for name in ("state", "link_layer", "rate"))
            found.append(RdmaPort(device.name, port.name, state, link or "unknown", rate or "rate unknown"))
    return found


def infiniband(plan: PlannedNode, root: Path = ROOT) -> Check:
    """As many InfiniBand ports active as planned, and the container can open them."""
    if not plan.infiniband:
        why = "no InfiniBand planned" if plan.infiniband == 0 else "the plan has no number of ports"
        return Check("infiniband", UNJUDGED, why)
    every = ports(root)
    mine = [port for port in every if port.infiniband]
    good = [port for port in mine if port.active]
    seen = f"{len(good)} of {plan.infiniband} ports active"
    down = [str(port) for port in mine if not port.active]
    other = [str(port) for port in every if not port.infiniband]
    if down:
        seen += f"; {', '.join(down)}"
    if len(good) < plan.infiniband:
        if not mine and other:
            seen += f"; only Ethernet: {', '.join(other)}"
        elif not every:
            seen += "; no RDMA device"
        remedy = "Let the job run on other nodes, report this one." if mine else "Take a size with InfiniBand (an 'r')."
        return Check("infiniband", BAD, seen, remedy)
    if not [entry for entry in _entries(root / "dev/infiniband") if entry.name.startswith("uverbs")]:
        return Check(
            "infiniband",
            BAD,
            f"{seen}, and no /dev/infiniband/uverbs*",
            "The container has no access to the devices: NCCL would log `NET/IB : No device found` and take TCP.",
        )
    return Check("infiniband", GOOD, f"{seen} ({good[0].rate})")


def memlock(plan: PlannedNode, root: Path = ROOT) -> Check:
    """Locked memory without a limit: RDMA registers memory by locking it."""
    if not plan.infiniband:
        return Check("memlock", UNJUDGED, "no InfiniBand planned" if plan.infiniband == 0 else "not planned")
    line = next((one for one in _text(root / "proc/self/limits").splitlines() if one.startswith("Max locked")), "")
    words = line.split()
    if len(words) < 4:
        return Check("memlock", UNJUDGED, "the system does not show it")
    soft = words[3]
    if soft == "unlimited":
        return Check("memlock", GOOD, "unlimited")
    return Check(
        "memlock",
        BAD,
        f"{size(int(soft)) if soft.isdigit() else soft} may be locked",
        "Give the container `--ulimit memlock=-1` (docker_args of the job's resources).",
    )


def total(path: Path) -> int | None:
    """Bytes of the file system at a path; None where there is none."""
    return _space(path, lambda found: found.f_blocks)


def free(path: Path) -> int | None:
    """Bytes that this user may still write there."""
    return _space(path, lambda found: found.f_bavail)


def _space(path: Path, blocks: Callable[[os.statvfs_result], int]) -> int | None:
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_frsize * blocks(found)


def shm(plan: PlannedNode, root: Path = ROOT, measure: Callable[[Path], int | None] = total) -> Check:
    """Shared memory as planned: DataLoader workers and NCCL pass data through it."""
    remedy = "Set shm_size in the job's resources; too little ends a DataLoader worker with `Bus error`."
    found = measure(root / "dev/shm")
    if found is None:
        return Check("shm", BAD, "there is no /dev/shm", remedy)
    if plan.shm is not None:
        seen = f"{size(found)} of {size(plan.shm)} planned"
        # Docker rounds down to pages.
        return Check("shm", GOOD, seen) if found >= plan.shm * 0.99 else Check("shm", BAD, seen, remedy)
    if found <= DOCKERS_OWN:
        return Check("shm", BAD, f"{size(found)}, Docker's own", remedy)
    if plan.gpus and found <= AZUREMLS_OWN:
        return Check("shm", WARNING, f"{size(found)}, what Azure ML gives by default", remedy)
    return Check("shm", GOOD if plan.gpus else UNJUDGED, size(found) + ("" if plan.gpus else ", and no plan for it"))


def disk(plan: PlannedNode, folder: Path, measure: Callable[[Path], int | None] = free) -> Check:
    """Room for checkpoints and data in the working folder."""
    found = measure(folder)
    if found is None:
        return Check("disk", BAD, f"{folder} cannot be looked at", "Run it in the job's working folder.")
    if plan.disk is None:
        if found < 1 << 30:
            return Check("disk", WARNING, f"{size(found)} free", "Less than 1 GiB: clean up, or write to an output.")
        return Check("disk", UNJUDGED, f"{size(found)} free, and no plan for it")
    seen = f"{size(found)} free of {size(plan.disk)} planned"
    return Check("disk", GOOD, seen) if found >= plan.disk else Check("disk", BAD, seen, "Clean up, or take more disk.")


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
