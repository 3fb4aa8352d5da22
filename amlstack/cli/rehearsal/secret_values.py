"""The secrets that a rehearsed job names, from this machine's environment: by option, by `rehearsal.toml`, by name.

They go into the request alone, and from there into the processes of the job; no file of a rehearsal shows them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.cli.rehearsal.mapping_file import is_variable
from infra.runs.secrets import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jobs
    from amlstack.cli.rehearsal.mapping_file import MappingFile
    from jobs.values import Source

CODE = "rehearsal-secret"


def values(
    plans: Sequence[jobs.Planned], source: Source, options: Sequence[str], files: Sequence[MappingFile]
) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """The value of each secret that the jobs name, and what is missing.

    Asked are, in this order, ``--secret NAME=env:VARIABLE``, the table ``[secrets]`` of the files, and the variable
    that the job itself sets, where this process has one of that name.

    Args:
        plans: The jobs.
        source: Their file.
        options: As given.
        files: `rehearsal.toml` beside the job file, then the user's.
    """
    found: list[Finding] = []
    given: dict[str, str] = {}
    for table in reversed(files):
        given |= table.secrets
    for text in options:
        name, _, place = text.partition("=")
        if not is_variable(place):
            seen = f"`--secret {name}…` names no variable of this machine"
            found.append(Finding(CODE, "", seen, "The option never holds the secret itself", _how(name or "NAME")))
        else:
            given[name] = place
    result: dict[str, str] = {}
    for where, variable, name in dict.fromkeys(one for plan in plans for one in named(plan.job)):
        here = given.get(name, f"env:{variable}").removeprefix("env:")
        if value := os.environ.get(here):
            result[name] = value
        elif name not in result:
            finding = Finding(
                CODE,
                f"{where}environment_variables.{variable}",
                f"`{variable}` is to hold the secret `{name}`, and `{here}` is not set here",
                "A rehearsal takes secrets from this machine's environment",
                f"Set `{variable}` in the shell, or: {_how(name)}",
            )
            found.append(source.locate(finding))
    return result, tuple(found)


def _how(name: str) -> str:
    return (
        f'give `--secret {name}=env:VARIABLE`, or write `{name} = "env:VARIABLE"` under `[secrets]` in rehearsal.toml'
    )
