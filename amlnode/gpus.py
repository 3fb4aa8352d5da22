"""The GPUs that the driver shows, without asking torch."""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/")


def count_gpus(root: Path = ROOT) -> int:
    """The number of GPUs on this node: from NVIDIA's driver files, else AMD's topology.

    Args:
        root: Where the file system begins; another one in tests.
    """
    return len(nvidia(root)) or amd(root)


def nvidia(root: Path = ROOT) -> list[str]:
    """Bus addresses of NVIDIA's GPUs."""
    return _names(root / "proc/driver/nvidia/gpus")


def amd(root: Path = ROOT) -> int:
    """AMD's GPUs: nodes of the topology with vector units (its CPUs have none)."""
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    found = 0
    for name in _names(nodes):
        try:
            text = (nodes / name / "properties").read_text("ascii", "replace")
        except OSError:
            continue
        properties = dict(line.split(None, 1) for line in text.splitlines() if " " in line.strip())
        found += properties.get("simd_count", "0").strip() != "0"
    return found


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
