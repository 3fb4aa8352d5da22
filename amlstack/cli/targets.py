"""Finding the size of the cluster that a job names: from an option, or from a stack's settings file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding, Level, stated
from amlstack.base.paths import PROJECT
from amlstack.base.text import did_you_mean

if TYPE_CHECKING:
    from infra.data import StackData
    from infra.settings import JobFile, Reading, Settings
    from jobs.model.job import Job
    from jobs.planning.plans import Target

DEFAULT_STACK = "sandbox"
NAMESPACE = "amlstack"


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets that jobs would run on.

    Attributes:
        size: The size that was asked for by an option; it stands for every cluster.
        stack: Name of the stack, when its settings were read.
        settings: Those settings.
        root: The folder that their paths start from.
        asked: Whether the stack was asked for, rather than found.
        findings: What is wrong with the settings.
        reading: The settings as they were read.
        file: The job file that is meant, where the stack was not asked for; None for none.
    """

    size: str | None = None
    stack: str | None = None
    settings: Settings | None = None
    root: Path = PROJECT
    asked: bool = False
    findings: tuple[Finding, ...] = ()
    reading: Reading | None = None
    file: Path | None = None

    def of(self, job: Job) -> tuple[Target, tuple[Finding, ...]]:
        """The target of one job, and what is not known about it."""
        # Here, as a verb's --help reads this module and none of these.
        from jobs.planning.job_checks import PLACEHOLDER
        from jobs.planning.plans import Target
        from jobs.wire.command import is_serverless

        if is_serverless(job.compute):
            return Target(size=job.instance_type or self.size), ()
        name = str(job.compute).removeprefix("azureml:").rpartition("/")[2]
        if self.size is not None:
            return Target(size=self.size, cluster=name), ()
        if self.reading is None:
            target, found = Target(cluster=None if name.lower() == "local" else name), list[Finding]()
        else:
            from infra.runs.order import resolve_target

            target, found = resolve_target(job, self.reading)
        if found and self._is_certain:
            return target, tuple(found)
        if not target.cluster or target.size is not None or PLACEHOLDER.search(name):
            return target, ()
        of_stack = () if self._is_outside else tuple(map(self._of_a_found_stack, found))
        return target, of_stack or ((stated("cluster-size-unknown", "compute", Level.INFO, cluster=name)),)

    def of_file(self, file: Path) -> Targets:
        """The same for the jobs of a file: a stack that lists the file is meant, as if it had been asked for.

        Of a file outside of the stack's folder it is not known that it belongs to the stack.
        """
        return self if self.asked or self.settings is None else replace(self, file=file)

    @property
    def _is_certain(self) -> bool:
        """True where the stack was asked for, or lists the file. Looked up only where a finding needs it."""
        if self.asked or self.settings is None or self.file is None:
            return self.asked
        return self.listing(self.file) is not None

    @property
    def _is_outside(self) -> bool:
        """True where the file lies outside of the folder of a stack that was not asked for."""
        return self.file is not None and not self.file.resolve().is_relative_to(self.root.resolve())

    def _of_a_found_stack(self, finding: Finding) -> Finding:
        """The finding that an `up` refuses, where it is not known that the job belongs to this stack."""
        seen = finding.seen.replace("The stack has", f"The stack `{self.stack}` has")
        remedy = f"{finding.remedy} Give --stack for another stack, or --size.".strip()
        return replace(finding, seen=seen, remedy=remedy, level=Level.WARNING)

    def listing(self, file: Path) -> JobFile | None:
        """The stack's entry of a job file; None where it has none."""
        files = self.settings.jobs if self.settings is not None else ()
        alike = (each for each in files if Path(each.file).name == file.name)
        return next((each for each in alike if (self.root / each.file).resolve() == file.resolve()), None)

    def environments(self) -> frozenset[str]:
        """Names of the environments that the stack registers itself."""
        if self.settings is None:
            return frozenset()
        return frozenset(name for each in self.settings.environments if (name := getattr(each, "name", None)))

    def named_data(self) -> StackData | None:
        """The data and datastores that jobs of the stack name; None where it has none, or is not known to be meant."""
        if self.settings is None or self._is_outside or not (self.settings.data or self.settings.datastores):
            return None
        from infra.data import StackData

        return StackData.unread(self.settings)

    def environment_of(self, job: Job) -> dict[str, Any]:
        """The meaning of the job's environment in the stack, for ``model_copy(update=...)``; empty without a stack."""
        if self.settings is None:
            return {}
        from infra.runs.order import environment_of

        return environment_of(job, self.settings, self.root)


def _only_stack() -> str | None:
    """The stack of this project whose settings lie in the working folder, where it is the only one; None for none."""
    found = list(Path.cwd().glob("Pulumi.*.yaml"))
    try:
        if len(found) != 1 or f"{NAMESPACE}:" not in found[0].read_text(encoding="utf-8", errors="replace"):
            return None
    except OSError:
        return None
    return found[0].name.removeprefix("Pulumi.").removesuffix(".yaml")


def find(size: str | None, stack: str | None) -> Targets:
    """Read the options and the stack's file.

    Args:
        size: VM size for all clusters, or None.
        stack: Name of a stack; None takes the only one of the working folder, else the sandbox's where its file is
            there.
    """
    if size is not None:
        return Targets(size=size)
    name = stack or _only_stack() or DEFAULT_STACK
    file = next((path for base in (Path.cwd(), PROJECT) if (path := base / f"Pulumi.{name}.yaml").is_file()), None)
    if file is None:
        rule = "A stack's settings lie in Pulumi.<stack>.yaml, here or in the project's root"
        near = did_you_mean(name, sorted(path.suffixes[0][1:] for path in PROJECT.glob("Pulumi.*.yaml")))
        wrong = Finding("stack-missing", "", f"There is no Pulumi.{name}.yaml", rule, near)
        return Targets(findings=(wrong,) if stack else ())
    from infra.settings import read_file  # only without an option is it needed

    reading = read_file(file)  # faulty settings may still declare the cluster
    asked = stack is not None
    return Targets(None, name, reading.partial, file.parent, asked, reading.findings if asked else (), reading)
