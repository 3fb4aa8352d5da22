"""Loads job files, plans their jobs and has the rules judge them, for every verb that reads job files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date
    from pathlib import Path

    import jobs
    from amlstack.base.findings import Finding
    from amlstack.cli.targets import Targets
    from infra.runs import CodeFolders
    from infra.settings import Reading, Settings
    from jobs.values import Source
    from policies.gate import Gate


class Checked(NamedTuple):
    """One file with the plans of its jobs, all findings, and where its fields are written."""

    file: Path
    plans: tuple[jobs.Planned, ...]
    findings: tuple[Finding, ...]
    source: Source


def plan_gate(where: Targets, day: date) -> Gate:
    """Only the rules on what a run needs (sizes, fabric, ranks, checkpoints), for verbs that run or show a job."""
    from policies.checks import SIZE_RULES
    from policies.checks.job import FABRIC_OFF_RULE, PROCESSES_RULE, SPOT_CHECKPOINT_RULE
    from policies.config import ALL
    from policies.config import read as configured
    from policies.gate import Gate

    levels = {rule.code: "mandatory" for rule in (*SIZE_RULES, PROCESSES_RULE)}
    levels |= {rule.code: "advisory" for rule in (FABRIC_OFF_RULE, SPOT_CHECKPOINT_RULE)}
    gate = Gate(configured({rule.code: levels.get(rule.code, "disabled") for rule in ALL}), day)
    if where.reading is not None and where.settings is not None:
        _know_clusters(gate, where.reading, where.settings)
    return gate


def _know_clusters(gate: Gate, reading: Reading, settings: Settings, *, shown: bool = False) -> list[Finding]:
    """Tell the gate of the stack's clusters; what is wrong with them is judged at the jobs, unless it is shown."""
    from infra import judgement

    found = [
        finding
        for index in range(len(settings.clusters))
        for finding in judgement.of_cluster(gate, reading, settings, index)
    ]
    if shown:
        return found
    for cluster in settings.clusters:
        gate.leave_to_jobs(cluster.name)
    return []


def configured_gate(where: Targets, day: date, file: Path | None) -> tuple[Gate, tuple[Finding, ...]]:
    """The rules as the stack or the option configures them, with the stack's clusters; and what is wrong so far."""
    from policies.gate import Gate, read

    if where.reading is None or where.settings is None:
        config, wrong = read(file, where="--policy-config")
        return Gate(config, day), wrong
    from infra.declaration import gate_of

    gate, faults = gate_of(where.reading, where.settings, on=day, root=where.root, file=file)
    return gate, (*faults, *_know_clusters(gate, where.reading, where.settings, shown=where.asked))


def _as_listed(declared: jobs.Declared, where: Targets, file: Path) -> jobs.Declared:
    """A declaration with the secrets that the stack's settings add to its variables, where these list the file."""
    from infra.runs.order import with_secrets

    entry = where.listing(file)
    return declared if entry is None else with_secrets(declared, entry)


def check_file(
    file: Path,
    where: Targets,
    *,
    gate: Gate,
    enrich: bool | None = None,
    environment: Callable[[Any], dict[str, Any]] | None = None,
    folders: CodeFolders | None = None,
    packages: bool = False,
) -> Checked:
    """Load a file, plan its jobs, and judge them by the rules.

    Args:
        file: The job file.
        where: Where its jobs would run.
        gate: The rules.
        enrich: Whether values are added; None as each job declares it.
        environment: From a job or component to its environment in the stack; None leaves them as written.
        folders: Code folders that were looked at before; None for none.
        packages: Whether imports and pins are looked at.
    """
    import jobs
    from infra import judgement
    from infra.runs import CodeFolders, location_of

    folders = CodeFolders() if folders is None else folders
    loaded, on = jobs.load(file), where.of_file(file)
    plans, found = [], list(loaded.findings)
    for job in loaded.jobs:
        declared = job if enrich is None else jobs.with_enrich(job, enrich)
        if environment is not None:
            from infra.runs import with_environments

            declared = _as_listed(with_environments(declared, environment), where, file)
        plan = jobs.resolve(declared, on.of, source=loaded.source, environments=where.environments())
        plans.append(plan)
        found += judgement.of_plan(gate, job.name or file.stem, plan, loaded.source)
        found += (finding for code in folders.inspected(plan) for finding in code.findings)
        if packages:
            from amlstack.cli.jobfiles.packages import check

            found += map(location_of(job, loaded.source), (each for of in plan.parts.items() for each in check(*of)))
        if (known := on.named_data()) is not None:
            from infra import data

            found += map(location_of(job, loaded.source), data.meant(plan, known).findings)
    return Checked(file, tuple(plans), tuple(dict.fromkeys(found)), loaded.source)
