"""Whether an update would change nothing: neither a resource nor what the state records of one.

A preview also calls a resource `same` whose dependencies, parent, protection or outputs are others than recorded. The
update writes these (the rules are `mustWrite` of the engine's `backend/snapshot.go`), so it may be left out only where
they are as recorded. What is not found in the form that is known here counts as a change.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.cli.stack.state import State
    from amlstack.engine import Outcome

_UNFINISHED = ("delete", "pendingReplacement", "initErrors")
"""What the state records of a resource that an update has not brought to its end."""


def by(preview: Outcome, plan: Path, state: State) -> bool:
    """Whether an update after a preview would leave everything as it is.

    Args:
        preview: What the preview did.
        plan: The file that it wrote for `--save-plan`.
        state: What was recorded before it.
    """
    if preview.code or preview.redescribed or state.pending or set(preview.ops.values()) - {"same"}:
        return False
    try:
        planned = json.loads(plan.read_text("utf-8"))["resourcePlans"]
        # A copy that is pending deletion has its resource's URN.
        return sorted(planned) == sorted(one["urn"] for one in state.resources) and all(
            _stays(planned[one["urn"]], one) for one in state.resources
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _stays(planned: Mapping[str, Any], recorded: Mapping[str, Any]) -> bool:
    goal = planned["goal"]
    return (
        planned["steps"] == ["same"]
        and not goal["inputDiff"]
        and not goal["outputDiff"]
        and not any(recorded.get(mark) for mark in _UNFINISHED)
        and _order(goal) == _order(recorded)
    )


def _order(described: Mapping[str, Any]) -> tuple[object, ...]:
    """What a resource depends on, and how long its operations may take: no event of the engine has these."""
    properties = described.get("propertyDependencies") or {}
    return (
        sorted(described.get("dependencies") or ()),
        {name: sorted(urns or ()) for name, urns in properties.items()},
        described.get("customTimeouts") or {},
    )
