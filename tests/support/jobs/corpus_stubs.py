"""Stand-ins for files that a corpus file names and does not bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def stubs(data: Any) -> set[str]:
    """Local paths that a file names, those of a pipeline's steps too."""
    found = {data.get("code"), *(data.get("additional_includes") or ())}
    match data.get("environment"):
        case {"build": {"path": str() as path}}:
            found.add(path)
        case {"conda_file": str() as path}:
            found.add(path)
        case str() as path if path.startswith("file:"):
            found.add(path.removeprefix("file:"))
        case _:
            pass
    for key in ("component", "trial"):
        if isinstance(data.get(key), str) and not data[key].startswith("azureml:"):
            found.add(data[key].removeprefix("file:"))
    if isinstance(data.get("trial"), dict):
        found |= stubs(data["trial"])
    for step in (data.get("jobs") or {}).values():
        if isinstance(step, dict):
            found |= stubs(step)
    return {path for path in found if isinstance(path, str) and "://" not in path and not path.startswith("azureml:")}


def stub(path: Path) -> None:
    if path.exists():
        return
    if path.suffix in {".yml", ".yaml"}:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("dependencies: [python]\n")
    else:
        path.mkdir(parents=True, exist_ok=True)
        (path / "Dockerfile").write_text("FROM scratch\n")
