"""The table of signatures: words in a log, what they mean, what to do. Data, in ``data/*.toml``."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from amlstack.diagnose.events import Role

SURE = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Signature:
    """One cause, or one sign of somebody else's.

    Attributes:
        code: Kebab-case name, stable.
        topic: The data file it stands in.
        role: What a line that shows it is.
        means: What happened, in one sentence without a subject's name.
        advice: What to do.
        source: Where that is written.
        any: Lower-case words, one of which a line must hold before the pattern is tried.
        pattern: What the line must match, case ignored; None when the words suffice.
        weight: 4 names the thing itself, 3 a definite cause, 2 an exception or a sign that may be harmless,
            1 a consequence that is a cause only when there is no better one. Victims have 0.
        sure: The best confidence that this sign allows.
        shared: A mistake of the whole job: when several ranks show it, none is to blame alone.
        nobody: Never any rank's fault.
        kind: ``signal``, ``stop`` or ``crash``; empty for all others.
    """

    code: str
    topic: str
    role: Role
    means: str
    advice: str
    source: str
    any: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    weight: int = 0
    sure: str = "high"
    shared: bool = False
    nobody: bool = False
    kind: str = ""


# A line is looked at only when it holds one of these; together they are in every word of the table (a test holds that).
STEMS = (
    *("error", "fail", "exception", "traceback", "errno", "killed", "kill", "signal", "sigterm", "sigbus", "sigsegv"),
    *("sigill", "sigabrt", "abort", "terminat", "cannot", "can't", "unable", "denied", "refused", "unreachable"),
    *("timeout", "timed out", "time limit", "jobtimeout", "closed", "closing", "reset", "broken pipe", "shut down"),
    *("peer", "not found", "unknown", "no such", "no space", "not exist", "out of memory", "oom", "memlock"),
    *("locked memory", "ibv_", "shm", "nccl warn", "nccl_", "net/ib", "using network", "libibverbs", "mlx5"),
    *("duplicate", "invalid", "illegal", "mismatch", "undefined", "no cuda", "no gpu", "no kernel", "fallen off"),
    *("gpu is lost", "ecc", "xid", "segmentation", "core dumped", "already in use", "already allocated", "expected"),
    *("resolve", "resolution", "preempt", "pre-empt", "evict", "node was lost", "unusable", "quota", "capacity"),
    *("deallocated", "was deleted", "cancel", "missing", "stalled", "slots", "as root", "lost communication", "hcol"),
    *("tf_config", "nan", "loss scale", "required", "unavailable", "not support", "not available", "compiled"),
    *("too many", "temporarily", "not authorized", "expired", "aadsts", "no matching", "could not", "wasn't able"),
    *("return code", "exit code", "status", "exited", "exitcode", "joined", "world size", "world_size", "rank:"),
    *("heartbeat", "down", "watchdog", "collective", "no openfabrics", "no module", "warning", "glibc"),
    *("receive grad", "no interface", "no socket"),
)


@cache
def table() -> tuple[Signature, ...]:
    """All signatures, in the order in which they are tried on a line.

    Definite causes come before victims: "CUDA out of memory … communicator was aborted" is a cause. Victims come
    before ordinary causes: "RuntimeError: Connection reset by peer" is no exception of the program's own.
    """
    found: list[Signature] = []
    for file in sorted(resources.files("amlstack.diagnose").joinpath("data").iterdir(), key=lambda each: each.name):
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
    for words, signature in _searched():
        if not any(word in lower for word in words):
            continue
        if signature.pattern is None:
            return signature, {}
        if found := signature.pattern.search(text):
            return signature, {name: value for name, value in found.groupdict().items() if value is not None}
    return None


@cache
def _searched() -> tuple[tuple[tuple[str, ...], Signature], ...]:
    return tuple((each.any, each) for each in table() if each.any)


def _turn(signature: Signature) -> int:
    if signature.role is Role.CULPRIT:
        return -signature.weight if signature.weight >= 3 else 10 - signature.weight
    return {Role.VICTIM: 0, Role.SUMMARY: 11, Role.CONTEXT: 1}[signature.role]


def _signature(topic: str, row: dict[str, Any]) -> Signature:
    pattern = row.get("pattern")
    return Signature(
        code=row["code"],
        topic=topic,
        role=Role(row["role"]),
        means=row["means"],
        advice=row["advice"],
        source=row["source"],
        any=tuple(row.get("any", ())),
        pattern=None if pattern is None else re.compile(pattern, re.IGNORECASE),
        weight=row.get("weight", 0),
        sure=row.get("sure", "high"),
        shared=row.get("shared", False),
        nobody=row.get("nobody", False),
        kind=row.get("kind", ""),
    )
