"""Signatures of failures: words in a log, their meaning and the remedy, as data in ``data/*.toml``; exit codes."""

from __future__ import annotations

import re
import signal
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

TEXTS: Final = {
    "operation not permitted": 1, "no such file or directory": 2, "input/output error": 5,
    "resource temporarily unavailable": 11, "cannot allocate memory": 12, "permission denied": 13,
    "device or resource busy": 16, "invalid argument": 22, "too many open files": 24, "no space left on device": 28,
    "read-only file system": 30, "broken pipe": 32, "address already in use": 98, "network is unreachable": 101,
    "software caused connection abort": 103, "connection reset by peer": 104, "connection timed out": 110,
    "connection refused": 111, "no route to host": 113, "disk quota exceeded": 122,
}  # fmt: skip
"""The texts of Linux's `strerror`, in lower case → the number (man 3 errno)."""
_TEXTS = re.compile("|".join(map(re.escape, TEXTS)))
_NUMBER = re.compile(r"errno\W{0,3}(\d{1,3})\b")


def errno_of(lower: str) -> int | None:
    """The number that a line, given in lower case, names by its text or as ``errno``; None when it names none."""
    if found := _TEXTS.search(lower):
        return TEXTS[found[0]]
    if found := _NUMBER.search(lower):
        return int(found[1])
    return None


_NO_DIGITS = str.maketrans("", "", "0123456789")
_ALWAYS = "^"
"""The precondition of an advice that follows from its signature alone; one without a pattern stands in for others."""
SURE = ("low", "medium", "high")


class EventRole(StrEnum):
    """The part that an event can have in a failure."""

    CULPRIT = "culprit"
    VICTIM = "victim"
    SUMMARY = "summary"
    CONTEXT = "context"
    NOTE = "note"
    NOISE = "noise"


@dataclass(frozen=True, slots=True)
class Signature:
    """One cause, or one sign that another process has ended.

    Attributes:
        code: Kebab-case name, stable.
        topic: Its data file.
        role: What a line that shows it is.
        means: What happened, in one sentence without a subject's name.
        advice: What to do: patterns of what the run must show for it, each with its sentence.
        source: Where that is written.
        any: Lower-case words, one of which a line must hold before the pattern is tried.
        pattern: What the line must match, case ignored; None when the words suffice.
        weight: 4 names the thing itself, 3 a definite cause, 2 an exception or a sign that may be harmless,
            1 a consequence that is a cause only when there is no better one. Victims have 0.
        sure: The best confidence that this sign allows.
        shared: A mistake of the whole job: when several ranks show it, none is to blame alone.
        blameless: No rank causes it.
        kind: ``signal``, ``stop`` or ``crash``; empty for all others.
        errnos: What a call failed with decides what that means: where a line names another number, this is not it.
        ends: The line itself says that a process, or the whole run, has ended or was refused: it needs no other sign
            of an end beside it.
    """

    code: str
    topic: str
    role: EventRole
    means: str
    advice: tuple[tuple[re.Pattern[str], str], ...]
    source: str
    any: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    weight: int = 0
    sure: str = "high"
    shared: bool = False
    blameless: bool = False
    kind: str = ""
    ends: bool = False
    errnos: tuple[int, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Between processes by its code: the table is the same in each."""
        return by_code, (self.code,)

    def advised(self, shown: str) -> str:
        """The sentences that hold for what a run shows; ``{name}`` in one is what its pattern found."""
        said: list[str] = []
        met = False
        for when, sentence in self.advice:
            if (found := when.search(shown)) is None or (met and not when.pattern):
                continue
            met |= when.pattern not in ("", _ALWAYS)
            said.append(sentence)
            for name, value in found.groupdict("").items():
                if value:
                    said[-1] = said[-1].replace(f"{{{name.rstrip('0123456789')}}}", value.strip(" .,:;"))
        return " ".join(said)

    @property
    def depth(self) -> int:
        """The exactness with which it names the failure: an exception of any kind says nothing of it."""
        return self.weight if self.any else 0


@cache
def table() -> tuple[Signature, ...]:
    """All signatures, in the order in which they are tried on a line.

    Definite causes come before victims: "CUDA out of memory … communicator was aborted" is a cause. Victims come
    before ordinary causes: "RuntimeError: Connection reset by peer" is no exception of the program's own.
    """
    found: list[Signature] = []
    for file in sorted(Path(__file__).with_name("data").iterdir()):
        if file.name.endswith(".toml"):
            topic = file.name.removesuffix(".toml")
            found += [_signature(topic, row) for row in tomllib.loads(file.read_text())["signature"]]
    return tuple(sorted(found, key=_turn))


@cache
def by_code(code: str) -> Signature:
    """The signature of a code.

    Raises:
        KeyError: There is none.
    """
    for signature in table():
        if signature.code == code:
            return signature
    raise KeyError(code)


def match(text: str) -> tuple[Signature, dict[str, str]] | None:
    """The first signature that a line shows, with the named pieces of its text."""
    lower = text.lower()
    for words, signature in _possible(lower.translate(_NO_DIGITS)):
        if not any(word in lower for word in words):
            continue
        if signature.errnos and errno_of(lower) not in (None, *signature.errnos):
            continue
        if signature.pattern is None:
            return signature, {}
        if found := signature.pattern.search(text):
            return signature, {name: value for name, value in found.groupdict().items() if value is not None}
    return None


def hedged(text: str, signature: Signature) -> bool:
    """True where a line only guesses: "possible" or "may" stands before the sign, or "or" between several causes."""
    lower = text.lower()
    if not _GUESS.search(text):
        return False
    found = signature.pattern.search(text) if signature.pattern is not None else None
    places = [lower.find(word) for word in signature.any]
    at = found.start() if found else min((place for place in places if place >= 0), default=0)
    sentence = text[max(text.rfind(end, 0, at) for end in (". ", "? ", "! ")) + 1 : at]
    if _MAYBE.search(sentence) or _LISTED.search(text[:at]):
        return True
    around = lower[max(0, lower.rfind(". ", 0, at)) :].split(". ")[0]
    if " or " not in around:
        return False
    return len({each.code for words, each in _possible(lower.translate(_NO_DIGITS)) if _culprit(each, words, text)}) > 1


def _culprit(signature: Signature, words: tuple[str, ...], text: str) -> bool:
    if (
        signature.role is not EventRole.CULPRIT
        or signature.weight < 3
        or not any(word in text.lower() for word in words)
    ):
        return False
    return signature.pattern is None or signature.pattern.search(text) is not None


_MAYBE = re.compile(
    r"\b(?:may|(?i:possibl[ey]|potential(?:ly)?|might|could(?! not)"
    r"|perhaps|e\.g\.|such as|usually|typically|sometimes))\b"
)
_LISTED = re.compile(r"\b(?i:potential|possible|likely|common)\b[^.:]{0,30}\b(?i:causes?|reasons?)\b")
"""The words that introduce a list of guesses."""
_GUESS = re.compile(rf"{_MAYBE.pattern}|\b(?i:or)\b")


@lru_cache(4096)
def _possible(form: str) -> tuple[tuple[tuple[str, ...], Signature], ...]:
    """Signatures that lines of this form can show: a form is a line without its digits, of which logs have few."""
    numbers = {at for word, places in _searched() if word in form for at in places}
    return tuple((table()[at].any, table()[at]) for at in sorted(numbers))


@cache
def _searched() -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Each word without digits → the places in the table of the signatures that have it."""
    found: dict[str, list[int]] = {}
    for at, each in enumerate(table()):
        for word in each.any:
            found.setdefault(word.translate(_NO_DIGITS), []).append(at)
    return tuple((word, tuple(places)) for word, places in found.items())


def _turn(signature: Signature) -> int:
    if signature.role is EventRole.CULPRIT:
        return -signature.weight if signature.weight >= 3 else 10 - signature.weight
    return {EventRole.VICTIM: 0, EventRole.SUMMARY: 11, EventRole.CONTEXT: 1, EventRole.NOTE: 1, EventRole.NOISE: -9}[
        signature.role
    ]


def _signature(topic: str, row: dict[str, Any]) -> Signature:
    pattern = row.get("pattern")
    advice = [row["advice"]] if isinstance(row["advice"], str) else row["advice"]
    given = {
        "role": EventRole(row["role"]),
        "any": tuple(row.get("any", ())),
        "errnos": tuple(row.get("errnos", ())),
        "pattern": None if pattern is None else re.compile(pattern, re.IGNORECASE),
        "advice": tuple(
            (re.compile(when, re.IGNORECASE | re.MULTILINE), sentence)
            for when, sentence in ((_ALWAYS, each) if isinstance(each, str) else each for each in advice if each)
        ),
    }
    return Signature(topic=topic, **{**row, **given})


_CODES = {
    signal.SIGKILL: "signal-9-likely-out-of-memory",
    signal.SIGSEGV: "segmentation-fault",
    signal.SIGBUS: "shared-memory-exhausted",
    signal.SIGILL: "illegal-instruction",
    signal.SIGABRT: "aborted",
    signal.SIGFPE: "aborted",
    signal.SIGTERM: "termination-requested",
    signal.SIGINT: "termination-requested",
    signal.SIGHUP: "termination-requested",
}


_OF_WINDOWS = {
    0xC0000005: signal.SIGSEGV,
    0xC000001D: signal.SIGILL,
    0xC0000374: signal.SIGABRT,
    0xC0000409: signal.SIGABRT,
}
"""Exit codes of Windows (NTSTATUS) → the signal that ends a process for the same reason elsewhere."""


def signal_of(exit_code: int | None) -> int | None:
    """The signal behind an exit code: ``-9``, ``137`` and ``9 + 128`` alike; None when there is none."""
    if exit_code is None:
        return None
    if (status := exit_code % (1 << 32)) in _OF_WINDOWS:
        return _OF_WINDOWS[status]
    number = -exit_code if exit_code < 0 else exit_code - 128
    return number if 0 < number < signal.NSIG else None


def code_of(exit_code: int | None) -> str | None:
    """The code of the signature behind an exit code that is a signal's."""
    number = signal_of(exit_code)
    return None if number is None else code_of_signal(number)


def code_of_signal(number: int) -> str:
    """The code of the signature of a process that a signal ended."""
    try:
        return _CODES.get(signal.Signals(number), "killed-by-signal")
    except ValueError:
        return "killed-by-signal"


def settle(signature: Signature, facts: dict[str, Any]) -> tuple[Signature, dict[str, Any]]:
    """Turns "ended by a signal" into what that signal means."""
    if signature.code == "data-loader-worker-killed":
        by_name = {
            "Bus": "shared-memory-exhausted",
            "Killed": "host-out-of-memory",
            "Segmentation": "segmentation-fault",
        }
        better = by_name.get(str(facts.get("signal", "")))
        return (by_code(better) if better else signature), {key: facts[key] for key in facts if key != "signal"}
    number = _number(signature, facts)
    if number is None:
        return signature, facts
    return by_code(code_of_signal(number)), {**facts, "signal": number}


def _number(signature: Signature, facts: dict[str, Any]) -> int | None:
    if isinstance(facts.get("signal"), int):
        return int(facts["signal"])
    if name := facts.get("signame"):
        return int(signal.Signals[name].value) if name in signal.Signals.__members__ else None
    if signature.code == "killed":
        return int(signal.SIGKILL)
    if (signature.role.value == "summary" or signature.code == "exit-137") and isinstance(facts.get("exit"), int):
        return signal_of(facts["exit"])
    return None
