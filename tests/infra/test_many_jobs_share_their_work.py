"""Work that many jobs of a stack share is done once, and each job's own work once for each: counted, not timed."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

import jobs
from amlstack import snapshot
from infra import declaration
from infra.declaration import declare
from infra.settings.reading import read_file

if TYPE_CHECKING:
    from pathlib import Path

    from infra.declaration import Declaration

ON = date(2026, 1, 1)
JOB = """\
command: python train.py --seed {number}
code: {code}
environment: azureml:own
compute: azureml:gpu{cluster}
distribution: {{type: pytorch, process_count_per_instance: 8}}
resources: {{instance_count: 2}}
"""


def stack(root: Path, count: int, *, of: tuple[str, ...] = ("../src",), where: str = "jobs") -> Path:
    """A stack file of so many jobs over two clusters, which name their code in turns."""
    (root / "src" / "inner").mkdir(parents=True)
    (root / "src" / "train.py").write_text("print(1)\n")
    (root / where).mkdir(exist_ok=True)
    (root / "link").symlink_to(root / "src")
    lines = ["config:", "  amlstack:workspace: train", "  amlstack:location: westeurope", "  amlstack:clusters:"]
    lines += [f"    - {{name: gpu{number}, size: Standard_ND96asr_v4, nodes: {{max: 4}}}}" for number in range(2)]
    lines += ["  amlstack:environments:", "    - {name: own, image: 'x.azurecr.io/i:1'}", "  amlstack:jobs:"]
    for number in range(count):
        name = f"{where}/job{number}.yml"
        (root / name).write_text(JOB.format(number=number, code=of[number % len(of)], cluster=number % 2))
        lines.append(f"    - file: {name}")
    file = root / "Pulumi.s.yaml"
    file.write_text("\n".join(lines) + "\n")
    return file


def declared(root: Path, file: Path) -> Declaration:
    found = declare(read_file(file), on=ON, root=root)
    assert found.ok, found.findings
    return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counted: Counter[str] = Counter()

    def count(module: Any, name: str) -> None:
        real = getattr(module, name)

        def counting(*args: Any, **more: Any) -> Any:
            counted[name] += 1
            return real(*args, **more)

        monkeypatch.setattr(module, name, counting)

    count(snapshot, "scan")
    count(snapshot, "own_code")
    count(jobs, "render")
    count(jobs, "resolve")
    count(jobs, "load")
    count(declaration, "environment_of")
    count(declaration, "resolve_target")
    return counted


@pytest.mark.parametrize("count", [10, 40])
def test_jobs_share_folder_environment_and_cluster_and_are_rendered_once_each(
    count: int, tmp_path: Path, calls: Counter[str]
) -> None:
    file = stack(tmp_path, count, of=("../src", "../link", "../src/inner/.."))

    found = declared(tmp_path, file)

    assert calls == {
        "scan": 1, "own_code": 1, "environment_of": 1, "resolve_target": 2, "load": count, "resolve": count,
        "render": count,
    }  # fmt: skip
    assert len({id(run.codes[""]) for run in found.runs}) == 1
    assert len(found.runs) == count


@pytest.mark.parametrize("where", ["jobs", "src"])
def test_what_counts_of_shared_code_is_what_counts_for_each_job_alone(where: str, tmp_path: Path) -> None:
    file = stack(tmp_path, 3, of=("../src",) if where == "jobs" else (".",), where=where)
    (tmp_path / where / "job1.yml").write_text((tmp_path / where / "job0.yml").read_text() + "name: uses\n")

    runs = declared(tmp_path, file).runs

    for number, run in enumerate(runs):
        alone = snapshot.own_code(
            snapshot.scan(tmp_path / "src"),
            declared_in=(tmp_path / where / f"job{number}.yml",),
            commands=(run.plan.parts[""].enriched.command,),
        )
        assert run.own == alone


def test_a_folder_changed_between_two_declarations_is_read_again(tmp_path: Path) -> None:
    file = stack(tmp_path, 2)
    before = declared(tmp_path, file).runs[0].own
    (tmp_path / "src" / "train.py").write_text("print(2)\n")

    assert declared(tmp_path, file).runs[0].own.hash != before.hash


def test_environments_of_two_names_stay_apart(tmp_path: Path) -> None:
    file = stack(tmp_path, 2)
    file.write_text(
        file.read_text().replace("  amlstack:jobs:", "    - {name: two, image: 'x.azurecr.io/j:2'}\n  amlstack:jobs:")
    )
    other = tmp_path / "jobs" / "job1.yml"
    other.write_text(other.read_text().replace("azureml:own", "azureml:two"))

    images = [run.plan.parts[""].enriched.environment.image for run in declared(tmp_path, file).runs]

    assert images == ["x.azurecr.io/i:1", "x.azurecr.io/j:2"]


def test_settings_hold_ten_thousand_jobs_with_all_their_keys(tmp_path: Path) -> None:
    keys = "rerun: again, on_edit: cancel, wait: none, delete_history: false"
    lines = [f"    - {{file: jobs/a_job_with_some_name_{number:05}.yml, {keys}}}" for number in range(10_000)]
    head = ["config:", "  amlstack:workspace: train", "  amlstack:location: westeurope", "  amlstack:jobs:"]
    file = tmp_path / "Pulumi.s.yaml"
    file.write_text("\n".join([*head, *lines]) + "\n")

    read = read_file(file)

    assert [finding.code for finding in read.findings] == ["settings-too-large"]
    assert read.partial is not None
    assert len(read.partial.jobs) == 10_000
