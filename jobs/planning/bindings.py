"""What ``${{…}}`` in a command binds, and whether it is there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.base.near_misses import did_you_mean, near

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jobs.model.job import Job

_BINDING = re.compile(r"\$\{\{\s*(?P<kind>[A-Za-z_]+)\.(?P<name>[\w.-]+?)\s*\}\}")
_OPTIONAL = re.compile(r"\$\[\[.*?\]\]|\[[\w.\s-]*\$\{\{inputs\.[\w.-]+\}\}\]", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
KINDS = ("inputs", "outputs", "search_space")


def check(job: Job) -> Iterator[Finding]:
    """Findings on names of inputs and outputs, and on bindings that bind nothing."""
    yield from _names("inputs", job.inputs)
    yield from _names("outputs", job.outputs)
    seen: set[tuple[str, str]] = set()
    unknown: dict[str, list[re.Match[str]]] = {}
    required = _OPTIONAL.sub("", job.command)
    for match in _BINDING.finditer(required):
        kind, name = match["kind"], match["name"]
        if (kind, name) in seen:
            continue
        seen.add((kind, name))
        if kind not in KINDS:
            if close := near(kind, KINDS, 1):
                yield Finding(
                    "binding-unknown",
                    "command",
                    f"`{match[0]}` binds nothing",
                    "A command binds `${{inputs.NAME}}` and `${{outputs.NAME}}`",
                    f"Did you mean `${{{{{close[0]}.{name}}}}}`?",
                )
            continue
        if kind == "search_space":
            continue  # a sweep fills it in
        known = job.inputs if kind == "inputs" else job.outputs
        if name in known or name.split(".")[0] in {*known, *map(_bindable, known)}:
            continue  # a name that cannot be bound has its finding already
        if not known:
            unknown.setdefault(kind, []).append(match)
        else:
            yield Finding(
                f"{kind[:-1]}-undefined",
                "command",
                f"The command binds `{match[0]}`, and the job has no {kind[:-1]} `{name}`",
                f"Every binding names one of the job's {kind}",
                did_you_mean(name, known, otherwise=f"Add `{name}` under `{kind}`."),
            )
    for kind, matches in unknown.items():
        shown = ", ".join(f"`{match[0]}`" for match in matches[:5]) + (", …" if len(matches) > 5 else "")
        names = ", ".join(f"`{match['name'].split('.')[0]}`" for match in matches)
        yield Finding(
            f"{kind[:-1]}-undefined",
            "command",
            f"The command binds {shown}, and the job has no {kind}",
            f"Every binding names one of the job's {kind}",
            f"Add {names} under `{kind}`.",
        )


def _names(kind: str, names: Iterable[str]) -> Iterator[Finding]:
    for name in names:
        if not _NAME.fullmatch(name):
            yield Finding(
                "binding-name",
                f"{kind}.{name}",
                f"`{name}` is not a name that can be bound",
                "Names of inputs and outputs are letters, digits and underscores, and begin with no digit",
                f"Write `{_bindable(name) or 'data'}`.",
            )


def _bindable(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name).lstrip("0123456789")
