"""Loads job files, plans their jobs and has the rules judge them, for every verb that reads job files."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amlstack.cli.stack_files import stack_names
from amlstack.cli.targets import Targets

if TYPE_CHECKING:
    from datetime import date

    import jobs
    from amlstack.base.findings import Finding
    from infra.runs import CodeFolders
    from infra.settings import JobFile, Reading, Settings
    from jobs.values import Source
    from policies.gate import Gate

OWN: Final = ("amlstack", "infra", "jobs", "policies")
"""Packages of the program that are loaded here."""


@dataclass(frozen=True, slots=True)
class DeclaredRun:
    """One run, by what it would do.

    Attributes:
        declaration: The part of its identity that a person wrote.
        code: A hash of the code that counts for its identity.
        files: Digests of that code's files, as far as they are listed.
        others: What else it depends on, by words for people: its cluster, its data, the `rerun` of the settings.
    """

    declaration: Mapping[str, Any]
    code: str
    files: Mapping[str, str]
    others: Mapping[str, Any]

    def reasons(self, before: DeclaredRun | None) -> Iterator[str]:
        """In words, each thing that makes it another run than it was; nothing for the same run."""
        from amlstack.provider.lifecycle.edits import listed
        from amlstack.rpc import changed_paths
        from amlstack.snapshot import differences

        if before is None:
            yield "new"
            return
        if paths := tuple(changed_paths(dict(before.declaration), dict(self.declaration))):
            yield f"declaration: {listed(paths)}"
        if before.code != self.code:
            yield f"code: {listed(differences(before.files, self.files)) or 'another folder'}"
        yield from different(before.others, self.others)


@dataclass(frozen=True, slots=True)
class StackRuns:
    """The runs that one stack declares.

    Attributes:
        reading: Its settings; None for job files that no stack lists.
        runs: Its runs by name, by the job file that declares them. A file that is missing has None, and one that cannot
            be read has none.
        contents: Content of the files that the settings name, by words for people.
    """

    reading: Reading | None = None
    runs: Mapping[str, Mapping[str, DeclaredRun] | None] = field(default_factory=dict)
    contents: Mapping[str, Any] = field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, DeclaredRun]:
        """Its runs by name alone."""
        return {name: run for runs in self.runs.values() for name, run in (runs or {}).items()}

    def reasons(self, before: StackRuns) -> Iterator[str]:
        """In words, each of its own settings, and each file that they name, that is not as it was."""
        from amlstack.provider.lifecycle.edits import listed
        from amlstack.rpc import changed_paths

        old, new = (each.reading.file.config if each.reading and each.reading.file else {} for each in (before, self))
        paths = [path.removeprefix("amlstack:") for path in changed_paths(old, new)]
        old, new = (
            each.reading.partial.model_dump(mode="json") if each.reading and each.reading.partial else {}
            for each in (before, self)
        )
        if found := tuple(paths or changed_paths(old, new)):  # what is included stands in no stack file
            yield f"settings: {listed(found)}"
        yield from different(before.contents, self.contents)


def different(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The names whose values differ."""
    return (name for name in {**before, **now} if before.get(name) != now.get(name))


@dataclass(frozen=True, slots=True)
class Tree:
    """A repository's files as they are, or as they were in a commit.

    Attributes:
        root: The top folder, links resolved.
        folder: The project's folder, from there on; empty for the top folder itself.
        changed: The paths that differ between the two trees that are compared. The content of other files is not read.
    """

    root: Path
    folder: str
    changed: frozenset[str]

    @property
    def place(self) -> Path:
        """The project's folder."""
        return self.root / self.folder

    def stacks(self) -> tuple[str, ...]:
        """Names of the project's stacks."""
        return stack_names(self.place)

    def declared(
        self, stacks: Sequence[str], loose: Sequence[str], doing: Callable[[str], None]
    ) -> dict[str, StackRuns]:
        """The runs that stacks and job files declare.

        Args:
            stacks: Names of stacks.
            loose: Job files that no stack lists, from the project's folder on.
            doing: Called with each job file before it is read.

        Returns:
            By the stack's name; by an empty name what no stack lists. A stack without a settings file is left out.
        """
        found = {name: self._stack(name, doing) for name in stacks if name in self.stacks()}
        return {**found, "": StackRuns(None, self._files(dict.fromkeys(loose), Targets(root=self.place), doing))}

    def _stack(self, name: str, doing: Callable[[str], None]) -> StackRuns:
        from infra.settings import read_file

        reading = read_file(self.place / f"Pulumi.{name}.yaml")
        settings = reading.partial
        if settings is None:
            return StackRuns(reading)
        where = Targets(stack=name, settings=settings, root=self.place, asked=True, reading=reading)
        contents = {f"data asset `{each.name}`": self.content(each.path) for each in settings.data if each.local}
        for each in settings.environments:
            if (conda := getattr(each, "conda", None)) is not None:
                contents[f"conda file of the environment `{getattr(each, 'name', '')}`"] = self.content(conda)
        if settings.policies:
            contents["configuration of the policies"] = self.content(settings.policies)
        runs = self._files({entry.file: entry for entry in settings.jobs}, where, doing)
        return StackRuns(reading, runs, contents)

    def _files(
        self, entries: Mapping[str, JobFile | None], where: Targets, doing: Callable[[str], None]
    ) -> dict[str, dict[str, DeclaredRun] | None]:
        import jobs as reader
        from infra.runs import with_overrides
        from infra.runs.order import with_secrets

        found: dict[str, dict[str, DeclaredRun] | None] = {}
        for name, entry in entries.items():
            file = self.place / name
            found[name] = {} if file.is_file() else None
            if not file.is_file():
                continue
            doing(name)
            loaded = reader.load(file)
            runs = {}
            for declared in loaded.jobs:
                meant = declared
                if entry is not None:
                    meant = with_secrets(with_overrides(declared, entry, where.environment_of), entry)
                plan = reader.resolve(meant, where.of, source=loaded.source, environments=where.environments())
                called = declared.name or file.stem
                runs[f"schedule {called}" if plan.timed else called] = self._run(plan, file, where)
            found[name] = runs
        return found

    def _run(self, plan: jobs.Planned, file: Path, where: Targets) -> DeclaredRun:
        from infra import data
        from infra.data import named_in
        from jobs.local_data import all_inputs, local_inputs

        others: defaultdict[str, list[Any]] = defaultdict(list)
        others["settings: `rerun`"] = [getattr(plan.job, "rerun", "")]
        for part in plan.parts.values():
            if part.target.cluster:
                others[f"cluster `{part.target.cluster}`"].append(part.target)
            build = getattr(part.job.environment, "build", None)
            if build is not None and "://" not in build.path:
                others["build context of the environment"].append(self.content(part.base / build.path))
        for each in local_inputs(plan.job, (plan.runs or plan).base):
            others[f"data of {each.where}"].append(self.content(each.path))
        if (known := where.named_data()) is not None:
            for asset in data.meant(plan, known).by_input.values():
                content = self.content(asset.spec.path) if asset.spec.local else ""
                others[f"data asset `{asset.spec.name}`"].append((asset.spec, content))
        stores = named_in([each.path for each in all_inputs(plan.job).values()])
        for store in where.settings.datastores if where.settings else ():
            if store.name in stores:
                others[f"datastore `{store.name}`"].append(store)
        return DeclaredRun(plan.declaration, *self._code(plan, file), others)

    def _code(self, plan: jobs.Planned, file: Path) -> tuple[str, Mapping[str, str]]:
        """A hash of a plan's code and its files; where no change touches it, its folders and no files."""
        from infra.runs import CodeFolders

        codes = [(part.base, part.job.code) for part in plan.parts.values() if part.job.code and part.job.code.local]
        names = [self._named(base / name) for base, code in codes for name in (code.path, *code.includes)]
        # `lib.zip` may stand for the folder `lib`.
        if not any(self._touches(name) or self._touches(name.removesuffix(".zip")) for name in names):
            return "\n".join(names), {}
        folders = CodeFolders()
        own = folders.own_code(plan, folders.scanned(plan), file)
        return own.hash, own.files

    def content(self, path: str | Path) -> str:
        """A hash of a file or folder; its path where no change touches it."""
        from amlstack.snapshot import scan_data

        name = self._named(self.place / path)
        return scan_data(self.root / name).hash if self._touches(name) else name

    def _named(self, path: Path) -> str:
        return os.path.relpath(os.path.realpath(path), self.root)

    def _touches(self, name: str) -> bool:
        """True where a change lies at a path or in it; a submodule around it is one path that changed."""
        return any(
            name in {".", each} or each.startswith(f"{name}/") or name.startswith(f"{each}/") for each in self.changed
        )


@contextlib.contextmanager
def imported_from(tree: Path, repository: Path) -> Iterator[None]:
    """Within it, Python imports modules of the repository from one tree of it; they are forgotten after it.

    The program's own packages are those of the process, also where the repository holds another state of them.
    """
    for package in OWN:
        importlib.import_module(package)
    path, known = list(sys.path), set(sys.modules)
    inside = {each: Path(each).resolve() for each in path if Path(each).resolve().is_relative_to(repository)}
    others = {each: str(tree / real.relative_to(repository)) for each, real in inside.items()}
    sys.path[:] = [each for name in path for each in (*([others[name]] if name in others else []), name)]
    try:
        yield
    finally:
        sys.path[:] = path
        for name in sys.modules.keys() - known:
            module = sys.modules[name]
            places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
            if any(Path(place).is_relative_to(tree) for place in places):
                del sys.modules[name]


class Checked(NamedTuple):
    """One file with the plans of its jobs, all findings, and where its fields are written."""

    file: Path
    plans: tuple[jobs.Planned, ...]
    findings: tuple[Finding, ...]
    source: Source


def plan_gate(where: Targets, day: date) -> Gate:
    """Only the rules on what a run needs (sizes, fabric, ranks, checkpoints), for verbs that run or show a job."""
    from policies.checks import SIZE_RULES
    from policies.config import ALL
    from policies.config import read as configured
    from policies.gate import Gate

    levels = dict.fromkeys((*(rule.code for rule in SIZE_RULES), "processes-beyond-gpus"), "mandatory")
    levels |= dict.fromkeys(("fabric-switched-off", "spot-checkpoint"), "advisory")
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
