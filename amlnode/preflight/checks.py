"""Checks of a node against its plan: GPUs, InfiniBand ports, memory, disk, and settings that keep NCCL off IB."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlnode.gpus import ROOT, amd, nvidia
from amlnode.rank import NodeError

if TYPE_CHECKING:
    import argparse

VARIABLE = "AMLSTACK_PLAN"
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class PlannedNode:
    """One node as planned; None: not planned, so that it cannot be judged.

    Attributes:
        size: Name of the VM size, for the reader.
        gpus: GPUs of a node; 0 for a CPU size.
        infiniband: InfiniBand ports of a node that must be active; 0 for none.
        shm: Bytes of shared memory.
        disk: Bytes that must be free in the working folder.
    """

    size: str | None = None
    gpus: int | None = None
    infiniband: int | None = None
    shm: int | None = None
    disk: int | None = None


def read_plan(given: str | None, environ: Mapping[str, str]) -> PlannedNode:
    """The plan from the command line (JSON, or a file of it), else from AMLSTACK_PLAN, else an empty one.

    Raises:
        NodeError: It is no JSON, or has unknown keys.
    """
    where = "--plan" if given else VARIABLE
    text = given or environ.get(VARIABLE) or "{}"
    names = [field.name for field in fields(PlannedNode)]
    rule = f"A plan is a JSON object of {', '.join(names)}"
    if not text.lstrip().startswith("{"):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, ValueError):
            raise NodeError(f"{where} must be JSON or a file of it, got `{text}`", rule, "Correct it.") from None
    try:
        values = json.loads(text)
    except ValueError as error:
        raise NodeError(f"{where} cannot be read as JSON ({error})", rule, 'E.g. {"gpus": 8, "shm": "64g"}.') from None
    if not isinstance(values, dict):
        raise NodeError(f"{where} must be a JSON object, got `{text}`", rule, 'E.g. {"gpus": 8, "shm": "64g"}.')
    for name in values:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            raise NodeError(
                f"{where} has the unknown key `{name}`", rule, f"Did you mean `{near[0]}`?" if near else "Leave it out."
            )
    counts = {name: _amount(name, values[name]) for name in names if name != "size" and values.get(name) is not None}
    return PlannedNode(size=values.get("size") and str(values["size"]), **counts)


def amount(text: str) -> int:
    """Bytes from `64g`, `512M`, `1024`; binary units, any letter case, as Docker writes them.

    Raises:
        ValueError: It is no amount.
    """
    words = text.strip().lower()
    if words.endswith("ib"):
        words = words[:-2]
    number, unit = (words, "") if words[-1:].isdigit() else (words[:-1], words[-1:])
    return int(float(number) * UNITS[unit]) if unit in UNITS else int(number + "?")


def _amount(name: str, value: object) -> int:
    try:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError  # noqa: TRY004, TRY301 - one message for all that is no amount
        found = value if isinstance(value, int) else amount(value)
        if found < 0:
            raise ValueError  # noqa: TRY301
    except (ValueError, OverflowError):
        raise NodeError(
            f"The plan's {name} must be a number from 0, got {json.dumps(value)}",
            "It counts bytes and may have a unit, such as 64g" if name in ("shm", "disk") else "It is a count",
            "Correct it, or leave it out.",
        ) from None
    return found


GOOD, WARNING, BAD, UNJUDGED = "good", "warning", "bad", "not judged"


@dataclass(frozen=True)
class Check:
    """One check's answer.

    Attributes:
        name: What was checked, in a word.
        state: good, warning, bad (the job must not go on) or not judged.
        seen: What was seen; for `not judged`, why it was not.
        remedy: What to do; empty when good.
    """

    name: str
    state: str
    seen: str
    remedy: str = ""


def size(count: float) -> str:
    """Bytes for a reader: 64 MiB, 1.5 TiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def publish(result: Mapping[str, Any], rows: Sequence[str], options: argparse.Namespace) -> None:
    """Prints a result, as rows or as JSON (``--json``), and writes it to ``--output`` where that is possible."""
    text = json.dumps(result, indent=1)
    print(text if options.json else "\n".join(rows), flush=True)
    with contextlib.suppress(OSError):
        path = Path(options.output)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")


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
        """True where it is one of InfiniBand: an RDMA device may be Ethernet (mlx5_an0), which proves nothing."""
        return self.link == "InfiniBand"

    @property
    def active(self) -> bool:
        """True where it carries traffic: physically up and known to the subnet manager."""
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


def settings(environ: Mapping[str, str], root: Path = ROOT) -> dict[str, tuple[str, str]]:
    """NCCL's settings as it reads them: name → (value, where it is set).

    Variables win over ``~/.nccl.conf`` (or what NCCL_CONF_FILE names), which wins over ``/etc/nccl.conf``.
    """
    found: dict[str, tuple[str, str]] = {}
    home = environ.get("NCCL_CONF_FILE") or str(Path(environ.get("HOME", "/")) / ".nccl.conf")
    for name in ("/etc/nccl.conf", home):
        try:
            lines = (root / name.lstrip("/")).read_text("utf-8", "replace").splitlines()
        except OSError:
            continue
        for line in lines:
            key, equal, value = line.partition("=")
            if equal and key.strip().startswith("NCCL_"):
                found[key.strip()] = (value.strip(), name)
    found.update({name: (value, "environment") for name, value in environ.items() if name.startswith("NCCL_")})
    return found


def nccl(plan: PlannedNode, environ: Mapping[str, str], root: Path = ROOT) -> Check:
    """Nothing that keeps NCCL from the fabric that was planned."""
    if not plan.gpus:
        return Check("nccl", UNJUDGED, "no GPU planned" if plan.gpus == 0 else "the plan has no number of GPUs")
    found = settings(environ, root)
    values = {name: value for name, (value, _) in found.items()}
    wrong: list[tuple[str, str]] = []
    doubtful: list[tuple[str, str]] = []
    fabric = wrong if plan.infiniband else doubtful
    if values.get("NCCL_IB_DISABLE", "0").strip() not in ("", "0"):
        fabric.append(("NCCL_IB_DISABLE", "it forbids InfiniBand"))
    if values.get("NCCL_NET", "").strip().lower() == "socket":
        fabric.append(("NCCL_NET", "it takes TCP"))
    if plan.infiniband and not _adapters(values.get("NCCL_IB_HCA", ""), root):
        wrong.append(("NCCL_IB_HCA", "no active InfiniBand port is among these"))
    if not _interfaces(values.get("NCCL_SOCKET_IFNAME", ""), root):
        wrong.append(("NCCL_SOCKET_IFNAME", "the node has no such interface"))
    doubtful += [
        (name, "the image has no such file")
        for name in ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")
        if (file := values.get(name)) and not (root / file.lstrip("/")).is_file()
    ]
    rack = values.get("NCCL_MNNVL_ENABLE") == "1"  # NVLink joins all GPUs of a node there, and no rank needs memory
    for name, loss in (("NCCL_P2P_DISABLE", "GPUs talk through memory"), ("NCCL_SHM_DISABLE", "so do ranks")):
        if values.get(name, "0").strip() not in ("", "0") and not (rack and name == "NCCL_SHM_DISABLE"):
            doubtful.append((name, loss))
    if not wrong and not doubtful:
        return Check("nccl", GOOD, "nothing that keeps NCCL off the fabric")
    seen = "; ".join(f"{name}={found[name][0]} ({found[name][1]}): {why}" for name, why in (*wrong, *doubtful))
    names = ", ".join(name for name, _ in (*wrong, *doubtful))
    return Check("nccl", BAD if wrong else WARNING, seen, f"Remove or correct {names}.")


def _adapters(pattern: str, root: Path) -> bool:
    """True where NCCL_IB_HCA leaves an active InfiniBand port; unset leaves all. Unknown devices are not judged."""
    known = [port for port in ports(root) if port.infiniband and port.active]
    return (
        not pattern
        or not known
        or any(_matches(pattern, f"{port.device}:{port.number}", port.device) for port in known)
    )


def _interfaces(pattern: str, root: Path) -> bool:
    folder = root / "sys/class/net"
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return not pattern or not names or any(_matches(pattern, name, name) for name in names)


def _matches(pattern: str, full: str, name: str) -> bool:
    """NCCL's lists: prefixes; after ``=`` whole names; after ``^`` those not to take."""
    exclude = pattern.startswith("^")
    words = pattern[exclude:]
    exact = words.startswith("=")
    listed = [word.strip() for word in words[exact:].split(",") if word.strip()]
    hit = any(word in (full, name) if exact else (full.startswith(word) or name == word) for word in listed)
    return hit != exclude
