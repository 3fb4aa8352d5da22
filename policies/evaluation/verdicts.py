"""Verdicts of the rules on a resource and on a stack, with unknown values taken for every value that would matter."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.base.findings import Finding, Level, stated
from amlstack.catalog import sizes
from policies import checks
from policies.checks.governance import GrowsTo, check_stack_budget
from policies.checks.size import check_retired_size
from policies.evaluation.bindings import BINDINGS, Judge, cluster_of, paid_as
from policies.evaluation.facts import AT_UP, UNREADABLE, Facts, Path, Undecided, Unknown
from policies.evaluation.requests import canonical, judged
from policies.evaluation.resource_subjects import component, fill, image, subjects
from policies.evaluation.subjects import Context, Early, KnownCluster, Subject, clusters_of

if TYPE_CHECKING:
    from datetime import date

    from policies.config import Config


_OF_KIND = {
    kind: tuple(binding for binding in BINDINGS if kind in binding.rule.kinds)
    for kind in ("cluster", "job", "environment", "resource", "text", "network", "group", "machine")
}
_OWN = frozenset(own.rule.code for own in checks.OWN)
NOT_HERE = "names a cluster that is declared elsewhere, whose size is not known here"


class Verdict(NamedTuple):
    """The findings of the rules in one subject.

    Attributes:
        findings: What is wrong whatever the unknown values turn out to be.
        notes: Which rules are still open and why, one for each value that is missing.
    """

    findings: tuple[Finding, ...]
    notes: tuple[Finding, ...] = ()


_NOTHING = Verdict(())


class Weight(NamedTuple):
    """The weight of a finding under a configuration.

    Attributes:
        level: ``mandatory`` or ``advisory``.
        exception: What an exception adds to the message; empty without one.
    """

    level: str
    exception: str = ""


def weigh(finding: Finding, config: Config, on: date, *, name: str, urn: str = "") -> Weight:
    """Weigh a finding: by its rule's level, and as advice where an exception covers the resource.

    Args:
        finding: Of a rule that is not disabled.
        config: The configuration.
        on: The day, for exceptions.
        name: Name of the resource.
        urn: Its URN, as far as it is known.
    """
    for waiver in config.exceptions:
        if waiver.counts_on(on) and waiver.covers(finding.code, name, urn):
            until = f"Excepted until {waiver.expires.isoformat()} by {waiver.owner}: {waiver.reason}"
            return Weight("advisory", f" {until}.")
    # A remediation that did not help leaves a violation like any other.
    level = config.level(finding.code).replace("remediate", "mandatory")
    return Weight("advisory" if finding.level is Level.INFO else level)


def judge_resource(
    resource_type: str,
    props: Any,
    config: Config,
    context: Context,
    *,
    name: str = "",
    urn: str = "",
    unreadable: Collection[Path] = (),
) -> Verdict:
    """Judge one resource, and remember of it what later ones need. The one function behind all gates.

    Args:
        resource_type: Pulumi's type token.
        props: The properties as plain Python.
        config: The configuration.
        context: What is known of the stack; what this resource adds is written into it.
        name: The resource's name.
        urn: Its URN, as far as it is known.
        unreadable: Paths of values that were written, but could not be read.
    """
    props, twins = canonical(props, unreadable)
    if known := component(resource_type, props):
        context.components[known[0]] = known[1]
    if found_image := image(resource_type, props):
        context.images[found_image[0]] = found_image[1]
    fill(resource_type, props, context.components)
    found: list[Finding] = []
    notes: list[Finding] = []
    written_twice = (Subject("cluster", twin.path, twin, 1, Facts(props, {})) for twin in twins)
    for subject in (*written_twice, *subjects(resource_type, props, context.groups)):
        remember(subject, context, by=urn or name)
        verdict = judge(subject, config, context)
        if _before_its_cluster(subject, context):
            seen = frozenset((one.code, one.where) for one in verdict.findings)
            context.early.append(Early(subject, seen, name, urn))
        found += verdict.findings
        notes += verdict.notes
    return Verdict(_once(found), _once(notes) if config.enabled("checked-at-up") else ())


_TURN = re.compile(r"\[\d+\]")


def _once(findings: list[Finding]) -> tuple[Finding, ...]:
    """Findings without those that repeat an earlier one on a further turn of a template's loop."""
    if len(findings) < 2:  # as almost always
        return tuple(findings)
    kept: dict[tuple[str, str, str], Finding] = {}
    for one in findings:
        kept.setdefault((one.code, _TURN.sub("", one.where), _TURN.sub("", one.seen)), one)
    return tuple(kept.values())


def _before_its_cluster(subject: Subject, context: Context) -> bool:
    if subject.kind != "job" or subject.size is not None or not isinstance(subject.compute, str):
        return False
    try:
        return cluster_of(subject, context) is None
    except Undecided:
        return True


def judge_early(config: Config, context: Context) -> Iterable[tuple[Finding, Early]]:
    """Judge once more, at the end of a stack, the jobs whose cluster was seen only after them; what is new of it."""
    early, context.early = context.early, []
    for one in early:
        if _may_run_on(one.subject, context):
            found = judge(one.subject, config, context).findings
            yield from ((finding, one) for finding in found if (finding.code, finding.where) not in one.found)
        elif one.subject.nodes != 1 and config.enabled("checked-at-up"):
            where = one.subject.facts.at("compute")
            elsewhere: dict[tuple[Unknown, ...], list[str]] = {(Unknown(where, NOT_HERE),): ["sriov-fabric"]}
            yield from ((note, one) for note in left_open(where, elsewhere, config)[1])


def judge(subject: Subject, config: Config, context: Context) -> Verdict:
    """Judge one thing that a resource asks for by every rule that is not disabled, on each cluster that it may mean."""
    may_be = _may_run_on(subject, context)
    if len(may_be) < 2:  # what is chosen here no rule looks up again
        return _judge(subject._replace(on=may_be[0]) if may_be else subject, config, context)
    each = [_judge(subject._replace(on=one), config, context) for one in may_be]
    findings = dict.fromkeys(finding for verdict in each for finding in verdict.findings)
    return Verdict(tuple(findings), tuple(dict.fromkeys(note for verdict in each for note in verdict.notes)))


def _may_run_on(subject: Subject, context: Context) -> list[KnownCluster]:
    if subject.kind != "job" or subject.size is not None:
        return []
    try:
        return clusters_of(subject, context)
    except Undecided:
        return []


def _judge(subject: Subject, config: Config, context: Context) -> Verdict:
    found: list[Finding] = []
    waits: dict[tuple[Unknown, ...], list[str]] = {}
    if subject.size is not None:
        certain, undecided, unknown = _sizes(subject, context)
        found += certain
        if undecided:
            waits[unknown] = undecided
    elif subject.kind == "job":
        found += _size_of_its_cluster(subject, context)
    # Of what is unknown as a whole there is nothing else to read.
    for code, ask, settings in _enabled(config, subject.kind) if subject.facts.known else ():
        try:
            for one in ask(subject, settings, context):
                if one is not None:
                    found.append(one)
        except Undecided as undecided_yet:
            waits.setdefault((undecided_yet.unknown,), []).append(code)
        except Exception as error:
            if code not in _OWN:
                raise
            seen = f"The rule failed: {type(error).__name__}: {error}"
            found.append(Finding(code, subject.where, seen, "A rule that fails lets nothing pass", "Mend it in rules/"))
    if not found and not waits:  # as almost always
        return _NOTHING
    refused, notes = left_open(subject.where, waits, config) if waits else ([], ())
    return Verdict((*(one for one in found if config.enabled(one.code)), *refused), notes)


def _enabled(config: Config, kind: str) -> tuple[tuple[str, Judge, Mapping[str, Any]], ...]:
    """The rules on a kind of subject that are not disabled and have something to say, with their settings."""
    if (known := config.asked.get(kind)) is None:
        known = config.asked[kind] = tuple(
            (rule.code, judge, config.settings(rule.code))
            for rule, judge in _OF_KIND[kind]
            if config.enabled(rule.code) and _given(rule.silent_without, config.settings(rule.code))
        )
    return known


def _given(names: tuple[str, ...], settings: Mapping[str, Any]) -> bool:
    return not names or any(settings[name] not in (None, [], {}) for name in names)


def remember(subject: Subject, context: Context, *, by: str = "") -> None:
    """Keep what others need to know of a cluster, a network or a resource group; those come before them.

    Args:
        subject: What it is.
        context: What is known of the stack.
        by: The resource that declares it.
    """
    facts = subject.facts
    with suppress(Undecided):
        if subject.kind == "cluster" and subject.place is not None and isinstance(subject.size, str):
            region, low = paid_as(subject)
            known = KnownCluster(subject.size, low, subject.single_node_jobs, subject.nodes, region)
            context.clusters.add(subject.place, known, (by, subject.where))
        elif subject.kind == "network" and (name := facts.name("name")):
            ranges = facts.value("ranges")
            listed = ranges if isinstance(ranges, list) else ()
            context.networks[name.lower()] = tuple(one for one in listed if isinstance(one, str))
        elif subject.kind == "group" and (name := facts.name("name")):
            context.groups[name.lower()] = facts.text("location")


def _sizes(subject: Subject, context: Context) -> tuple[list[Finding], list[str], tuple[Unknown, ...]]:
    """The rules on sizes: what they find for certain, which of them are open, and the values that are missing."""
    if isinstance(subject.size, Unknown):
        codes = ["size-retired"] if subject.kind == "machine" else [rule.code for rule in checks.SIZE_RULES]
        return [], codes, (subject.size,)
    if subject.kind == "machine":  # no job spans its nodes, and the catalogue need not know every size
        known = sizes.get(subject.size or "")
        gone = check_retired_size(known, on=context.on, where=subject.where) if known else None
        return [gone] if gone else [], [], ()
    unknown = tuple(value for value in (subject.nodes, subject.single_node_jobs) if isinstance(value, Unknown))
    outcomes = [
        checks.sizes_for(subject.size or "", nodes=nodes, on=context.on, single_node_jobs=single, where=subject.where)
        for nodes, single in product(
            (1, 2) if isinstance(subject.nodes, Unknown) else (subject.nodes,),
            (True, False) if isinstance(subject.single_node_jobs, Unknown) else (subject.single_node_jobs,),
        )
    ]
    found = [{finding.code for finding in outcome} for outcome in outcomes]
    certain = set.intersection(*found)
    undecided = sorted(set.union(*found) - certain)
    return [finding for finding in outcomes[0] if finding.code in certain], undecided, unknown


def _size_of_its_cluster(subject: Subject, context: Context) -> list[Finding]:
    """The findings of a cluster's size for a job's number of nodes, beyond those about the cluster itself.

    Of a cluster that is declared elsewhere nothing has been judged: there the job is judged in its place.
    """
    try:
        cluster = cluster_of(subject, context)
    except Undecided:
        return []
    nodes = 1 if isinstance(subject.nodes, Unknown) else subject.nodes
    if cluster is None or isinstance(cluster.nodes, Unknown) or nodes <= cluster.nodes:
        return []
    single = cluster.single_node_jobs is not False
    where = subject.facts.at("compute")
    found, known = (
        checks.sizes_for(cluster.size, nodes=count, on=context.on, single_node_jobs=single, where=where)
        if count
        else ()
        for count in (nodes, cluster.nodes)
    )
    codes = {finding.code for finding in known}
    return [finding for finding in found if finding.code not in codes]


def left_open(
    where: str, waits: Mapping[tuple[Unknown, ...], list[str]], config: Config
) -> tuple[list[Finding], tuple[Finding, ...]]:
    """The findings refused because they never become known here, and those that are only noted."""
    refused: list[Finding] = []
    notes: list[Finding] = []
    for unknown, codes in waits.items():
        if any(value.why == UNREADABLE for value in unknown):
            continue
        enabled = [code for code in dict.fromkeys(codes) if config.enabled(code)]
        final = any(value.unresolved for value in unknown)
        bound = [code for code in enabled if final and config.level(code) in {"mandatory", "remediate"}]
        if bound and config.enabled("template-unresolved"):
            refused.append(_unresolved(where, unknown, bound))
        elif enabled:
            notes.append(_wait(where, unknown, enabled))
    return refused, tuple(notes)


def _unresolved(where: str, unknown: tuple[Unknown, ...], codes: list[str]) -> Finding:
    seen = " and ".join(f"{value.path} {value.why}" for value in unknown)
    rule = f"What is deployed is judged before it is deployed, and {_list(codes)} open here"
    remedy = "Write the value out, once, or give it in the deployment's parameters"
    return Finding("template-unresolved", where, seen=seen, rule=rule, remedy=remedy)


def _wait(where: str, unknown: tuple[Unknown, ...], codes: list[str]) -> Finding:
    later = all(value.why == AT_UP for value in unknown)
    seen = " and ".join(f"{value.path} {value.why}" for value in unknown)
    rule = f"{_list(codes)} {'checked at up' if later else 'not decided here'}"
    remedy = "" if later else "Write the value out to have it judged"
    return Finding("checked-at-up", where, seen=seen, rule=rule, remedy=remedy, level=Level.INFO)


def _list(codes: list[str]) -> str:
    return f"{codes[0]} is" if len(codes) == 1 else f"{', '.join(codes[:-1])} and {codes[-1]} are"


def judges_sum(config: Config) -> bool:
    """True where anything is judged on the sum of a stack: only then must its resources be kept."""
    return config.enabled("stack-budget") and any(config.settings("stack-budget").values())


def judge_all(resources: Iterable[tuple[str, Any]], config: Config, on: date, *, version: str) -> Iterable[Finding]:
    """Judge the stack as a whole, the exceptions and the catalogue.

    Args:
        resources: Type and properties of every resource; read where `judges_sum`.
        config: The configuration.
        on: The day of the judgement.
        version: The pack's version.
    """
    if judges_sum(config):
        asked = (
            subject for kind, props in resources if judged(kind) for subject in subjects(kind, canonical(props)[0])
        )
        yield from judge_stack(asked, config)
    if config.enabled("exception-expired"):
        yield from (waiver.finding() for waiver in config.exceptions if not waiver.counts_on(on))
    if config.enabled("catalogue-old"):
        yield from judge_catalogue(on, days=int(config.settings("catalogue-old")["days"]), version=version)


def judge_stack(subjects: Iterable[Subject], config: Config) -> tuple[Finding, ...]:
    """Judge the sum of what a stack asks for."""
    asked: list[GrowsTo] = []
    unknown: list[Unknown] = []
    for subject in subjects:
        if subject.size is None or subject.kind not in {"cluster", "job"}:
            continue
        missing = [value for value in (subject.size, subject.nodes) if isinstance(value, Unknown)]
        unknown += missing
        size = sizes.get(subject.size) if isinstance(subject.size, str) else None
        if size is not None and isinstance(subject.nodes, int):
            asked.append(GrowsTo(size, subject.nodes, *paid_as(subject)))
    found = check_stack_budget(asked, **config.settings("stack-budget"))
    refused, notes = left_open("", {(value,): ["stack-budget"] for value in unknown}, config)
    return (*found, *refused, *notes)


def judge_catalogue(on: date, *, days: int, version: str) -> Iterator[Finding]:
    """Judge the catalogue as of a day.

    Args:
        on: The day of the judgement.
        days: How many days ago it may have been checked last.
        version: The pack's version.
    """
    checked, newest = sizes.last_checked(), sizes.last_retirement()
    if newest is not None and on > newest:
        seen = f"Version {version} knows no retirement after {newest.isoformat()}, and that day has passed"
    elif (on - checked).days > days:
        seen = f"The catalogue of version {version} was last checked in {checked:%Y-%m}"
    else:
        return
    yield stated("catalogue-old", "", Level.WARNING, seen=seen)
