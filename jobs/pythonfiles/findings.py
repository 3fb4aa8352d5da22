"""Findings on attempts of a Python job file while it was read, and on objects in it that are no job of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding, Level
from jobs.pythonfiles.refusals import CREDENTIALS, NETWORK, PROCESS

if TYPE_CHECKING:
    from jobs.pythonfiles.guard import Guarded

_GRAVEST = (NETWORK, CREDENTIALS, PROCESS)
_BEHIND_MAIN = (
    'Move it behind `if __name__ == "__main__":`, which is not run when the file is read; `python FILE` runs it still.'
)
_BY_NAME = 'A job gets a secret by its name: `environment_variables={"NAME": {"secret": "name"}}`.'
_AS_YAML = (
    'Objects of azure.ai.ml are not read. Write one as YAML, `job.dump("job.yml")`, or `job._to_job().dump("job.yml")` '
    "of what `command(…)` made, and name that file instead."
)


def of(guard: Guarded, module: dict[str, Any], content: bytes, *, failed: bool) -> tuple[Finding, ...]:
    """A finding for each line of a file that tried something, in their order.

    Args:
        guard: After the file has run.
        module: What it has left.
        content: What it holds.
        failed: Whether it was left before its end. Where it was not, it went on without a process: a warning.
    """
    azure = _azure_ai_ml(module)
    yaml = f" {_as_yaml(*azure)}" if azure is not None else f" {_AS_YAML}" if b"azure.ai.ml" in content else ""
    found = [_ends(call, line, guard.file) for call, line in guard.ends]
    by_line: dict[int | None, list[tuple[str, str]]] = {}  # one call of a library may try several things
    for code, what, line in guard.tried:
        by_line.setdefault(line, []).append((code, what))
    for line, tried in by_line.items():
        code = min((code for code, _ in tried), key=_GRAVEST.index)
        found.append(
            Finding(
                code,
                "",
                f"While it was read, the file tried to {' and to '.join(dict.fromkeys(what for _, what in tried))}",
                "A job file is read by every check, dry run and preview, without network, credentials and processes",
                f"{_BEHIND_MAIN}{f' {_BY_NAME}' if code == CREDENTIALS else ''}{yaml}",
                level=Level.ERROR if failed or code != PROCESS else Level.WARNING,
                file=guard.file,
                line=line,
            )
        )
    return tuple(sorted(dict.fromkeys(found), key=lambda finding: finding.line or 0))


def of_azure_ai_ml(module: dict[str, Any], file: str) -> Finding | None:
    """That a file declares its job by azure.ai.ml; None where it does not."""
    if (found := _azure_ai_ml(module)) is None:
        return None
    name, value = found
    return Finding(
        "job-missing",
        "",
        f"`{name}` is a {type(value).__name__} of azure.ai.ml",
        "A Python job file has a module-level `job` or `jobs` of the package `jobs`; of azure.ai.ml the YAML is read",
        _as_yaml(name, value),
        file=file,
    )


def _azure_ai_ml(module: dict[str, Any]) -> tuple[str, Any] | None:
    """The job of azure.ai.ml that a file declares: `job`, else the last one."""
    found = [
        (name, value) for name, value in module.items() if type(value).__module__.startswith("azure.ai.ml.entities")
    ]
    jobs = [each for each in found if each[0] == "job"]
    jobs += reversed(
        [each for each in found if hasattr(type(each[1]), "_to_job") or "._job" in type(each[1]).__module__]
    )
    return next(iter(jobs), None)


def _as_yaml(name: str, value: Any) -> str:
    # What `command(…)` makes is a step to azure.ai.ml, and written as one until it is made a job.
    whole = f"{name}._to_job()" if hasattr(type(value), "_to_job") else name
    return (
        f'`{name}` of azure.ai.ml is not read. Write it as YAML, `{whole}.dump("job.yml")`, and name that file instead.'
    )


def _ends(call: str, line: int | None, file: str) -> Finding:
    return Finding(
        "python-ends-process",
        "",
        f"Running the file called `{call}`, which ends the process that reads it",
        "A Python job file runs to its end and leaves `job` behind",
        "Keep what runs on the nodes in a file of its own, and let the job's command start that.",
        file=file,
        line=line,
    )
