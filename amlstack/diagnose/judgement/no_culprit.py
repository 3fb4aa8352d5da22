"""The verdict when no line is a cause: only victims, only a summary, only warnings, or nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.diagnose.diagnosis import Diagnosis, Pointer
from amlstack.diagnose.judgement import missing_ranks
from amlstack.diagnose.judgement.evidence import victims
from amlstack.diagnose.signatures import EventRole, by_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amlstack.diagnose.events import Event
    from amlstack.diagnose.judgement.evidence import Evidence

GET_LOGS = (
    "Get every rank's log (`az ml job download --name JOB --all`; user_logs/std_log_process_NN.txt, "
    "v1: azureml-logs/70_driver_log_N.txt) and give the whole folder."
)


MOST_OF_A_NODE = 16
"""Ranks that one node has at most: more are on several, whatever hosts the logs name."""
MOST_OUTLIVED = 4
"""Lines shown of what ended nothing."""


def verdict(evidence: Evidence) -> Diagnosis:
    """The verdict without a culprit among the lines."""
    if suspects := missing_ranks.suspects(evidence):
        ranks, shown = suspects
        reason = f"the others waited for {listed(ranks)}; the logs do not give the reason"
        return did_not_join(evidence, ranks, shown, reason, sure="medium" if len(ranks) == 1 else "low")
    ended = [event for event in evidence.events if event.role is EventRole.VICTIM]
    if all(event.soft for event in ended):  # what was logged as a note or a warning ended nobody
        ended = []
    summaries = [event for event in evidence.events if event.role is EventRole.SUMMARY]
    if not ended and not summaries:
        return _slow(evidence) or _quiet(evidence)
    if _all_stopped(ended, summaries):
        return _stopped(evidence, ended)
    return _elsewhere(evidence, ended, summaries)


def notes(evidence: Evidence) -> tuple[Pointer, ...]:
    """What is wrong besides: one line per code."""
    found: dict[str, Pointer] = {}
    for event in evidence.events:
        if event.role is EventRole.CONTEXT:
            found.setdefault(event.code, Pointer.to(event))
    return tuple(found.values())


def outlived(evidence: Evidence) -> tuple[Pointer, ...]:
    """What reads like a cause and ended nothing: one line per code, a few."""
    found: dict[str, Pointer] = {}
    for event in evidence.events:
        if event.role is EventRole.NOTE and not event.soft:
            found.setdefault(event.code, Pointer.to(event))
    return tuple(found.values())[:MOST_OUTLIVED]


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
    words = ("death signal", "received sigterm", "signal: 15", "signal 15")
    own = [
        event
        for event in ended
        if (event.code == "slurm-step-ended" and "CANCELLED" in event.text and "TASK FAILURE" not in event.text)
        or (event.code == "termination-requested" and any(word in event.text.lower() for word in words))
    ]
    failed = [event for event in summaries if event.facts.get("exit") not in (None, 0, -15)]
    return bool(own) and not failed


def _stopped(evidence: Evidence, ended: Sequence[Event]) -> Diagnosis:
    return Diagnosis.shown_by(
        next(event for event in ended if event.code in ("termination-requested", "slurm-step-ended")),
        by_code("terminated-from-outside"),
        confidence="medium",
        reason="the launcher itself received the signal and no rank had failed; who sent it is not in the logs",
        victims=victims(evidence, None),
        notes=notes(evidence),
    )


def _elsewhere(evidence: Evidence, ended: Sequence[Event], summaries: Sequence[Event]) -> Diagnosis:
    """Victims and summaries only: the cause is not here; the advice names the logs to get."""
    failed = _unique(event for event in summaries if event.rank is not None and event.facts.get("exit", 1) != -15)
    complaining = {event.rank for event in ended if event.rank is not None}
    failed = [event for event in failed if event.rank not in complaining]
    shown = (failed or list(ended) or list(summaries))[0]
    rank = failed[0].rank if len({event.rank for event in failed}) == 1 else None
    silent = sorted(missing_ranks.known(evidence) - complaining - {event.rank for event in failed})
    quiet = silent[0] if len(silent) == 1 and len(complaining) > 1 and not failed else None
    if rank is not None:
        where = f"Rank {rank} failed and its reason is not here: get its log, user_logs/std_log_process_{rank:02d}.txt."
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
    codes = {event.code: event.signature.advice for event in (*ended, *summaries)}
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


def _unique(events: Iterable[Event]) -> list[Event]:
    found: dict[int | None, Event] = {}
    for event in events:
        found.setdefault(event.rank, event)
    return sorted(found.values(), key=lambda event: (not event.facts.get("root"), event.rank or 0))


def listed(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 1, 2 and 4 more``."""
    shown = f"rank{'' if len(ranks) == 1 else 's'} " + ", ".join(str(rank) for rank in ranks[:12])
    return shown if len(ranks) <= 12 else f"{shown} and {len(ranks) - 12} more"
