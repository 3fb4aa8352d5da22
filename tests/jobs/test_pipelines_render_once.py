"""However deep pipelines lie in pipelines, each component is rendered once, and no file is read again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import jobs
from amlstack.catalog import sizes
from amlstack.catalog.prices import Price
from jobs.planning.plans import costs
from jobs.wire import pipeline as wire
from jobs.wire.component import component_body

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

DEPTH = 6
SIZE = "Standard_ND96asr_v4"


def planned(path: Path, **target: Any) -> jobs.Planned:
    loaded = jobs.load(path)
    assert loaded.findings == ()
    found = jobs.Target(**target)
    return jobs.resolve(loaded.jobs[0], lambda _: (found, ()), source=loaded.source)


def nested(folder: Path, leaf: str) -> Path:
    """A pipeline in whose step `inner` lies a pipeline, and so on; the innermost has the step `leaf`."""
    (folder / f"{DEPTH}.yml").write_text(f"type: pipeline\njobs:\n  leaf:\n{leaf}")
    for depth in range(DEPTH):
        text = f"type: pipeline\njobs:\n  inner: {{type: pipeline, component: ./{depth + 1}.yml}}\n"
        (folder / f"{depth}.yml").write_text(text + ("compute: azureml:gpu\n" if depth == 0 else ""))
    return folder / "0.yml"


LEAF = "    {command: python train.py, environment: azureml:e:1}\n"
SWEPT = """\
    type: sweep
    trial:
      type: command
      command: python train.py ${{inputs.lr}}
      environment: azureml:e:1
      inputs: {lr: {type: number}}
    search_space: {lr: {type: uniform, min_value: 0, max_value: 1}}
    objective: {goal: minimize, primary_metric: loss}
    sampling_algorithm: random
    limits: {max_total_trials: 4, max_concurrent_trials: 2, timeout: 3600}
"""


def test_each_component_is_rendered_once_at_depth_six(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(nested(tmp_path, LEAF))
    rendered: Counter[str] = Counter()

    def counted(component: Any, *arguments: Any) -> Any:
        rendered[component.command] += 1
        return component_body(component, *arguments)

    monkeypatch.setattr(wire, "component_body", counted)
    components = jobs.render(plan.enriched).components

    assert rendered == {"python train.py": 1}
    steps = ["inner"] * DEPTH + ["leaf"]
    assert list(components) == [".jobs.".join(steps[:depth]) for depth in range(DEPTH + 1, 0, -1)]


def test_findings_in_component_files_have_lines_when_the_files_are_gone(tmp_path: Path) -> None:
    (tmp_path / "train.yml").write_text(
        "type: command\ncommand: python t.py ${{inputs.x}}\nenvironment: azureml:e:1\ncode: ./src\n"
    )
    leaf = "    type: command\n    component: ./train.yml\n    inputs: {}\n    limits: {timeout: 60}\n"
    loaded = jobs.load(nested(tmp_path, leaf))
    for file in tmp_path.iterdir():
        file.unlink()

    plan = jobs.resolve(loaded.jobs[0], lambda _: (jobs.Target(), ()), source=loaded.source)

    train = str(tmp_path / "train.yml")
    assert [(each.code, each.file, each.line) for each in plan.findings] == [
        ("input-undefined", train, 2),
        ("code-missing", train, 4),
    ]


def test_findings_on_what_a_schedule_starts_have_lines_when_its_file_is_gone(tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(
        "type: pipeline\njobs:\n  t:\n    command: echo\n    environment: azureml:e:1\n    code: ./src\n"
    )
    (tmp_path / "schedule.yml").write_text(
        'name: n\ncreate_job: ./job.yml\ntrigger: {type: cron, expression: "0 8 * * 1"}\n'
    )
    loaded = jobs.load(tmp_path / "schedule.yml")
    (tmp_path / "job.yml").unlink()

    plan = jobs.resolve(loaded.jobs[0], lambda _: (jobs.Target(), ()), source=loaded.source)

    found = {each.code: (each.file, each.line) for each in plan.findings}
    assert found["code-missing"] == (str(tmp_path / "job.yml"), 6)


def test_the_cost_of_a_sweep_in_nested_pipelines_counts_its_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = sizes.get(SIZE)
    assert row is not None
    priced = replace(row, prices=(Price(10.0, "westeurope", date(2026, 7, 1), "a price list"),))
    monkeypatch.setattr(sizes, "get", lambda name: priced)

    (price,) = costs(planned(nested(tmp_path, SWEPT), size=SIZE, cluster="gpu")).values()

    assert (price.per_hour, price.most) == (20.0, 20.0)
