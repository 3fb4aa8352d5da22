"""The Pulumi engine as this project runs it on the sandbox stack."""

from amlstack.engine.errors import EngineError, EngineInterruptedError
from amlstack.engine.outcome import Outcome
from amlstack.engine.running import clear_stale_lock, end_leftovers, run
from amlstack.engine.surroundings import (
    PASSPHRASE,
    QUICK,
    SALT,
    STACK,
    Engine,
    environ,
    find,
    keep_no_logs,
    select,
    users_own,
    variables,
)

__all__ = [
    "PASSPHRASE",
    "QUICK",
    "SALT",
    "STACK",
    "Engine",
    "EngineError",
    "EngineInterruptedError",
    "Outcome",
    "clear_stale_lock",
    "end_leftovers",
    "environ",
    "find",
    "keep_no_logs",
    "run",
    "select",
    "users_own",
    "variables",
]
