"""What touches a job: its file, what the file reads, its code, environment and data, and the settings that name it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.cli.jobfiles.changes import imports, reads
from amlstack.cli.jobfiles.changes.settings import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import jobs
    from amlstack.cli.jobfiles.changes.settings import ChangedSettings
    from amlstack.cli.targets import Targets


@dataclass(frozen=True, slots=True, order=True)
class Reason:
    """Why a job or a stack is touched.

    Attributes:
        what: ``code``, ``data``, ``settings: clusters `big` ``.
        file: The changed file, from the repository's root on.
    """

    what: str
    file: str


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths that changed.

    Attributes:
        root: The repository's top folder, links resolved.
        names: From there on.
        absolute: By where each lies, links on the way resolved.
    """

    root: Path
    names: frozenset[str]
    absolute: Mapping[Path, str] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path, names: frozenset[str]) -> Paths:
        """The paths, also by where they lie with links resolved."""
        return cls(root, names, {_real(root / name): name for name in names})

    def file(self, path: Path) -> str | None:
        """The changed path that a file is, or lies under (a submodule); None for none."""
        real = _real(path)
        return next((self.absolute[each] for each in (real, *real.parents) if each in self.absolute), None)

    def under(self, folder: Path) -> Iterator[tuple[str, str]]:
        """Name in the repository and path within the folder of what changed in it, or of a submodule around it."""
        real = Path(os.path.realpath(folder))
        if (around := self.file(real)) is not None:
            yield around, ""
            return
        start = f"{real}/"
        for path, name in self.absolute.items():
            if (text := str(path)).startswith(start):
                yield name, text.removeprefix(start)


def _real(path: Path) -> Path:
    """With links on the way resolved; the last part may be gone, or be a link that is itself what changed."""
    return Path(os.path.realpath(path.parent)) / path.name


def of_job(
    file: Path, where: Targets, changed: Paths, settings: ChangedSettings | None, roots: tuple[Path, ...]
) -> tuple[Reason, ...]:
    """Why a job file's jobs are touched; nothing for none.

    Args:
        file: The job file.
        where: The stack that lists it, or none.
        changed: What changed.
        settings: The same stack's settings compared; None without a stack.
        roots: Folders that Python modules are imported from, beside the file's own.
    """
    import jobs as reader
    from infra.runs import with_environments

    own = changed.file(file)
    found = [Reason("job file", own)] if own is not None else []
    with reads.noted() as opened:
        loaded = reader.load(file)
    plans = [
        reader.resolve(
            with_environments(declared, where.environment_of),
            where.of_file(file).of,
            source=loaded.source,
            environments=where.environments(),
        )
        for declared in loaded.jobs
    ]
    if not loaded.jobs:  # what it needs is not known: its own folder is the best guess
        found += (Reason("beside a job file that cannot be read", name) for name, _ in changed.under(file.parent))
    for plan in plans:
        found += _of_plan(plan, file, changed)
        if settings is not None:
            found += _of_settings(plan, file, where, settings)
            found += _of_assets(plan, where, changed)
    known = {reason.file for reason in found}
    modules = imports.imported(file, roots) if file.suffix == ".py" else frozenset()
    for path in sorted((modules | reads.sources(opened)) - {file.resolve()}):
        if (name := changed.file(path)) is not None and name not in known:
            found.append(Reason("imported by the job file" if path in modules else "read by the job file", name))
    return tuple(dict.fromkeys(found))


def _of_plan(plan: jobs.Planned, file: Path, changed: Paths) -> Iterator[Reason]:
    import jobs as reader
    from jobs.local_data import local_inputs

    for part in plan.parts.values():
        code, environment = part.job.code, part.job.environment
        if code is not None and code.local:
            yield from _of_code(part, file, changed)
        if isinstance(environment, reader.Environment):
            conda, build = environment.conda_file, environment.build
            if isinstance(conda, str) and (name := changed.file(part.base / conda)):
                yield Reason("conda file of the environment", name)
            if build is not None and "://" not in build.path:
                context = part.base / build.path
                yield from (Reason("build context of the environment", name) for name, _ in _taken(context, changed))
    for each in local_inputs(plan.job, (plan.runs or plan).base):
        yield from (Reason(f"data of {each.where}", name) for name, _ in _taken(each.path, changed))


def _of_code(part: jobs.Plan, file: Path, changed: Paths) -> Iterator[Reason]:
    code = part.job.code
    assert code is not None  # noqa: S101 - who calls has looked
    folder = part.base / code.path
    if taken := list(_taken(folder, changed)):
        left = _uncounted(folder, [inside for _, inside in taken], file, part.enriched.command)
        yield from (Reason("code", name) for name, inside in taken if inside not in left)
    for name in code.includes:
        along = part.base / name
        if not along.exists() and along.suffix == ".zip":
            along = along.with_suffix("")
        yield from (Reason("goes along with the code", each) for each, _ in _taken(along, changed))
    for package in part.beside:
        yield from (Reason("runs on the nodes beside the code", name) for name, _ in changed.under(package))


def _taken(folder: Path, changed: Paths) -> Iterator[tuple[str, str]]:
    """What changed of a file or folder that is uploaded, without what its ignore file leaves out."""
    from amlstack.snapshot.ignore import NAMES, Ignore

    if not folder.is_dir():
        if (name := changed.file(folder)) is not None:
            yield name, ""
        else:
            yield from changed.under(folder)  # the folder itself was deleted
        return
    ignore = Ignore.of(folder.resolve())
    for name, inside in changed.under(folder):
        beside = os.path.relpath(folder.resolve() / inside, ignore.base)
        if inside in NAMES or not inside or not ignore.excludes(beside):
            yield name, inside


def _uncounted(folder: Path, changed: Sequence[str], file: Path, command: str) -> set[str]:
    """What of a code folder is no part of what runs: leftovers of tools, and job files that nothing in it uses."""
    from amlstack.snapshot.folder import Snapshot, walked
    from amlstack.snapshot.ignore import NAMES
    from amlstack.snapshot.job_files import declarations
    from amlstack.snapshot.tool_leftovers import litter

    if not folder.is_dir():
        return set()
    walk = walked(folder)
    unused = declarations(Snapshot(walk.root, tuple(walk.files), "", "", ()), (file,), (command,), ())
    # An ignore file is none of what runs, and says what is.
    return unused | (litter({*changed, *(each.relative for each in walk.files)}) - set(NAMES))


def _of_settings(plan: jobs.Planned, file: Path, where: Targets, settings: ChangedSettings) -> Iterator[Reason]:
    entry = where.listing(file)
    named: dict[str, set[str]] = {"jobs": {entry.file} if entry is not None else set()}
    named["clusters"] = {part.target.cluster for part in plan.parts.values() if part.target.cluster}
    named["environments"] = set(_environments(plan))
    named["data"], named["datastores"] = _data(plan)
    for key, names in named.items():
        differ = settings.entries.get(key, frozenset())
        meant = names if ALL in differ else {name for name in names if name in differ}
        for name in sorted(meant):
            yield Reason(f"settings: {key} `{name}`", settings.files[0])


def _of_assets(plan: jobs.Planned, where: Targets, changed: Paths) -> Iterator[Reason]:
    """Data of this machine that the stack makes an asset of, whose version is its content."""
    named, _ = _data(plan)
    for asset in where.settings.data if where.settings else ():
        if asset.local and asset.name in named:
            path = where.root / asset.path
            yield from (Reason(f"data asset `{asset.name}`", name) for name, _ in _taken(path, changed))


def _environments(plan: jobs.Planned) -> Iterator[str]:
    """Names of environments that the parts of a plan have, of the stack's own and curated ones."""
    for part in plan.parts.values():
        environment: Any = part.job.environment
        if isinstance(environment, str):
            registered = re.search(r"/environments/([^/]+)", environment)
            name = registered[1] if registered else environment.removeprefix("azureml:")
            yield re.split(r"[:@]", name)[0].removeprefix("AzureML-")
        elif getattr(environment, "name", None):
            yield environment.name


def _data(plan: jobs.Planned) -> tuple[set[str], set[str]]:
    """Names of data assets and of datastores that the inputs name."""
    from jobs.local_data import all_inputs

    paths = [each.path for each in all_inputs(plan.job).values() if each.path]
    assets = {found[1] for path in paths if (found := re.match(r"azureml:([^:@/]+)", path))}
    return assets, {found[1] for path in paths if (found := re.search(r"datastores/([^/]+)", path))}
