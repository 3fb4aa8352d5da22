"""Runs in which no line names the cause: missing ranks, stand-ins, and the next thing to look at."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

from amlstack.diagnose.diagnosis import Diagnosis, Pointer, listed
from amlstack.diagnose.events import Event, Origin, comparable
from amlstack.diagnose.judgement.evidence import WAITED, victims
from amlstack.diagnose.reading.tracebacks import COMMUNICATION
from amlstack.diagnose.signatures import EventRole, by_code, code_of_signal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from amlstack.diagnose.judgement.evidence import Evidence

SIMULTANEOUS = 2.0
"""Seconds within which clocks and buffers of several nodes do not tell an order."""
MEETING = "rendezvous-timeout"
RAYS = "ray-process-died"


def suspect_ranks(evidence: Evidence) -> tuple[tuple[int, ...], Event] | None:
    """Ranks named by a message, or the only ones that do not complain, or behind; and an event that shows it."""
    waiting = [event for event in evidence.events if event.role is EventRole.VICTIM and event.code in WAITED]
    if not waiting:
        return None
    named = Counter(rank for event in waiting for rank in event.facts.get("missing", ()))
    if named:
        most = max(named.values())
        ranks = tuple(sorted(rank for rank, times in named.items() if times == most))
        return ranks, next(event for event in waiting if event.facts.get("missing"))
    complaining = _complaining(evidence)
    silent = tuple(sorted(known(evidence) - complaining))
    # In an excerpt a silent rank may only have been cut away. Silence counts in the logs of a whole job.
    table = any(event.origin is Origin.TABLE for event in evidence.events)
    whole = evidence.world is not None or len(evidence.owners) > 1 or table
    if whole and len(complaining) > len(silent) > 0:
        return silent, waiting[0]
    behind = _behind(waiting)
    return (behind, waiting[0]) if behind else None


def stalled(evidence: Evidence) -> tuple[int, ...]:
    """The few ranks that came less far than the others by the counters in their logs.

    Weak, since lines are not collectives. Nothing when all came as far, when most are behind, or when the counters
    cannot be compared. A rank without any counter came least far.
    """
    reached, known = evidence.reached, evidence.owners
    if len(reached) < 2:
        return ()
    axis = Counter(axis for axis, _ in reached.values()).most_common(1)[0][0]
    at = {rank: number for rank, (kind, number) in reached.items() if kind == axis}
    silent = known - set(reached)
    if silent:  # not so when one rank of each node counts for all
        return tuple(sorted(silent)) if len(silent) * 2 < len(known | set(reached)) else ()
    return _least(at) if len(set(at.values())) > 1 else ()


def absent_from_rendezvous(evidence: Evidence) -> tuple[tuple[int, ...], str | None]:
    """The ranks missing from a meeting: those whose log does not mention it, and the node that they share.

    Logs that launchers wrote, one per node, name the node only.
    """
    complaining = _complaining(evidence) | {event.rank for event in evidence.events if event.code == MEETING}
    if evidence.launchers and complaining <= {None}:
        few = 0 < len(evidence.owners) <= len(evidence.launchers)
        return (), (str(min(evidence.owners)) if few and len(evidence.owners) == 1 else None)
    ranks = known(evidence)
    absent = tuple(sorted(ranks - evidence.ready))
    if evidence.ready and evidence.world and 0 < len(absent) * 2 <= len(ranks):
        nodes = {evidence.places.get(rank) for rank in absent}
        return absent, (nodes.pop() if len(nodes) == 1 else None)
    if len(evidence.owners) < 2:
        return (), None
    silent = tuple(sorted(rank for rank in ranks if rank not in complaining))
    if not 0 < len(silent) * 2 <= len(ranks):
        return (), None
    nodes = {evidence.places.get(rank) for rank in silent}
    return silent, (nodes.pop() if len(nodes) == 1 else None)


def known(evidence: Evidence) -> frozenset[int]:
    """Ranks of the job: those that the logs mention, those below the highest, and as many as the world size."""
    highest = max(evidence.ranks, default=-1) + 1
    return evidence.ranks | frozenset(range(min(max(highest, evidence.world or 0), 1 << 16)))


def _complaining(evidence: Evidence) -> set[int | None]:
    return {
        event.rank
        for event in evidence.events
        if event.role is EventRole.VICTIM and event.rank is not None and event.signature.kind != "stop"
    }


def _behind(waiting: Sequence[Event]) -> tuple[int, ...]:
    """The few ranks whose last collective of one group came before the others' of the same.

    Numbers of different groups say nothing of each other. A rank that did not join has enqueued exactly what the others
    have completed with it: less is another group's count, more means that it did join, unless it is still in a
    collective that all others have left.
    """
    groups: dict[str, dict[int, tuple[int, int]]] = {}
    for event in waiting:
        enqueued, completed = event.facts.get("enqueued"), event.facts.get("completed")
        if event.rank is None or not isinstance(enqueued, int) or not isinstance(completed, int):
            continue
        ranks = groups.setdefault(event.facts.get("group", ""), {})
        ranks[event.rank] = max((enqueued, completed), ranks.get(event.rank, (-1, -1)))
    found = {few for ranks in groups.values() if (few := _least_enqueued(ranks))}
    return found.pop() if len(found) == 1 else ()


def _least_enqueued(ranks: Mapping[int, tuple[int, int]]) -> tuple[int, ...]:
    if len({enqueued for enqueued, _ in ranks.values()}) < 2:
        return ()
    few = _least({rank: enqueued for rank, (enqueued, _) in ranks.items()})
    others = [each for rank, each in ranks.items() if rank not in few]
    if not few or not others:
        return ()
    most, done = max(enqueued for enqueued, _ in others), max(completed for _, completed in others)
    reached = ranks[few[0]][0]
    stuck = all(ranks[rank][1] < min(completed for _, completed in others) for rank in few)
    # It never enqueued what the others wait for, or is still in one that all others have left.
    return few if reached == done or (stuck and most - reached <= most - done) else ()


def _least(at: Mapping[int, float]) -> tuple[int, ...]:
    """The ranks with the least number; none when they are most of all."""
    least = min(at.values())
    few = tuple(sorted(rank for rank, number in at.items() if number == least))
    return few if len(few) * 2 <= len(at) else ()


FILE = "stand-in.json"
"""In a job's folder: what the environment that it ran in lacks of the image, and has in other versions."""
CAUSE = "stand-in-lacks-module"
DIFFERS = "stand-in-differs"
_OF_CODE = ("python-exception", "library-mismatch")
"""Causes that another version of a package may have."""
_MODULE = re.compile(r"No module named '?(?P<name>[\w.]+)")
_FROM = re.compile(r"cannot import name '\w+' from '(?P<name>\w+)|module '(?P<module>\w+)[\w.]*' has no attribute")
_INTERFACE = re.compile(
    r"cannot import name|module '[\w.]+' has no attribute|type object '\w+' has no attribute"
    r"|unexpected keyword argument|positional arguments? but|required (?:positional|keyword-only) argument"
)
"""Python's words when code was written for another version of what it calls."""


def with_stand_in(verdict: Diagnosis, folders: Iterable[Path]) -> Diagnosis:
    """A verdict that knows what the stand-in lacks, where the folders are those of rehearsed jobs.

    Args:
        verdict: By the logs alone.
        folders: What was read.
    """
    missing = _MODULE.search(verdict.text or "") if verdict.cause == "missing-module" else None
    packages = _packages(verdict) if verdict.cause in _OF_CODE else ()
    if missing is None and not packages:
        return verdict
    for folder in sorted(folders, key=lambda each: not (verdict.file or "").startswith(f"{each}/")):
        if (known := _read(folder / FILE)) is not None:
            return _compared(verdict, packages, known) if missing is None else _judged(verdict, missing["name"], known)
    return verdict


def _packages(verdict: Diagnosis) -> tuple[str, ...]:
    """The package that an exception's message names, and those that it came through, the innermost first."""
    named = _FROM.search(verdict.text or "")
    through = verdict.events[0].facts.get("packages", ()) if verdict.events else ()
    return through if named is None else (named["name"] or named["module"], *through)


def _compared(verdict: Diagnosis, packages: tuple[str, ...], known: dict[str, Any]) -> Diagnosis:
    module = next((each for each in packages if each in known["differs"]), None)
    if module is None:
        return verdict
    name, real, got = known["differs"][module]
    text = verdict.text or ""
    differs = f"`{name}` is {got} in the stand-in and {real} in the image"
    if not (_INTERFACE.search(text) or text.startswith(f"{module}.") or verdict.cause == "library-mismatch"):
        return replace(verdict, reason=f"{verdict.reason}; it was raised in `{module}`: {differs}")
    named = json.dumps(known["named"])
    advice = (
        f"Rehearse with the image's version. Write into rehearsal.toml: `[stand_in.{named}]`, below it "
        f'`like = {named}` and `requirements = ["{name}=={real}"]`. If it fails with that too: {verdict.advice}'
    )
    means = f"the exception comes from `{module}`, and {differs}: with the image's the code may well run"
    reason = f"{verdict.reason}, but not with the image's version"
    return replace(verdict, cause=DIFFERS, means=means, advice=advice, confidence="medium", reason=reason)


def _judged(verdict: Diagnosis, name: str, known: dict[str, Any]) -> Diagnosis:
    why = next((why for module, why in known["absent"].items() if _covers(module, name)), None)
    remedy = f"Write what is missing into rehearsal.toml: {known['remedy']}"
    if why is not None:
        means = f"the stand-in lacks `{name}`, which the environment has; the code is not to blame"
        return replace(verdict, cause=CAUSE, means=f"{means} ({why})", advice=remedy)
    if not known["partial"]:
        return verdict
    means = (
        f"`{name}` is neither in the stand-in nor in the code; the image has more than is known here, so that the job "
        "may well find it on Azure"
    )
    reason = f"{verdict.reason}, but not all that the image holds is known"
    advice = f"If the image has it: {remedy[0].lower()}{remedy[1:]} If not: {verdict.advice}"
    return replace(verdict, cause=CAUSE, means=means, advice=advice, confidence="low", reason=reason)


def _covers(module: str, name: str) -> bool:
    """True where an import of a name fails for want of a module: the module, one below it, or a package above it."""
    return name == module or name.startswith(f"{module}.") or module.startswith(f"{name}.")


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text())
        differs = {module: tuple(map(str, triple)) for module, triple in found.get("differs", {}).items()}
        return {
            "absent": dict(found["absent"]),
            "partial": bool(found["partial"]),
            "remedy": str(found["remedy"]),
            "differs": {module: triple for module, triple in differs.items() if len(triple) == 3},
            "named": str(found.get("named", "")),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


GET_LOGS = (
    "Get every rank's log and give the whole folder (of a job on Azure ML: `az ml job download --name JOB --all`; "
    "user_logs/std_log_process_NN.txt, v1: azureml-logs/70_driver_log_N.txt)."
)


MOST_OF_A_NODE = 16
"""Ranks that one node has at most: more are on several, whatever hosts the logs name."""
PENDING = frozenset({"waiting-for-peer", "resources-pending"})
"""Signs of a wait, of which one suffices where nothing follows it."""
RETRIED = PENDING | {
    *("connection-refused", "connection-failed", "network-unreachable", "name-not-resolved", "service-timeout")
}
"""Signs of calls that are tried again, each a warning."""
LOST = RETRIED | {"peer-gone"}
"""A server that is none of the ranks may leave these signs too."""
TRIES = 2
MOST_OUTLIVED = 4
"""Lines shown of what ended nothing."""


def verdict(evidence: Evidence) -> Diagnosis:
    """The verdict without a culprit among the lines."""
    if suspects := suspect_ranks(evidence):
        ranks, shown = suspects
        reason = f"the others waited for {listed(ranks)}; the logs do not give the reason"
        return did_not_join(evidence, ranks, shown, reason, sure="medium" if len(ranks) == 1 else "low")
    ended = [event for event in evidence.events if event.role is EventRole.VICTIM]
    if all(event.soft for event in ended):  # what was logged as a note or a warning ended nobody
        ended = []
    summaries = [event for event in evidence.events if event.role is EventRole.SUMMARY]
    if not summaries and all(event.code in RETRIED for event in ended) and (given_up := _exhausted(evidence)):
        return given_up
    if not ended and not summaries:
        return _slow(evidence) or _quiet(evidence)
    if _all_stopped(ended, summaries):
        return _stopped(evidence, ended)
    return _elsewhere(evidence, ended, summaries)


def notes(evidence: Evidence) -> tuple[Pointer, ...]:
    """The other faults: one line per code."""
    return _of_each_code(event for event in evidence.events if event.role is EventRole.CONTEXT)


def outlived(evidence: Evidence) -> tuple[Pointer, ...]:
    """The signs that read like a cause and ended nothing: one line per code, a few."""
    noted = (event for event in evidence.events if event.role is EventRole.NOTE and not event.soft)
    return _of_each_code(noted)[:MOST_OUTLIVED]


def _of_each_code(events: Iterable[Event]) -> tuple[Pointer, ...]:
    found: dict[str, Pointer] = {}
    for event in events:
        found.setdefault(event.code, Pointer.to(event))
    return tuple(found.values())


def did_not_join(evidence: Evidence, ranks: tuple[int, ...], shown: Event, reason: str, *, sure: str) -> Diagnosis:
    """The verdict on ranks that the others waited for.

    Args:
        evidence: All that is known.
        ranks: The ranks that did not join.
        shown: The line that shows it.
        reason: Why they are named.
        sure: The confidence.
    """
    signature = by_code("rank-did-not-join")
    rank = ranks[0] if len(ranks) == 1 else None
    node = evidence.places.get(ranks[0]) if rank is not None else None
    return Diagnosis.shown_by(
        shown,
        signature,
        rank=rank,
        ranks=ranks if rank is None else (),
        node=node,
        confidence=sure,
        reason=reason,
        victims=tuple(each for each in victims(evidence, rank) if each.rank not in ranks),
        pointers=tuple(Pointer(each, None, "", 0, "", signature.code) for each in ranks if each != rank),
        notes=notes(evidence),
    )


def _slow(evidence: Evidence) -> Diagnosis | None:
    """No end at all in the logs, but a slow network."""
    hints = [event for event in evidence.events if event.role is EventRole.CONTEXT]
    if not hints or (len(evidence.hosts) == 1 and (evidence.world or 0) <= MOST_OF_A_NODE):
        return None  # on one node nothing goes over the network
    first = max(hints, key=lambda event: (event.weight, -event.line))
    return Diagnosis.shown_by(
        first,
        first.signature,
        node=first.node,
        confidence="medium",
        reason="this makes a run slow and does not end it; a failure, if there was one, is not in these logs",
        notes=notes(evidence),
        fatal=False,
        events=tuple(hints[:4]),
    )


def _exhausted(evidence: Evidence) -> Diagnosis | None:
    """A call that failed again and again, or a wait, after which the log says nothing else."""
    tried = [event for event in evidence.events if event.code in RETRIED]
    for event in tried:
        same = [each for each in tried if each.file == event.file]
        last = same[-1]
        if (len(same) >= TRIES or last.code in PENDING) and evidence.spoken[event.file] <= last.line:
            reason = "it was tried again and again, and the log ends with the last try"
            if last.code in PENDING:
                reason = "the log ends with it, and does not say what came of it"
            return Diagnosis.shown_by(
                last, last.signature, rank=last.rank, node=last.node, confidence="medium", reason=reason
            )
    return None


def _quiet(evidence: Evidence) -> Diagnosis:
    lived = outlived(evidence)
    if lived:
        reason = "the run went on after every line that reads like a failure, and no end of it was seen"
    elif not evidence.events:
        reason = "no line of these logs reports a failure"
    else:
        reason = "nothing that is known to end a run was seen"
    return Diagnosis(found=False, confidence="low", reason=reason, advice=GET_LOGS, fatal=False, notes=lived)


def _all_stopped(ended: Sequence[Event], summaries: Sequence[Event]) -> bool:
    """The launcher itself received a signal to stop, and no rank had failed before."""
    words = ("death signal", "received sigterm", "sigterm received", "signal: 15", "signal 15", "terminated")
    own = [
        event
        for event in ended
        if (event.code == "slurm-step-ended" and "CANCELLED" in event.text and "TASK FAILURE" not in event.text)
        or (event.code == "termination-requested" and any(word in event.text.lower() for word in words))
        or (event.code == "interrupted" and all(each.signature.kind == "stop" or _piped(each) for each in ended))
    ]
    failed = [event for event in summaries if event.facts.get("exit") not in (None, 0, -15, -2, 130)]
    return bool(own) and not failed


def _piped(event: Event) -> bool:
    """True where what was lost was the pipe to another process of the same program, such as a loader's worker."""
    return "multiprocessing" in str(event.facts.get("inner", ""))


def _stopped(evidence: Evidence, ended: Sequence[Event]) -> Diagnosis:
    stops = sorted((event for event in ended if event.signature.kind == "stop"), key=lambda event: event.soft)
    ranks = tuple(sorted({-1 if event.rank is None else event.rank for event in stops}))
    who, ranks = ("the launcher itself", ()) if -1 in ranks else (listed(ranks), ranks)
    return Diagnosis.shown_by(
        stops[0],
        by_code("terminated-from-outside"),
        ranks=ranks,
        confidence="medium",
        reason=f"{who} received the signal and no rank had failed; who sent it is not in the logs",
        victims=victims(evidence, None),
        notes=notes(evidence),
    )


def _elsewhere(evidence: Evidence, ended: Sequence[Event], summaries: Sequence[Event]) -> Diagnosis:
    """Victims and summaries only: the cause is not here; the advice names the logs to get."""
    failed = _unique(event for event in summaries if event.rank is not None and event.facts.get("exit", 1) != -15)
    complaining = {event.rank for event in ended if event.rank is not None}
    failed = [event for event in failed if event.rank not in complaining]
    if not failed and (timed_out := _timed_out(evidence, ended)):
        return timed_out
    if alone := _alone(evidence, [*ended, *summaries]):
        return alone
    if not ended and all(_KILLED.search(event.text) for event in summaries):
        shown, code = summaries[0], code_of_signal(SIGKILL)
        return Diagnosis.shown_by(
            shown, by_code(code), rank=shown.rank, node=shown.node, confidence="low", reason=_BY_9
        )
    rank = _earliest(failed)
    shown = next((event for event in failed if event.rank == rank), (failed or list(ended) or list(summaries))[0])
    silent = sorted(known(evidence) - complaining - {event.rank for event in failed})
    quiet = silent[0] if len(silent) == 1 and len(complaining) > 1 and not failed else None
    if rank is not None:
        first = " first" if len(failed) > 1 else ""
        where = f"Rank {rank} failed{first} and its reason is not here: get its log."
    elif failed:
        ranks = listed([each.rank for each in failed if each.rank is not None])
        where = f"{ranks.capitalize()} failed, none with a reason, and the first is not known: get their logs."
    elif quiet is not None:
        where = f"All others are victims: rank {quiet} left early, hung or ended without a word. Get its log."
    elif silent and complaining:
        where = f"Victims here: {listed(sorted(complaining))}; get the logs of {listed(silent)}."
    elif complaining:
        where = f"Victims here: {listed(sorted(complaining))}; get the logs of the ranks that are not here."
    else:
        where = "The lines name a peer or a summary only."
    codes = {event.code: event.signature.advised(event.shown) for event in (*ended, *summaries)}
    advice = " ".join(dict.fromkeys([where, *list(codes.values())[:2], GET_LOGS]))
    kinds = "victims" if ended and not summaries else ("a summary" if not ended else "victims and a summary")
    return Diagnosis(
        found=False,
        rank=quiet if rank is None else rank,
        node=shown.node if rank is not None else None,
        file=shown.file,
        line=shown.line,
        text=shown.text,
        confidence="high" if ended or len(failed) > 1 else "medium",
        reason=f"these logs hold {kinds} only: the first true cause is not in them",
        advice=advice,
        victims=victims(evidence, rank),
        pointers=tuple(Pointer.to(event) for event in failed[:8]),
        notes=notes(evidence),
        events=(shown,),
    )


def _alone(evidence: Evidence, ends: Sequence[Event]) -> Diagnosis | None:
    """The exception of a program that lost a process of its own, or a server (not another rank), if that is all."""
    said = [event for event in ends if not event.soft]
    raised = [event for event in said if event.origin is Origin.TRACEBACK or _OF_CLIENT.match(event.text)]
    mere = all(event.code in LOST for event in said if event.origin is not Origin.TRACEBACK)
    if not raised or not mere or len(known(evidence)) > 1:
        return None
    shown = raised[-1]
    inner = str(shown.facts.get("inner", shown.text.partition(":")[0] if _OF_CLIENT.match(shown.text) else ""))
    serves = shown.code in LOST and inner and not (COMMUNICATION.search(inner) or _OF_RANKS.search(shown.shown))
    if not (_piped(shown) or shown.code == RAYS or serves):
        return None
    return Diagnosis.shown_by(
        shown,
        by_code("child-process-gone") if _piped(shown) else shown.signature,
        rank=shown.rank,
        node=shown.node,
        confidence="low",
        reason="the program raised it; what became of the other process is not in these logs",
        notes=notes(evidence),
    )


_OF_CLIENT = re.compile(r"(?!torch\.)[a-z_]\w*\.[\w.]*(?:Error|Exception): |curl: \(\d+\)")
"""An exception of a library, also where its traceback is missing, or a client's own word."""
_OF_RANKS = re.compile(r"gloo|nccl|hccl|\bmpi|c10d|ucx|tcp ?store|\branks?\b|horovod|rendezvous", re.IGNORECASE)
_KILLED = re.compile(r"^srun: error: .*: Killed\b")
_BY_9 = "signal 9 is seen, its sender is not; nothing before it gives a reason"


def _earliest(failed: Sequence[Event]) -> int | None:
    """The only rank that failed, or the one that a launcher saw first, by its clock where several tables name one."""
    roots = [event for event in failed if event.facts.get("root")] or failed
    times = comparable([event.time for event in roots if event.time is not None])
    if len(roots) > 1 and times is not None and len(times) == len(roots):
        roots = [event for event, at in zip(roots, times, strict=True) if at - min(times) <= SIMULTANEOUS]
    return roots[0].rank if len({event.rank for event in roots}) == 1 else None


_CUT_OFF = re.compile(r"Watchdog caught collective operati")
"""The watchdog's words as far as an excerpt may hold them: their number may be cut off."""


def _timed_out(evidence: Evidence, ended: Sequence[Event]) -> Diagnosis | None:
    """A collective that timed out on all ranks that say anything: the rank whose number is behind, if one is."""
    stuck = [each for each in ended if each.code == "gloo-timeout" or "seq" in each.facts or _CUT_OFF.search(each.text)]
    stuck.sort(key=lambda each: each.facts.get("seq", 0))
    at = {each.rank: each.facts["seq"] for each in stuck if each.rank is not None and "seq" in each.facts}
    same = ("nccl-watchdog-timeout", *(each.code for each in stuck))
    said = (each for each in ended if not each.soft and each.signature.kind != "stop")
    others = [each for each in said if each.code not in same and each.rank not in at]
    # An abort follows a watchdog's words, of an earlier run in the log perhaps.
    if not stuck or any(
        each.code != "aborted" and (each.rank is not None or each.code not in WAITED) for each in others
    ):
        return None
    one = len({event.facts.get("group") for event in stuck}) == 1 and len(set(at.values())) > 1
    alone = len({event.rank for event in stuck}) == 1 and not (evidence.world and not evidence.owners)
    behind = _least(at) if one else ()
    shown = next(event for event in stuck if not behind or event.rank in behind)
    reason = "one rank says so alone: what the others did is not in these logs"
    if not alone:
        reason = "the ranks that waited say so; which one did not arrive is not shown"
    if behind:
        reason = f"out of step: {listed(behind)} waited in number {at[behind[0]]}, others in {max(at.values())}"
    verdict = Diagnosis.shown_by(
        shown,
        by_code("collective-timed-out"),
        rank=behind[0] if len(behind) == 1 else None,
        ranks=behind if len(behind) > 1 else (),
        reason=reason,
        victims=tuple(each for each in victims(evidence, None) if each.rank not in behind),
        notes=notes(evidence),
    )
    more = (shown.signature.advised(shown.shown), GET_LOGS * alone)
    return replace(verdict, advice=" ".join(filter(None, (verdict.advice, *more))))


def _unique(events: Iterable[Event]) -> list[Event]:
    found: dict[int | None, Event] = {}
    for event in events:
        found.setdefault(event.rank, event)
    return sorted(found.values(), key=lambda event: (not event.facts.get("root"), event.rank or 0))
