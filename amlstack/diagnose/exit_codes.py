"""Meanings of exit codes and signals."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from amlstack.diagnose.signatures import by_code

if TYPE_CHECKING:
    from amlstack.diagnose.signatures import Signature

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


def signal_of(exit_code: int | None) -> int | None:
    """The signal behind an exit code: ``-9``, ``137`` and ``9 + 128`` alike; None when there is none."""
    if exit_code is None:
        return None
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
