"""Settings from the engine's configuration or from a stack file, with every finding that they give."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from amlstack.base.findings import Finding, errors, in_file_order
from amlstack.catalog import regions
from infra.settings import problems, secrets
from infra.settings.model import CuratedEnvironment, Settings
from infra.settings.repair import Mending
from infra.settings.stackfile import NAMESPACE, StackFile, read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from infra.settings.stackfile import Loc

_ROUNDS = 8
"""Each round mends what the last one found; a typo inside a typo's block needs one more."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of stack settings.

    Attributes:
        findings: All that is wrong, in the order of the file.
        partial: The settings with their faults mended, so that the rest can be judged in the same run; None when
            there was nothing to read.
        doubtful: What was made up in ``partial`` to mend it; nothing that depends on it should be judged.
        file: The stack file, when it was readable.
        secret: The texts that the configuration marks as secret, where they are known.
    """

    findings: tuple[Finding, ...]
    partial: Settings | None = None
    doubtful: frozenset[Loc] = frozenset()
    file: StackFile | None = None
    secret: frozenset[str] = frozenset()

    @property
    def settings(self) -> Settings | None:
        """The settings, when nothing is wrong with them."""
        return None if errors(self.findings) else self.partial

    def doubts(self, *loc: str | int) -> bool:
        """Whether a setting, something in it or something around it was made up."""
        return any(made[: len(loc)] == loc or loc[: len(made)] == made for made in self.doubtful)

    def locate(self, loc: Loc, finding: Finding) -> Finding:
        """The finding with the place of a setting in the stack file, when that is known."""
        return located(self.file, loc, finding)


def read_stack_file(path: Path) -> tuple[Settings | None, tuple[Finding, ...]]:
    """The settings of a stack, read from its file without the engine.

    Returns:
        The settings, or None when they are not usable; and all findings, each with its line.
    """
    reading = read_file(path)
    return reading.settings, reading.findings


def read_file(path: Path) -> Reading:
    """The same with what could be made of faulty settings."""
    file, found = read(path)
    if file is None:
        return Reading(found)
    values = {key: _as_engine(value) for key, value in file.values.items()}
    return parse(values, file, secrets.encrypted(file), readable=False)


def from_engine(config: Mapping[str, str], file: StackFile | None, secret_keys: Collection[str] = ()) -> Reading:
    """The settings as the engine hands them to the program: every value a string, structured ones JSON.

    Args:
        config: The whole configuration, ``namespace:key`` → value; other namespaces are left alone.
        file: The stack file, for the lines of findings; the engine's values count even where it differs.
        secret_keys: The keys of ``config`` that hold secrets.
    """
    values = {}
    for key, text in config.items():
        namespace, _, name = key.partition(":")
        if namespace == NAMESPACE:
            values[name] = _decoded(text)
    keys = [key.removeprefix(f"{NAMESPACE}:") for key in secret_keys if key.startswith(f"{NAMESPACE}:")]
    return parse(values, file, secrets.of_engine(values, keys, file))


def parse(
    values: Mapping[str, Any], file: StackFile | None = None, secret: Collection[Loc] = (), *, readable: bool = True
) -> Reading:
    """Validate settings, all of them: what is faulty is reported, mended and read on.

    Args:
        values: The settings.
        file: The stack file, for the lines of findings.
        secret: The places of what is marked as secret.
        readable: Whether the values of these are in clear text.
    """
    mending = Mending(dict(values))
    faults: list[tuple[Loc, Finding]] = []
    texts = secrets.texts(values, secret) if readable else frozenset()
    for loc in secret:
        if not secrets.can_be(loc):
            faults.append((loc, secrets.refusal(loc, problems.dotted(loc))))
            mending.leave_out(loc)
        elif not readable:
            mending.write(loc, secrets.REDACTED)
    partial = None
    for _ in range(_ROUNDS):
        try:
            partial = Settings.model_validate(mending.values)
            break
        except ValidationError as error:
            details = error.errors(include_url=False)
            for each in mending.news(details):
                loc = mending.written(each["loc"])
                faults.append((loc, replace(problems.describe(each), where=problems.dotted(loc))))
            mending.mend(details)
    if partial is not None:
        faults += [(mending.written(loc), finding) for loc, finding in _duplicates(partial, mending.doubtful)]
        faults += [(mending.written(loc), finding) for loc, finding in _regions(partial, mending.doubtful)]
    shown = (located(file, loc, secrets.hidden(finding, texts)) for loc, finding in faults)
    return Reading(in_file_order(shown), partial, frozenset(mending.doubtful), file, texts)


def located(file: StackFile | None, loc: Loc, finding: Finding) -> Finding:
    """The finding with the place of a setting in the stack file, when there is one."""
    if file is None:
        return finding
    return finding.at(file.name, *file.locate(loc))


def _decoded(text: str) -> Any:
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _as_engine(value: Any) -> Any:
    """A top-level scalar as the engine would hand it over: a string."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _regions(settings: Settings, doubtful: set[Loc]) -> Iterator[tuple[Loc, Finding]]:
    """Regions that do not exist."""
    written: list[tuple[Loc, str | None]] = [(("location",), settings.location)]
    written += [(("clusters", index, "location"), each.location) for index, each in enumerate(settings.clusters)]
    for loc, name in written:
        if name is not None and not doubtful.intersection({loc, loc[:2], loc[:1]}):
            finding = regions.finding(name, problems.dotted(loc))
            if finding is not None:
                yield loc, finding


def _duplicates(settings: Settings, doubtful: set[Loc]) -> list[tuple[Loc, Finding]]:
    # Azure compares the names of clusters and environments without letter case.
    named: dict[str, list[str]] = {
        "clusters": [cluster.name for cluster in settings.clusters],
        "environments": [
            environment.curated if isinstance(environment, CuratedEnvironment) else environment.name
            for environment in settings.environments
        ],
        "jobs": [job.file for job in settings.jobs],
    }
    found: list[tuple[Loc, Finding]] = []
    for key, names in named.items():
        seen: dict[str, int] = {}
        for index, name in enumerate(names):
            if any(loc[:2] == (key, index) for loc in doubtful):
                continue
            folded = name if key == "jobs" else name.lower()
            first = seen.setdefault(folded, index)
            if first != index:
                what = f"`{name}` is listed here and in {problems.dotted((key, first))}"
                rule = f"Each of the {key} is listed once"
                found.append(((key, index), Finding("setting-twice", problems.dotted((key, index)), what, rule)))
    return found
