"""``${{inputs.x}}``, ``${{outputs.x}}`` and optional ``$[[ … ]]`` groups in a command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base import near_misses
from amlstack.sandbox.runner.contract.spec import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\{\{\s*(?P<side>[\w-]+)\.(?P<name>[\w-]+)(?:\.path)?\s*\}\}")
_GROUP = re.compile(r"\$\[\[(?P<inside>.*?)\]\]", re.DOTALL)
_ANY = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)


def resolve(command: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    """The command as the shell gets it: values and paths put in as they are, unquoted, as the service does.

    Args:
        command: With references; an optional group stays only if everything it refers to is given.
        inputs: Literal values, and paths on the node.
        outputs: Paths on the node.

    Raises:
        RefusedError: A reference names nothing.
    """
    known = {"inputs": inputs, "outputs": outputs}

    def group(found: re.Match[str]) -> str:
        inside = found["inside"]
        given = (ref["name"] in known.get(ref["side"], {}) for ref in _REFERENCE.finditer(inside))
        return inside if all(given) else ""

    def value(found: re.Match[str]) -> str:
        side, name = found["side"], found["name"]
        if side not in known or name not in known[side]:
            raise RefusedError(_missing(found[0], side, name, known))
        return known[side][name]

    resolved = _REFERENCE.sub(value, _GROUP.sub(group, command))
    # Literals may hold anything, so what is left is looked for in the command alone.
    if odd := next((text for text in _ANY.findall(command) if not _REFERENCE.fullmatch(text)), None):
        message = f"The command refers to {odd}, which is neither ${{{{inputs.NAME}}}} nor ${{{{outputs.NAME}}}}."
        raise RefusedError(message)
    return resolved


def _missing(text: str, side: str, name: str, known: Mapping[str, Mapping[str, str]]) -> str:
    if side not in known:
        return f"The command refers to {text}; a job has only inputs and outputs."
    have = ", ".join(sorted(known[side])) or "none"
    return f"The command refers to {text}, but the job's {side} are: {have}.{near_misses.hint(name, known[side])}"
