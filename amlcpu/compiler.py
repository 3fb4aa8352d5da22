"""torch's compiler is imported when a rank compiles something, and not by its first optimizer step.

An optimizer, a model of DistributedDataParallel and a process group each ask `torch._dynamo` something that has one
answer while nothing was compiled, and importing it takes a rank a third of its start. Those questions are answered
here. Whatever else is asked of the module executes it first, in place, so that all others find what they expect.
Another module is put off in the same way, with nothing that is answered before.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable
from typing import Any

_OF_IMPORTS = frozenset(
    {"__class__", "__dict__", "__doc__", "__file__", "__loader__", "__name__", "__package__", "__spec__"}
)
PATIENCE = 20
"""Seconds that a thread waits for another one's execution, which takes two."""
_PENDING = "__amlcpu__"
_get = types.ModuleType.__getattribute__


class Deferred(types.ModuleType):
    """A module before its execution."""

    def __getattribute__(self, name: str) -> Any:
        """An answer that needs no execution, or the attribute of the executed module."""
        if name in _OF_IMPORTS:
            return _get(self, name)
        pending = _get(self, "__dict__").get(_PENDING)
        if pending is not None and pending.enter(name):
            try:
                if pending.waits():
                    if name in pending.answers:
                        return pending.answers[name]
                    pending.execute()
            finally:
                pending.lock.release()
        return _get(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets it in the executed module; the import system sets attributes of its own before."""
        if name not in _OF_IMPORTS:
            _executed(self)
        super().__setattr__(name, value)


class _Pending:
    """The execution that is still to come, and the answers until then."""

    def __init__(self, module: types.ModuleType, executed: Callable[[types.ModuleType], None]) -> None:
        self.lock = threading.RLock()
        self._module = module
        self._run = executed
        self._runs = False
        self._below: set[int] = set()
        self.answers: dict[str, Any] = {}
        if module.__name__ == "torch._dynamo":
            self.answers = {
                "graph_break": lambda *_args, **_kwargs: None,
                "disable": self._disable,
                "utils": _Part(module, "utils", get_optimize_ddp_mode=lambda: "ddp_optimizer"),
                "trace_rules": _Part(module, "trace_rules", clear_lru_cache=lambda: None),
            }

    def enter(self, name: str) -> bool:
        """Takes the lock; not in a thread that imports a module below while another executes this one.

        The two would wait for each other: the other one comes to import that module, too.
        """
        own = threading.get_ident()
        if own not in self._below and (
            self.lock.acquire(blocking=False) or (name != "__path__" and self.lock.acquire(timeout=PATIENCE))
        ):
            return True
        self._below.add(own)
        return False

    def waits(self) -> bool:
        """True until the execution begins; asked with the lock."""
        return not self._runs and _PENDING in self._module.__dict__

    def execute(self) -> None:
        """Executes the module; where that fails, whoever asks next tries again."""
        self._runs = True
        try:
            self._run(self._module)
            self._module.__class__ = types.ModuleType
            del self._module.__dict__[_PENDING]
        finally:
            self._runs = False

    def _disable(self, fn: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(fn, types.FunctionType):
            return _executed(self._module).disable(fn, *args, **kwargs)
        real: list[Any] = []

        @functools.wraps(fn)
        def called(*given: Any, **named: Any) -> Any:
            if _PENDING in self._module.__dict__:
                return fn(*given, **named)
            if not real:
                real.append(self._module.disable(fn, *args, **kwargs))
            return real[0](*given, **named)

        return called


class _Part:
    """A module below it, of which one function is answered."""

    def __init__(self, module: types.ModuleType, name: str, **answers: Callable[[], Any]) -> None:
        self.__dict__.update(answers)
        self._of = module
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Executes the module."""
        return getattr(getattr(_executed(self._of), self._name), name)


def _executed(module: Any) -> Any:
    """The module after its execution, which a question for its path brings about."""
    return module.__path__ and module


def defer(executed: Callable[[types.ModuleType], None], module: types.ModuleType) -> None:
    """Puts off a module's execution.

    Args:
        executed: Executes the module.
        module: It, with what its import has set.
    """
    module.__dict__[_PENDING] = _Pending(module, executed)
    module.__class__ = Deferred
