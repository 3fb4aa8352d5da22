"""The first gate: what a declaration will become is judged as the pack judges it, before an engine runs.

The second gate is the pack in the engine, the third Azure Policy. The first two ask
`policies.evaluation.verdicts.judge_resource`; a test holds the third to its verdicts.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding, Level
from policies import config as configuration
from policies.evaluation.context import Cluster, Context
from policies.evaluation.subjects import judged
from policies.evaluation.verdicts import judge_resource, judge_whole, weigh
from policies.release import version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from pathlib import Path

    from policies.config import Config

LEVELS = {"mandatory": Level.ERROR, "advisory": Level.WARNING}
"""What a rule's level is to the reader of a declaration."""

OTHERWISE: Mapping[str, str] = {
    "size-unknown": "of a job of one node written as an Azure ML YAML it is a warning here: Azure ML takes it, and on "
    "one node there is no fabric to judge; the pack holds to the level",
    "sriov-fabric": "a job is also judged by the cluster that it names, at `compute`, or by `--size`; the pack judges "
    "the cluster where it is declared",
    "size-retired": "as sriov-fabric",
    "subnet-overlap": "settings declare no networks: here the rule knows those of its setting `networks` alone",
    "stack-budget": "`amlstack check` sums the stack's clusters and the jobs of the files that it was given",
    "checked-at-up": "a declaration has no values that are known only later; expressions are told by both",
}
"""Rules that the first two gates see differently, and how; on all others they give one verdict."""

MISSING, WRONG = "file-missing", "policy-config"


def read(path: Path | None, *, written: str = "", where: str = "") -> tuple[Config, tuple[Finding, ...]]:
    """The configuration that the gates share: the pack's own, and on top of it a team's file.

    Args:
        path: The team's file, as ``--policy-pack-config`` takes it; None for the pack's own configuration alone.
        written: The path as the person wrote it.
        where: Where it was written.

    Returns:
        The configuration, and what is wrong with the file; a faulty one is left out as a whole.
    """
    built_in = configuration.load(configuration.BUILT_IN)
    if path is None:
        return configuration.read(built_in), ()
    try:
        there = path.is_file()
    except OSError:  # a name that no file can have
        there = False
    if not there:
        rule = "The rules' configuration is a JSON file, the one that the policy pack is given"
        wrong = Finding(MISSING, where, f"There is no file `{written or path}`", rule, "Name it, or leave the key out")
        return configuration.read(built_in), (wrong,)
    try:
        return configuration.read(configuration.over(built_in, configuration.load(path))), ()
    except (ValueError, OSError, RecursionError) as error:
        rule = "The file configures rules by their code, as docs/policies.md shows"
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
        self._seen: list[tuple[str, Any]] = []

    def knows(self, cluster: str, size: str) -> None:
        """Tell the gate of a cluster that is not of this declaration: jobs on it are judged by its size."""
        self._context.clusters.setdefault(cluster.lower(), Cluster(size, low_priority=False))

    def judge(self, token: str, name: str, props: Any, *, parent: str = "") -> tuple[Finding, ...]:
        """Judge a resource by every rule, its findings at the levels of the configuration.

        Args:
            token: Pulumi's type token.
            name: Name of the resource.
            props: Its properties as they will be registered; JSON-able.
            parent: Type of the component around it.
        """
        if not judged(token, everything=self.config.everything):
            return ()
        plain = json.loads(json.dumps(props, default=str))
        self._seen.append((token, plain))
        chain = f"{parent}${token}" if parent else token
        urn = f"urn:pulumi:{self._place}::{chain}::{name}" if self._place else ""
        verdict = judge_resource(token, plain, self.config, self._context, name=name, urn=urn)
        return (*(self.weighed(finding, name, urn=urn) for finding in verdict.findings), *verdict.notes)

    def whole(self) -> tuple[Finding, ...]:
        """Judge the sum of all that was judged, the exceptions and the catalogue."""
        found = judge_whole(self._seen, self.config, self.on, version=version())
        return tuple(self.weighed(finding, "") for finding in found)

    def weighed(self, finding: Finding, name: str, *, urn: str = "") -> Finding:
        """A finding of a rule at its configured level, with what an exception says of it."""
        weight = weigh(finding, self.config, self.on, name=name, urn=urn)
        if finding.level is Level.INFO:
            return finding
        remedy = " ".join(part for part in (_sentence(finding.remedy) if weight.more else finding.remedy,
                                            weight.more.strip()) if part)  # fmt: skip
        return replace(finding, level=LEVELS[weight.level], remedy=remedy)

    def settled(self, finding: Finding, *names: str) -> Finding | None:
        """A finding of a rule that somebody else made, never weightier than they made it; None for a disabled rule.

        Args:
            finding: Of a rule, or of anything else, which stays as it is.
            names: The resources that it is about: an exception for any of them covers it.
        """
        if finding.code not in configuration.CODES:
            return finding
        if not self.config.enabled(finding.code):
            return None
        weighed = [self.weighed(finding, name) for name in names or ("",)]
        lightest = next((one for one in weighed if one.level is not Level.ERROR), weighed[0])
        return replace(lightest, level=finding.level) if finding.level is not Level.ERROR else lightest


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."
