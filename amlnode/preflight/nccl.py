"""Checks of the settings that keep NCCL off InfiniBand, from the environment and NCCL's own files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from amlnode.gpus import ROOT
from amlnode.preflight.check import BAD, GOOD, UNJUDGED, WARNING, Check
from amlnode.preflight.hardware import ports

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlnode.preflight.plan import PlannedNode


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


def check(plan: PlannedNode, environ: Mapping[str, str], root: Path = ROOT) -> Check:
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
    """Whether NCCL_IB_HCA leaves an active InfiniBand port; unset leaves all. Unknown devices are not judged here."""
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
