"""The results of a run on disk: written after every benchmark, and read again by a run that goes on from there."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from measure import Row
from pages import Report, Section, as_json, as_markdown
from plot import as_svg

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class Results:
    """The report of a run, and the folder that it is in."""

    folder: Path
    report: Report

    def add(self, section: Section) -> None:
        """One benchmark more."""
        self.report = replace(self.report, sections=(*self.report.sections, section))
        self.write(self.folder)

    def write(self, folder: Path) -> None:
        """The report as ``benchmarks.md``, ``.json`` and ``.svg``, each whole or as it was."""
        folder.mkdir(parents=True, exist_ok=True)
        for ending, render in ((".json", as_json), (".md", as_markdown), (".svg", as_svg)):
            fresh = folder / f"benchmarks{ending}.new"
            fresh.write_text(render(self.report), "utf-8")
            fresh.replace(folder / f"benchmarks{ending}")

    def earlier(self) -> dict[str, Section]:
        """What the folder has of the same commit and size, by name; a tree with changes is never the same."""
        try:
            found = json.loads((self.folder / "benchmarks.json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        now = self.report
        if (
            not now.commit
            or now.commit.endswith("-dirty")
            or (found["commit"], found["size"]) != (now.commit, now.size)
        ):
            return {}
        return {section["name"]: _section(section) for section in found["sections"]}


def _section(found: dict[str, Any]) -> Section:
    names = {each.name for each in fields(Row)}
    rows = tuple(Row(**{name: value for name, value in row.items() if name in names}) for row in found["rows"])
    about = (import_module(f"benches.{found['name']}").__doc__ or "").strip()
    return Section(found["name"], about, rows, found["seconds"], found["load"])
