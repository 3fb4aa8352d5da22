"""`rehearsal.toml`: what a rehearsal takes from this machine in place of data and environments that lie elsewhere.

One may lie beside the job file, another one, for all jobs of a user, in the user's configuration folder. Its table
`[inputs]` maps an input's path, as the job declares it, to a path that is relative to the file; a table
`[stand_in."ENVIRONMENT"]` says what an environment holds.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base.files import read_regular
from amlstack.base.findings import Finding
from amlstack.base.near_misses import did_you_mean
from amlstack.base.paths import is_file
from amlstack.cli.rehearsal.mapping import stand_in_tables
from amlstack.cli.rehearsal.mapping.environment_places import is_place
from amlstack.cli.rehearsal.mapping.toml_lines import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.images.own import OwnStandIn

NAME = "rehearsal.toml"
INPUTS = "inputs"
STAND_IN = "stand_in"
SECRETS = "secrets"
TABLES = (INPUTS, STAND_IN, SECRETS)
"""What the file may hold."""
EXAMPLE = '"azureml:NAME@latest" = "data/folder"'
_CODE = stand_in_tables.CODE
_PLACE = re.compile(r"\s*\(at line (?P<line>\d+), column (?P<column>\d+)\)$")


@dataclass(frozen=True, slots=True)
class MappingFile:
    """One file.

    Attributes:
        file: Where it lies.
        inputs: From an input's path, as it is declared, to where its data are on this machine.
        findings: What is wrong with the file.
        lines: Line of each key of `inputs`, 1-based, as far as it was found.
        stand_ins: What an environment holds, by its reference or image.
        secrets: Where a secret is on this machine, ``env:VARIABLE``, by its name.
    """

    file: Path
    inputs: Mapping[str, Path] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    stand_ins: Mapping[str, OwnStandIn] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)


def of_user() -> Path:
    """The user's own file; ``XDG_CONFIG_HOME`` moves it as usual."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "amlstack" / NAME


def read_all(job: Path) -> tuple[MappingFile, ...]:
    """The files that a rehearsal of a job file reads, the first one to be asked first: beside the job, the user's."""
    files = dict.fromkeys((job.absolute().parent / NAME, of_user().absolute()))
    return tuple(read(file) for file in files if is_file(file))


def read(file: Path) -> MappingFile:
    """Reads one file; what is wrong with it is a finding, and the rest of it counts."""
    try:
        text = read_regular(file).decode("utf-8-sig")
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        seen = f"The file cannot be read: {error}"
        rule, remedy = "It is a TOML file in UTF-8", "Correct or remove it."
        return MappingFile(file, findings=(Finding(_CODE, "", seen, rule, remedy, file=str(file)),))
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line, column = (int(place["line"]), int(place["column"])) if place else (len(text.splitlines()), None)
        seen = f"This is not TOML: {_PLACE.sub('', str(error))}"
        remedy = f"Write `[inputs]` and below it lines such as `{EXAMPLE}`, both sides in quotes."
        wrong = Finding(_CODE, "", seen, "", remedy, file=str(file), line=line, column=column)
        return MappingFile(file, findings=(wrong,))
    lines = text.splitlines()
    found = [
        Finding(
            _CODE,
            name,
            f"`{name}` is no table of {NAME}",
            "",
            did_you_mean(name, TABLES),
            file=str(file),
            line=line_of(lines, name),
        )
        for name in data
        if name not in TABLES
    ]
    table = data.get(INPUTS, {})
    if not isinstance(table, dict):
        seen, remedy = f"`{INPUTS}` must be a table, got `{table}`", f"Write `[inputs]` and below it `{EXAMPLE}`."
        found.append(Finding(_CODE, INPUTS, seen, "", remedy, file=str(file), line=line_of(lines, INPUTS)))
        table = {}
    places = {key: line_of(lines, key) for key in table}
    found += _wrong_values(file, table, places)
    inputs = {key: file.parent / Path(value).expanduser() for key, value in table.items() if _is_path(value)}
    own, wrong_stand_ins = stand_in_tables.read(file, data.get(STAND_IN, {}), lines)
    secrets, wrong_secrets = _secrets(file, data.get(SECRETS, {}), lines)
    known = {key: line for key, line in places.items() if line is not None}
    return MappingFile(file, inputs, (*found, *wrong_stand_ins, *wrong_secrets), known, own, secrets)


def _secrets(file: Path, table: object, lines: list[str]) -> tuple[dict[str, str], list[Finding]]:
    """The table of secrets; what is written there is not quoted, as it may be the secret itself."""
    remedy = 'Write `NAME = "env:VARIABLE"`'
    if not isinstance(table, dict):
        wrong = Finding(_CODE, SECRETS, f"`{SECRETS}` must be a table", "", remedy, file=str(file))
        return {}, [wrong]
    good = {name: str(value) for name, value in table.items() if is_place(value)}
    rule = "The file never holds the secret itself"
    found = [
        Finding(
            _CODE,
            f"{SECRETS}.{name}",
            f"`{name}` names no variable of this machine",
            rule,
            remedy,
            file=str(file),
            line=line_of(lines, name),
        )
        for name in table
        if name not in good
    ]
    return good, found


def _wrong_values(file: Path, table: Mapping[str, object], places: Mapping[str, int | None]) -> Iterator[Finding]:
    for key, value in table.items():
        if not _is_path(value):
            seen = f"`{key}` must be a path in quotes, got `{value}`"
            rule, remedy = "An input is mapped to a file or folder of this machine", f"Write `{line_for(key)}`."
            yield Finding(_CODE, f"{INPUTS}.{key}", seen, rule, remedy, file=str(file), line=places[key])


def _is_path(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def line_for(path: str) -> str:
    """The line that maps an input's path."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}" = "PATH"'
