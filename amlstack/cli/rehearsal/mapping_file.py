"""`rehearsal.toml`: what a rehearsal takes from this machine in place of data, environments and secrets.

One may lie beside the job file, another one, for all jobs of a user, in the user's configuration folder. Its table
`[inputs]` maps an input's path, as the job declares it, to a path that is relative to the file, `[outputs]` an
output's; a table `[stand_in."ENVIRONMENT"]` says what an environment holds; `[secrets]` says where a secret is. The
secrets themselves go into the request alone, and from there into the processes of the job; no file of a rehearsal shows
them.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from amlstack.base.files import read_regular
from amlstack.base.findings import Finding, stated
from amlstack.base.models import Codes, Explainer, Loc, matching
from amlstack.base.paths import is_file
from infra.runs.order import named_secrets

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    import jobs
    from amlstack.images.environments import OwnStandIn
    from jobs.values import Source

NAME = "rehearsal.toml"
_CODE = "rehearsal-file"
_PLACE = re.compile(r"\s*\(at line (?P<line>\d+), column (?P<column>\d+)\)$")
_VARIABLE = r"^env:[A-Za-z_][A-Za-z0-9_]*\Z"

Text = Annotated[str, Field(min_length=1)]
Variable = Annotated[
    str, matching(_VARIABLE, "It is `env:VARIABLE`, a variable of this machine; the file never holds the secret itself")
]
Python = Annotated[str, matching(r"^(3\.\d+(\.\d+)?|[<>=!~].*)\Z", 'It is a version of Python, for example "3.10"')]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, regex_engine="python-re")


class StandInTable(_Model):
    """The contents of an environment, as its user knows it."""

    requirements: tuple[Text, ...] = ()
    requirements_file: Text | None = None
    python: Python = ""
    like: Text | None = None

    @field_validator("requirements_file")
    @classmethod
    def _is_there(cls, value: str | None, info: ValidationInfo) -> str | None:
        folder: Path = (info.context or {})["folder"]
        if value is not None and not is_file(found := folder / value):
            raise ValueError(f"`{value}` does not exist: {found}|It lies beside the file|Correct the path.")
        return value

    @field_validator("like")
    @classmethod
    def _is_known(cls, value: str | None) -> str | None:
        from amlstack.images.standins import find

        if value is not None and find(value) is None:
            raise ValueError(
                f"`{value}` has no stand-in|It names a curated environment or an image that has one|"
                'Write `like = "acpt-pytorch-2.8-cuda12.6"`.'
            )
        return value

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set & {"requirements", "requirements_file", "like"}:
            raise ValueError(
                "The stand-in does not say what the environment holds|A stand-in has `requirements`, a "
                '`requirements_file`, or is `like` another one|Write `requirements = ["torch==2.8.0"]`.'
            )
        return self


class Tables(_Model):
    """The whole file."""

    inputs: dict[str, Text] = {}
    outputs: dict[str, Text] = {}
    stand_in: dict[str, StandInTable] = {}
    secrets: dict[str, Variable] = {}


_EXPLAINER = Explainer(Tables, Codes(_CODE, _CODE, _CODE, _CODE))


@dataclass(frozen=True, slots=True)
class MappingFile:
    """The content of one file, or of both.

    Attributes:
        inputs: From an input's path, as it is declared, to where its data are on this machine, and ``FILE:LINE``.
        outputs: The same of outputs.
        stand_ins: What an environment holds, by its reference or image.
        secrets: Where a secret is on this machine, ``env:VARIABLE``, by its name.
        findings: What is wrong with the files.
    """

    inputs: Mapping[str, tuple[Path, str]] = field(default_factory=dict)
    outputs: Mapping[str, tuple[Path, str]] = field(default_factory=dict)
    stand_ins: Mapping[str, OwnStandIn] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def read_all(job: Path) -> MappingFile:
    """The content of the file beside a job file, then of the user's own, which ``XDG_CONFIG_HOME`` moves."""
    of_user = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "amlstack" / NAME
    found = MappingFile()
    for file in dict.fromkeys((of_user.absolute(), job.absolute().parent / NAME)):
        if is_file(file):
            found = read(file, found)
    return found


def read(file: Path, other: MappingFile = MappingFile()) -> MappingFile:
    """Reads one file; what is wrong with it is a finding, and the rest of it counts, before what another one says."""
    try:
        text = read_regular(file).decode("utf-8-sig")
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        wrong = stated("rehearsal-file", "", error=error).changed(file=str(file))
        return replace(other, findings=(wrong, *other.findings))
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line, column = (int(place["line"]), int(place["column"])) if place else (len(text.splitlines()), None)
        seen = f"This is not TOML: {_PLACE.sub('', str(error))}"
        example = '`"azureml:NAME@latest" = "data/folder"`'
        remedy = f"Write `[inputs]` and below it lines such as {example}, both sides in quotes."
        wrong = Finding(_CODE, "", seen, "", remedy, file=str(file), line=line, column=column)
        return replace(other, findings=(wrong, *other.findings))
    lines = text.splitlines()
    tables, findings = _tables(data, file, lines)
    from amlstack.images.environments import OwnStandIn

    folder = file.parent
    inputs, outputs = (
        {
            key: ((folder / Path(value).expanduser()).absolute(), f"{file}:{_line(lines, (side, key))}")
            for key, value in table.items()
        }
        for side, table in (("inputs", tables.inputs), ("outputs", tables.outputs))
    )
    stand_ins = {
        name: OwnStandIn(
            each.requirements,
            each.python,
            None if each.requirements_file is None else (folder / each.requirements_file).absolute(),
            each.like or "",
            folder.absolute(),
            f"{file}:{_line(lines, ('stand_in', name))}",
        )
        for name, each in tables.stand_in.items()
    }
    return MappingFile(
        {**other.inputs, **inputs},
        {**other.outputs, **outputs},
        {**other.stand_ins, **stand_ins},
        {**other.secrets, **tables.secrets},
        (*findings, *other.findings),
    )


def _tables(data: dict[str, Any], file: Path, lines: Sequence[str]) -> tuple[Tables, tuple[Finding, ...]]:
    """The tables without the entries that are wrong, and what is wrong with these."""
    context = {"folder": file.parent}
    try:
        return Tables.model_validate(data, context=context), ()
    except ValidationError as error:
        details = error.errors(include_url=False)
    findings = tuple(_finding(each, file, lines) for each in details)
    for table, *inside in (_EXPLAINER.written(each["loc"]) for each in details):
        if inside:
            data[str(table)].pop(inside[0], None)
        else:
            data.pop(str(table), None)
    return Tables.model_validate(data, context=context), findings


def _finding(error: ErrorDetails, file: Path, lines: Sequence[str]) -> Finding:
    loc = _EXPLAINER.written(error["loc"])
    if loc[0] == "secrets":
        error = {**error, "input": "…"}  # it may be the secret itself
    return _EXPLAINER.finding(error).at(str(file), _line(lines, loc))


def _line(lines: Sequence[str], loc: Loc) -> int:
    """The 1-based line that first has the last key of a path, or the last key that is found.

    A reader of TOML keeps no lines. A key is at the beginning of a line, in quotes or a table's brackets.
    """
    found = 1
    for key in loc:
        start = re.compile(rf"""\s*\[*\s*(?:stand_in\s*\.\s*)?["']?{re.escape(str(key))}["']?\s*[\].=]""")
        found = next((number for number, line in enumerate(lines[found - 1 :], found) if start.match(line)), found)
    return found


def line_for(path: str) -> str:
    """The line that maps an input's path."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}" = "PATH"'


MISSING = "rehearsal-secret"


def secret_values(
    plans: Sequence[jobs.Planned], source: Source, options: Sequence[str], tables: Mapping[str, str]
) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """The value of each secret that the jobs name, and what is missing.

    Asked are, in this order, ``--secret NAME=env:VARIABLE``, the table ``[secrets]`` of the files, and the variable
    that the job itself sets, where this process has one of that name.

    Args:
        plans: The jobs.
        source: Their file.
        options: As given.
        tables: The tables ``[secrets]``.
    """
    found: list[Finding] = []
    given = dict(tables)
    for text in options:
        name, _, place = text.partition("=")
        if not re.match(_VARIABLE, place):
            seen = f"`--secret {name}…` names no variable of this machine"
            found.append(Finding(MISSING, "", seen, "The option never holds the secret itself", _how(name or "NAME")))
        else:
            given[name] = place
    result: dict[str, str] = {}
    for where, variable, name in dict.fromkeys(one for plan in plans for one in named_secrets(plan.job)):
        here = given.get(name, f"env:{variable}").removeprefix("env:")
        if value := os.environ.get(here):
            result[name] = value
        elif name not in result:
            unset = f"`{variable}` is to hold the secret `{name}`, and `{here}` is not set here"
            rule = "A rehearsal takes secrets from this machine's environment"
            place, remedy = (
                f"{where}environment_variables.{variable}",
                f"Set `{variable}` in the shell, or: {_how(name)}",
            )
            found.append(source.locate(Finding(MISSING, place, unset, rule, remedy)))
    return result, tuple(found)


def _how(name: str) -> str:
    return (
        f'give `--secret {name}=env:VARIABLE`, or write `{name} = "env:VARIABLE"` under `[secrets]` in rehearsal.toml'
    )
