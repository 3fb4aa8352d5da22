"""When no line is a cause: only victims, only a summary, only warnings, or nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.diagnose import absent
from amlstack.diagnose.case import victims
from amlstack.diagnose.diagnosis import Diagnosis, Pointer
from amlstack.diagnose.events import Event, Role
from amlstack.diagnose.signatures import by_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amlstack.diagnose.case import Case

GET_LOGS = (
    "Get every rank's log (`az ml job download --name JOB --all`; user_logs/std_log_process_NN.txt, "
    "v1: azureml-logs/70_driver_log_N.txt) and give the whole folder."
)


def judge(case: Case) -> Diagnosis:
    """The verdict without a culprit among the lines."""
    if suspects := absent.suspects(case):
        ranks, shown = suspects
        reason = f"the others waited for {listed(ranks)}; why is not said"
        return did_not_join(case, ranks, shown, reason, sure="medium" if len(ranks) == 1 else "low")
    told = [event for event in case.events if event.role is Role.VICTIM]
    summaries = [event for event in case.events if event.role is Role.SUMMARY]
    if not told and not summaries:
        return _slow(case) or _quiet(case)
    if _all_stopped(told, summaries):
        return _stopped(case, told)
    return _elsewhere(case, told, summaries)


def notes(case: Case) -> tuple[Pointer, ...]:
    """What is wrong besides: one line per code."""
    found: dict[str, Pointer] = {}
    for event in case.events:
        if event.role is Role.CONTEXT:
            found.setdefault(event.code, _pointer(event))
    return tuple(found.values())


def did_not_join(case: Case, ranks: tuple[int, ...], shown: Event, reason: str, *, sure: str) -> Diagnosis:
    """The verdict on ranks that the others waited for.

    Args:
        case: All that is known.
        ranks: Who did not come.
        shown: The line that shows it.
        reason: Why they are named.
        sure: The confidence.
    """
    signature = by_code("rank-did-not-join")
    rank = ranks[0] if len(ranks) == 1 else None
    node = case.places.get(ranks[0]) if rank is not None else None
    return Diagnosis(
        found=True,
        cause=signature.code,
        rank=rank,
        node=node,
        file=shown.file,
        line=shown.line,
        text=shown.text,
        confidence=sure,
        reason=reason,
        means=signature.means,
        advice=signature.advice,
        victims=tuple(each for each in victims(case, rank) if each.rank not in ranks),
        pointers=tuple(Pointer(each, None, "", 0, "", signature.code) for each in ranks if each != rank),
        notes=notes(case),
        events=(shown,),
    )


def _slow(case: Case) -> Diagnosis | None:
    """No end at all in the logs, but a slow network."""
    hints = [event for event in case.events if event.role is Role.CONTEXT]
    if not hints:
        return None
    first = max(hints, key=lambda event: (event.weight, -event.line))
    return Diagnosis(
        found=True,
        cause=first.code,
        node=first.node,
        file=first.file,
        line=first.line,
        text=first.text,
        confidence="medium",
        reason="this makes a run slow and does not end it; a failure, if there was one, is not in these logs",
        means=first.signature.means,
        advice=first.signature.advice,
        notes=notes(case),
        fatal=False,
        events=tuple(hints[:4]),
    )


def _quiet(case: Case) -> Diagnosis:
    if not case.events:
        reason = "no line of these logs tells of a failure"
    else:
        reason = "nothing that is known to end a run was seen"
    return Diagnosis(found=False, confidence="low", reason=reason, advice=GET_LOGS, fatal=False)


def _all_stopped(told: Sequence[Event], summaries: Sequence[Event]) -> bool:
    """The launcher itself was told to stop, and nobody had failed before."""
    words = ("death signal", "received sigterm", "signal: 15", "signal 15")
    own = [
        event
        for event in told
        if (event.code == "slurm-step-ended" and "CANCELLED" in event.text)
        or (event.code == "told-to-stop" and any(word in event.text.lower() for word in words))
    ]
    failed = [event for event in summaries if event.facts.get("exit") not in (None, 0, -15)]
    return bool(own) and not failed


def _stopped(case: Case, told: Sequence[Event]) -> Diagnosis:
    signature = by_code("terminated-from-outside")
    shown = next(event for event in told if event.code in ("told-to-stop", "slurm-step-ended"))
    return Diagnosis(
        found=True,
        cause=signature.code,
        file=shown.file,
        line=shown.line,
        text=shown.text,
        confidence="medium",
        reason="the launcher itself received the signal and no rank had failed; who sent it is not in the logs",
        means=signature.means,
        advice=signature.advice,
        victims=victims(case, None),
        notes=notes(case),
        events=(shown,),
    )


def _elsewhere(case: Case, told: Sequence[Event], summaries: Sequence[Event]) -> Diagnosis:
    """Victims and summaries only: the cause is not here; say where."""
    failed = _unique(event for event in summaries if event.rank is not None and event.facts.get("exit", 1) != -15)
    complaining = {event.rank for event in told if event.rank is not None}
    failed = [event for event in failed if event.rank not in complaining]
    shown = (failed or list(told) or list(summaries))[0]
    rank = failed[0].rank if len({event.rank for event in failed}) == 1 else None
    silent = sorted(absent.known(case) - complaining - {event.rank for event in failed})
    quiet = silent[0] if len(silent) == 1 and len(complaining) > 1 and not failed else None
    if rank is not None:
        where = f"Rank {rank} failed; why is not here: get its log, user_logs/std_log_process_{rank:02d}.txt."
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
    codes = {event.code: event.signature.advice for event in (*told, *summaries)}
    advice = " ".join(dict.fromkeys([where, *list(codes.values())[:2], GET_LOGS]))
    kinds = "victims" if told and not summaries else ("a summary" if not told else "victims and a summary")
    return Diagnosis(
        found=False,
        rank=quiet if rank is None else rank,
        node=shown.node if rank is not None else None,
        file=shown.file,
        line=shown.line,
        text=shown.text,
        confidence="high" if told or len(failed) > 1 else "medium",
        reason=f"these logs hold {kinds} only: the first true cause is not in them",
        advice=advice,
        victims=victims(case, rank),
        pointers=tuple(_pointer(event) for event in failed[:8]),
        notes=notes(case),
        events=(shown,),
    )


def _unique(events: Iterable[Event]) -> list[Event]:
    found: dict[int | None, Event] = {}
    for event in events:
        found.setdefault(event.rank, event)
    return sorted(found.values(), key=lambda event: (not event.facts.get("root"), event.rank or 0))


def _pointer(event: Event) -> Pointer:
    return Pointer(event.rank, event.node, event.file, event.line, event.text, event.code)


def listed(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 1, 2 and 4 more``."""
    shown = f"rank{'' if len(ranks) == 1 else 's'} " + ", ".join(str(rank) for rank in ranks[:12])
    return shown if len(ranks) <= 12 else f"{shown} and {len(ranks) - 12} more"
