"""What the shapes of public logs are told with: a traceback, prefixes, and one call for each log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtexts import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

TRACEBACK = """Traceback (most recent call last):
  File "/workspace/run.py", line 88, in <module>
    main()
  File "/workspace/run.py", line 61, in main
    trainer.fit(model)
  File "/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py", line 1501, in _call_impl
    return forward_call(*args, **kwargs)
"""
"""All but the last line of one; the user's innermost line is ``/workspace/run.py:61``."""


def prefixed(prefix: str, text: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def teller(scenarios: dict[str, Scenario]) -> Callable[..., None]:
    """Adds to scenarios: a name, files or the text of one, and what is true of it.

    ``at`` is the file, line and function of the user's code; ``found`` is true unless it is said.
    """

    def told(name: str, files: str | dict[str, str], **truth: Any) -> None:
        if at := truth.pop("at", None):
            truth["source"] = {"file": at[0], "line": at[1], "function": at[2]}
        found = truth.pop("found", True)
        scenarios[name] = Scenario({"out.log": files} if isinstance(files, str) else files, found, truth)

    return told
