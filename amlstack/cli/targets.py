"""Finding the size of the cluster that a job names: from an option, or from a stack's settings file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding, Level
from amlstack.base.near_misses import did_you_mean
from amlstack.base.paths import PROJECT
from jobs.planning.target import Target

if TYPE_CHECKING:
    from infra.settings import Cluster, Reading, Settings
    from jobs.model.job import Job

DEFAULT_STACK = "sandbox"


@dataclass(frozen=True, slots=True)
class Targets:
    """Where jobs would run.

    Attributes:
        size: The size that was asked for by an option; it stands for every cluster.
        stack: Name of the stack, when its settings were read.
        settings: Those settings.
        root: The folder that their paths start from.
        asked: Whether the stack was asked for, rather than found.
        findings: What is wrong with the settings.
        reading: The settings as they were read.
    """

    size: str | None = None
    stack: str | None = None
    settings: Settings | None = None
    root: Path = PROJECT
    asked: bool = False
    findings: tuple[Finding, ...] = ()
    reading: Reading | None = None

    def of(self, job: Job) -> tuple[Target, tuple[Finding, ...]]:
        """The target of one job, and what is not known about it."""
        name = job.compute.removeprefix("azureml:").rpartition("/")[2] if job.compute else None
        if name is None:
            return Target(size=job.instance_type or self.size), ()
        if self.size is not None:
            return Target(size=self.size, cluster=name), ()
        if name.lower() == "local":
            return Target(), ()
        cluster = self._cluster(name)
        if cluster is None:
            return Target(cluster=name), (self._unknown(name),)
        return Target(cluster.size, cluster.name, cluster.nodes.max, cluster.single_node_jobs), ()

    def environments(self) -> frozenset[str]:
        """Names of the environments that the stack registers itself."""
        if self.settings is None:
            return frozenset()
        return frozenset(name for each in self.settings.environments if (name := getattr(each, "name", None)))

    def environment_of(self, job: Job) -> dict[str, Any]:
        """What the job's environment means in the stack, for ``model_copy(update=...)``; nothing without a stack."""
        if self.settings is None:
            return {}
        from infra.named import environment_of

        return environment_of(job, self.settings, self.root)

    def _cluster(self, name: str) -> Cluster | None:
        clusters = self.settings.clusters if self.settings else ()
        return next((cluster for cluster in clusters if cluster.name.lower() == name.lower()), None)

    def _unknown(self, name: str) -> Finding:
        names = [cluster.name for cluster in self.settings.clusters] if self.settings else []
        if self.asked:
            rule = f"The stack `{self.stack}` declares the clusters that its jobs run on"
            return Finding("cluster-unknown", "compute", f"`{name}` is no cluster of the stack", rule,
                           did_you_mean(name, names, otherwise="Add it under amlstack:clusters."))  # fmt: skip
        return Finding(
            "cluster-size-unknown",
            "compute",
            f"The size of the cluster `{name}` is not known here",
            "What follows from a size (GPUs, InfiniBand, nodes) is not checked without it",
            "Say it with --size, or name a stack that declares the cluster with --stack.",
            Level.INFO,
        )


def find(size: str | None, stack: str | None) -> Targets:
    """Read what options and the stack's file say.

    Args:
        size: VM size for all clusters, or None.
        stack: Name of a stack; None takes the sandbox's when its file is there.
    """
    if size is not None:
        return Targets(size=size)
    name = stack or DEFAULT_STACK
    file = next((path for base in (Path.cwd(), PROJECT) if (path := base / f"Pulumi.{name}.yaml").is_file()), None)
    if file is None:
        wrong = Finding(
            "stack-missing",
            "",
            f"There is no Pulumi.{name}.yaml",
            "A stack's settings lie in Pulumi.<stack>.yaml, here or in the project's root",
            did_you_mean(name, sorted(path.suffixes[0][1:] for path in PROJECT.glob("Pulumi.*.yaml"))),
        )
        return Targets(findings=(wrong,) if stack else ())
    from infra.settings import read_file  # only without an option is it needed

    reading = read_file(file)  # what can be made of faulty settings still says what a cluster is
    asked = stack is not None
    return Targets(None, name, reading.partial, file.parent, asked, reading.findings if asked else (), reading)
