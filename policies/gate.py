"""The first gate: what a declaration will become is judged as the pack judges it, before an engine runs.

The second gate is the pack in the engine, the third Azure Policy. The first two ask
`policies.evaluation.verdicts.judge_resource`; a test holds the third to its verdicts.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from amlstack import __version__
from amlstack.base.findings import Finding, Level, sentence
from amlstack.base.paths import is_file
from policies import config as configuration
from policies.checks import OWN_WRONG
from policies.evaluation.requests import canonical, judged
from policies.evaluation.resource_subjects import fill
from policies.evaluation.subjects import NO_COMPUTE, Context, KnownCluster, address_of
from policies.evaluation.verdicts import judge_all, judge_resource, judges_sum, weigh

if TYPE_CHECKING:
    from datetime import date

    from policies.config import Config
    from policies.evaluation.facts import Path

__all__ = ["LEVELS", "NO_COMPUTE", "Gate", "read"]

LEVELS = {"mandatory": Level.ERROR, "advisory": Level.WARNING}
"""The level of a finding for each level of a rule."""

MISSING, WRONG = "file-missing", "policy-config"


def read(path: FilePath | None, *, written: str = "", where: str = "") -> tuple[Config, tuple[Finding, ...]]:
    """The configuration that the gates share: the pack's own, and on top of it a team's file.

    Args:
        path: The team's file, as ``--policy-pack-config`` takes it; None for the pack's own configuration alone.
        written: The path as the person wrote it.
        where: Where it was written.

    Returns:
        The configuration, and what is wrong with the file; a faulty one is left out as a whole.
    """
    built_in = configuration.load(configuration.BUILT_IN)
    if OWN_WRONG:
        rule = "Each file of `rules/` declares rules of this repository, as docs/reference/policies.md shows"
        return configuration.read(built_in), (Finding("own-rules", where, OWN_WRONG, rule, file="rules"),)
    if path is None:
        return configuration.read(built_in), ()
    if not is_file(path):
        rule = "The rules' configuration is a JSON file, the one that the policy pack is given"
        wrong = Finding(MISSING, where, f"There is no file `{written or path}`", rule, "Name it, or leave the key out")
        return configuration.read(built_in), (wrong,)
    try:
        return configuration.read(configuration.over(built_in, configuration.load(path))), ()
    except (ValueError, OSError, RecursionError) as error:
        rule = "The file configures rules by their code, as docs/reference/policies.md shows"
        return configuration.read(built_in), (Finding(WRONG, where, str(error), rule, file=written or str(path)),)


class Gate:
    """Judges what will be registered, resource after resource: networks, clusters and components before their jobs."""

    def __init__(self, config: Config, on: date, *, place: str = "") -> None:
        """Make a gate that judges as of a day.

        Args:
            config: Levels, settings and exceptions.
            on: The day of the judgement.
            place: ``STACK::PROJECT`` as in a URN, for exceptions with patterns over URNs; empty where not known.
        """
        self.config, self.on = config, on
        self._place, self._context = place, Context(on)
        self._everything, self._sums = config.everything, judges_sum(config)
        self._seen: list[tuple[str, Any]] = []
        self.shared: dict[Hashable, tuple[str, tuple[Finding, ...]]] = {}
        """By what it is made of, the id of a resource that several of the stack share, and the findings on it."""

    def knows(self, cluster: str, size: str) -> None:
        """Tell the gate of a cluster that is not of this declaration: jobs on it are judged by its size.

        Args:
            cluster: Its name; `NO_COMPUTE` for jobs that name neither a compute nor a size.
            size: Its size.
        """
        if not self._context.clusters.named(cluster):
            self._context.clusters.add(address_of(cluster), KnownCluster(size, low_priority=False))

    def leave_to_jobs(self, cluster: str) -> None:
        """Judge a cluster's size at the jobs on it: what was found of the cluster itself is not shown."""
        for by, (place, known) in list(self._context.clusters.named(cluster).items()):
            self._context.clusters.add(place, known._replace(nodes=0), by)

    def judge(
        self, token: str, name: str, props: Any, *, parent: str = "", unreadable: Collection[Path] = ()
    ) -> tuple[Finding, ...]:
        """Judge a resource by every rule, its findings at the levels of the configuration.

        Args:
            token: Pulumi's type token.
            name: Name of the resource.
            props: Its properties as they will be registered; JSON-able.
            parent: Type of the component around it.
            unreadable: Paths in the properties of values that were written, but could not be read: a rule that rests
                on one of them is left out, as its finding would only follow from that error.
        """
        if not judged(token, everything=self._everything):
            return ()
        if self._sums:  # else ten thousand bodies would be kept for nothing
            kept, _ = canonical(props, unreadable)
            fill(token, kept, self._context.components)
            self._seen.append((token, kept))
        chain = f"{parent}${token}" if parent else token
        urn = f"urn:pulumi:{self._place}::{chain}::{name}" if self._place else ""
        verdict = judge_resource(token, props, self.config, self._context, name=name, urn=urn, unreadable=unreadable)
        return (*(self.weighed(finding, name, urn=urn) for finding in verdict.findings), *verdict.notes)

    def whole(self) -> tuple[Finding, ...]:
        """Judge the sum of all that was judged, the exceptions and the catalogue."""
        found = judge_all(self._seen, self.config, self.on, version=__version__)
        return tuple(self.weighed(finding, "") for finding in found)

    def weighed(self, finding: Finding, name: str, *, urn: str = "") -> Finding:
        """A finding of a rule at its configured level, with what an exception adds."""
        weight = weigh(finding, self.config, self.on, name=name, urn=urn)
        if finding.level is Level.INFO:
            return finding
        remedy = finding.remedy
        if weight.exception:
            remedy = f"{sentence(remedy) if remedy else ''}{weight.exception}".strip()
        return finding.changed(level=LEVELS[weight.level], remedy=remedy)

    def at_level(self, finding: Finding, name: str) -> Finding | None:
        """A finding of a plan, which may be of a rule and then has its level; None for a disabled rule."""
        if finding.code not in configuration.CODES:
            return finding
        return self.weighed(finding, name) if self.config.enabled(finding.code) else None
