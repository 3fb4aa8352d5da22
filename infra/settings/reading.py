"""Settings from the engine's configuration or from a stack file, with every finding that they give."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from amlstack.base.findings import Finding, errors, in_file_order
from amlstack.base.paths import PROJECT
from amlstack.base.yamltext import unfilled
from amlstack.catalog import regions
from infra.settings import checks, repair, secrets
from infra.settings.includes import Origins, complete_clusters, included
from infra.settings.model.jobs import CuratedEnvironment
from infra.settings.model.stack import Settings
from infra.settings.repair import Mending
from infra.settings.stackfile import NAMESPACE, StackFile, read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pydantic_core import ErrorDetails

    from infra.settings.stackfile import Loc

_STACK = re.compile(r"Pulumi\.(.+)\.ya?ml")

_ROUNDS = 8
"""Each round mends what the last one found; a typo inside a typo's block needs one more."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading stack settings.

    Attributes:
        findings: All that is wrong, in the order of the file.
        partial: The settings with their faults mended, so that the rest can be judged in the same run; None when
            there was nothing to read.
        doubtful: What was made up in ``partial`` to mend it; nothing that depends on it should be judged.
        file: The stack file, when it was readable.
        secret: The texts that the configuration marks as secret, where they are known.
        origins: Where each setting was written, in the stack file or in a file that it includes.
    """

    findings: tuple[Finding, ...]
    partial: Settings | None = None
    doubtful: frozenset[Loc] = frozenset()
    file: StackFile | None = None
    secret: frozenset[str] = frozenset()
    origins: Origins = field(default_factory=Origins)

    @property
    def settings(self) -> Settings | None:
        """The settings, when nothing is wrong with them."""
        return None if errors(self.findings) else self.partial

    @property
    def stack(self) -> str:
        """The stack's name, as its file has it; empty where there is none."""
        found = _STACK.fullmatch(Path(self.file.name).name) if self.file else None
        return found[1] if found else ""

    def doubts(self, *loc: str | int) -> bool:
        """True where a setting, something in it or something around it was made up."""
        return any(made[: len(loc)] == loc or loc[: len(made)] == made for made in self.doubtful)

    def locate(self, loc: Loc, finding: Finding) -> Finding:
        """The finding with the place of a setting in its file, when that is known."""
        return self.origins.located(loc, finding)

    def about(self, loc: Loc, finding: Finding) -> Finding:
        """The finding under the name of a setting, with its place when that is known."""
        return self.locate(loc, replace(finding, where=repair.dotted(loc)))


def read_file(path: Path) -> Reading:
    """The settings of a stack, read from its file without the engine, with what could be made of faulty ones."""
    file, found = read(path)
    if file is None:
        return Reading(found)
    values = {key: _as_engine(value) for key, value in file.values.items()}
    reading = parse(values, file, secrets.encrypted(file.values), readable=False, root=path.parent)
    return replace(reading, findings=(*checks.check_size(file), *reading.findings))


def from_engine(
    config: Mapping[str, str],
    file: StackFile | None,
    secret_keys: Collection[str] = (),
    *,
    root: Path = PROJECT,
) -> Reading:
    """The settings as the engine hands them to the program: every value a string, structured ones JSON.

    Args:
        config: The whole configuration, ``namespace:key`` → value; other namespaces are left alone.
        file: The stack file, for the lines of findings; the engine's values count even where it differs.
        secret_keys: The keys of ``config`` that hold secrets.
        root: The project's folder, in which included files lie.
    """
    values = {}
    for key, text in config.items():
        namespace, _, name = key.partition(":")
        if namespace == NAMESPACE:
            values[name] = _decoded(text)
    keys = [key.removeprefix(f"{NAMESPACE}:") for key in secret_keys if key.startswith(f"{NAMESPACE}:")]
    return parse(values, file, secrets.of_engine(values, keys, file), root=root)


def parse(
    values: Mapping[str, Any],
    file: StackFile | None = None,
    secret: Collection[Loc] = (),
    *,
    readable: bool = True,
    root: Path = PROJECT,
) -> Reading:
    """Validate settings, all of them: what is faulty is reported, mended and read on.

    Args:
        values: The settings.
        file: The stack file, for the lines of findings.
        secret: The places of what is marked as secret.
        readable: Whether the values of these are in clear text.
        root: The project's folder, in which included files lie.
    """
    whole = included(values, file, root)
    origins = whole.origins
    mending = Mending(whole.values)
    found = list(whole.findings)
    faults: list[tuple[Loc, Finding]] = []
    texts = secrets.texts(values, secret) if readable else frozenset()
    for written in secret:
        loc = origins.together(written)
        if not secrets.can_be(written):
            refusal = secrets.refusal(written, repair.dotted(written))
            found.append(Origins(file).located(written, refusal))
            if loc is not None:
                mending.leave_out(loc)
        elif loc is not None and not readable:
            mending.put(loc, secrets.REDACTED)
    bare = tuple(secrets.in_clear(values, frozenset(secret)))
    faults += bare
    texts |= secrets.texts(values, [loc for loc, _ in bare])
    for loc in _encrypted(whole.values, origins):
        faults.append((loc, secrets.not_decrypted(repair.dotted(loc))))
        if secrets.can_be(loc):
            mending.put(loc, secrets.REDACTED)
        else:
            mending.leave_out(loc)
    faults += _left_open(whole.values)
    origins.defaults.update(complete_clusters(mending.values))
    partial = None
    for _ in range(_ROUNDS):
        try:
            partial = Settings.model_validate(mending.values)
            break
        except ValidationError as error:
            details = error.errors(include_url=False)
            for each in mending.news(details):
                loc = mending.written(each["loc"])
                faults.append((loc, replace(repair.describe(_as_written(each, origins)), where=repair.dotted(loc))))
            mending.mend(details)
    if partial is not None:
        faults += [(mending.written(loc), finding) for loc, finding in _duplicates(partial, mending.doubtful, origins)]
        faults += [(mending.written(loc), finding) for loc, finding in _regions(partial, mending.doubtful)]
        # Where the name or the id of the workspace is faulty, what goes with it is not known.
        if not mending.gone(("workspace",), ("workspace", "name"), ("workspace", "existing")):
            faults += [(mending.written(loc), finding) for loc, finding in checks.check_existing(partial)]
    located = (origins.located(loc, finding) for loc, finding in faults)
    # A fault in a default is found in it and in each cluster that takes it.
    found += {(one.code, one.where, one.seen, one.file, one.line): one for one in located}.values()
    # An entry that could not be read: what depends on the list as a whole is in doubt, its entries are not.
    doubtful = mending.doubtful | {(key, len(whole.values[key])) for key in whole.incomplete}
    shown = in_file_order(secrets.hidden(finding, texts) for finding in found)
    return Reading(shown, partial, frozenset(doubtful), file, texts, origins)


def _left_open(values: Mapping[str, Any]) -> Iterator[tuple[Loc, Finding]]:
    """Yield the places that a migration left for a person to fill in."""
    rule = "What `amlstack migrate` did not find is filled in by a person"
    for loc, text in unfilled(values):
        yield repair.finding_at(loc, "to-fill", f"`{text}` is left open", rule, "Write the value in its place")


def _encrypted(values: Mapping[str, Any], origins: Origins) -> Iterator[Loc]:
    """Yield the places of values that included files hold encrypted."""
    for key, entries in origins.entries.items():
        for index, (included_file, _) in enumerate(entries):
            if included_file is not None:
                yield from secrets.encrypted(values[key][index], (key, index))


def _as_written(error: ErrorDetails, origins: Origins) -> ErrorDetails:
    """One of pydantic's errors with the index that an entry has in its file."""
    loc = error["loc"]
    entries = origins.entries.get(str(loc[0])) if len(loc) > 1 else None
    if entries is None or not isinstance(loc[1], int):
        return error
    return {**error, "loc": (loc[0], entries[loc[1]][1], *loc[2:])}


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
    if settings.cluster_defaults is not None and not settings.clusters:
        written.append((("cluster_defaults", "location"), settings.cluster_defaults.location))
    for loc, name in written:
        if name is not None and not doubtful.intersection({loc, loc[:2], loc[:1]}):
            finding = regions.finding(name, repair.dotted(loc))
            if finding is not None:
                yield loc, finding


def _duplicates(settings: Settings, doubtful: set[Loc], origins: Origins) -> list[tuple[Loc, Finding]]:
    # Azure compares the names of clusters and environments without letter case. Versions of one data asset may differ.
    named: dict[str, list[str]] = {
        "clusters": [cluster.name for cluster in settings.clusters],
        "environments": [
            environment.curated if isinstance(environment, CuratedEnvironment) else environment.name
            for environment in settings.environments
        ],
        "datastores": [store.name for store in settings.datastores],
        "data": [f"{asset.name}:{asset.version}" if asset.version else asset.name for asset in settings.data],
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
                what = f"`{name}` is listed here and in {origins.shown((key, first))}"
                rule = f"Each of the {key} is listed once"
                found.append(((key, index), Finding("setting-twice", repair.dotted((key, index)), what, rule)))
    return found
