"""A plan that somebody has looked at: in what another one of the same stack differs from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.cli.progress import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


class NoPlanError(Exception):
    """The file has no plan; the message is for the user."""


@dataclass(frozen=True, slots=True)
class AgreedPlan:
    """The plan of an earlier preview.

    Attributes:
        file: Where it was read.
        steps: URN → the step as ``--json`` printed it.
    """

    file: Path
    steps: Mapping[str, Mapping[str, Any]]

    def differences(self, plan: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """A line for each step that this plan and another one do not have in common; none where they are the same.

        Args:
            plan: The other plan's steps, as ``--json`` prints them.
        """
        now = {str(step["urn"]): step for step in plan}
        for urn, step in now.items():
            agreed = self.steps.get(urn)
            if agreed is None:
                yield f"{_does(step)}: that plan leaves it alone"
            elif agreed["operation"] != step["operation"]:
                yield f"{_does(step)}: in that plan it is {agreed['operation']}"
            elif sorted(agreed["properties"]) != sorted(step["properties"]):
                yield f"{_does(step)}: in that plan ({', '.join(agreed['properties'])}) differ"
            elif agreed["inputs"] != step["inputs"]:
                yield f"{_does(step)}: with other values than in that plan"
        for urn in self.steps.keys() - now.keys():
            yield f"not {_does(self.steps[urn])}: in that plan it is"


def read(file: Path) -> AgreedPlan:
    """Read the plan that ``amlstack up --preview --json`` has printed.

    Raises:
        NoPlanError: The file cannot be read, or has no plan.
    """
    try:
        content = json.loads(file.read_text("utf-8"))
        steps = {
            str(step["urn"]): {
                "operation": str(step["operation"]),
                "properties": [str(name) for name in step["properties"]],
                "inputs": str(step["inputs"]),
                "urn": str(step["urn"]),
            }
            for step in content["plan"]
        }
    except OSError as error:
        message = f"{file} cannot be read: {error.strerror}"
        raise NoPlanError(message) from None
    except (ValueError, KeyError, TypeError):
        message = f"{file} has no plan: it must be what `amlstack up --stack NAME --preview --json` prints"
        raise NoPlanError(message) from None
    return AgreedPlan(file, steps)


def _does(step: Mapping[str, Any]) -> str:
    changes = f" ({', '.join(step['properties'])})" if step["properties"] else ""
    return f"{step['operation']}: {name_of(str(step['urn']))}{changes}"
