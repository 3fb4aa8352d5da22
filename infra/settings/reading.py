"""Settings from the engine's configuration or from a stack file, with every finding and where each was written.

Lists of settings may include files; clusters take defaults.
"""

from __future__ import annotations

import copy
import glob
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from amlstack.base import yamltext
from amlstack.base.files import read_regular
from amlstack.base.findings import Finding, errors, in_file_order, stated
from amlstack.base.paths import PROJECT, is_dir, is_file, names_in
from amlstack.base.text import did_you_mean, near
from amlstack.base.yamltext import Text, unfilled
from amlstack.catalog import regions
from infra.settings import checks, repair
from infra.settings.model.cluster import BY_KEY
from infra.settings.model.stack import INCLUDE, LISTS, CuratedEnvironment, Settings
from infra.settings.repair import Mending, dotted
from infra.settings.stackfile import NAMESPACE, ROOM, Loc, StackFile, read

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


@dataclass(frozen=True, slots=True)
class IncludedFile:
    """A file that holds entries of a list of the settings.

    Attributes:
        name: Its path from the project's folder on, as findings show it.
    """

    name: str
    _text: Text = field(repr=False)

    def located(self, loc: Loc, finding: Finding) -> Finding:
        """The finding with the place of what it is about, or of the closest thing around it."""
        return finding.at(self.name, *(self._text.spot(loc) or (None, None)))


@dataclass(frozen=True, slots=True)
class Origins:
    """From a path in the settings, all files read, to where a person wrote what is there.

    Attributes:
        file: The stack file, where it is known.
        entries: Of each list that includes files: file and index of every entry; the stack file is None.
        defaults: Path of each value of a cluster that came from ``cluster_defaults`` → its path there.
    """

    file: StackFile | None = None
    entries: Mapping[str, tuple[tuple[IncludedFile | None, int], ...]] = field(default_factory=dict)
    defaults: dict[Loc, Loc] = field(default_factory=dict)

    def written(self, loc: Loc) -> tuple[IncludedFile | None, Loc]:
        """The included file, or None for the stack file, and the path in it."""
        if self.defaults and (source := _default_of(loc, self.defaults)) is not None:
            return None, source
        of_list = self.entries.get(str(loc[0]), ()) if len(loc) > 1 else ()
        if not isinstance(loc[1] if of_list else None, int) or int(loc[1]) >= len(of_list):
            return None, loc
        included, index = of_list[int(loc[1])]
        return included, ((loc[0], index, *loc[2:]) if included is None else (index, *loc[2:]))

    def where(self, loc: Loc) -> str:
        """The path as its file has it: ``amlstack:clusters[0].size``, in an included file ``[0].size``."""
        included, written = self.written(loc)
        return dotted(written) if included is None else dotted(("", *written)).partition(":")[2]

    def shown(self, loc: Loc) -> str:
        """The same for the middle of a sentence, with the included file."""
        included, _ = self.written(loc)
        return self.where(loc) if included is None else f"{included.name}{self.where(loc)}"

    def located(self, loc: Loc, finding: Finding) -> Finding:
        """The finding with the place of a setting."""
        if finding.where == dotted(loc):
            finding = replace(finding, where=self.where(loc))
        included, written = self.written(loc)
        if included is not None:
            return included.located(written, finding)
        return finding if self.file is None else finding.at(self.file.name, *self.file.locate(written))

    def together(self, loc: Loc) -> Loc | None:
        """The other way: of a path in the stack file that in the settings; None for an entry that includes files."""
        of_list = self.entries.get(str(loc[0])) if len(loc) > 1 else None
        if of_list is None:
            return loc
        return next(((loc[0], at, *loc[2:]) for at, each in enumerate(of_list) if each == (None, loc[1])), None)


def complete_clusters(values: dict[str, Any]) -> dict[Loc, Loc]:
    """Complete each cluster in settings as they were written, by what ``cluster_defaults`` says.

    That happens before they are validated, so that everything behind knows whole clusters only. Objects are completed
    key by key (``nodes``, ``ssh``, ``tags``); what else an entry says takes the place of the default as a whole.

    Args:
        values: The settings; entries of ``clusters`` are changed in place.

    Returns:
        Path of each value that came from the defaults → path of the default.
    """
    defaults, clusters = values.get("cluster_defaults"), values.get("clusters")
    taken: dict[Loc, Loc] = {}
    if isinstance(defaults, dict) and isinstance(clusters, list):
        for index, entry in enumerate(clusters):
            if isinstance(entry, dict):
                _fill(entry, defaults, ("clusters", index), ("cluster_defaults",), taken)
    return taken


def _default_of(loc: Loc, taken: dict[Loc, Loc]) -> Loc | None:
    """The default that a path of the settings, or something around it, came from; None for what an entry says."""
    for length in range(len(loc), 2, -1):
        if (source := taken.get(loc[:length])) is not None:
            return (*source, *loc[length:])
    return None


def _fill(entry: dict[str, Any], defaults: dict[str, Any], at: Loc, of: Loc, taken: dict[Loc, Loc]) -> None:
    for name, value in defaults.items():
        if name == "name" and len(at) == 2:
            continue  # refused where it is written: each cluster has its own
        if name not in entry:
            entry[name] = copy.deepcopy(value)
            taken[(*at, name)] = (*of, name)
        elif len(at) == 2 and name in BY_KEY and isinstance(entry[name], dict) and isinstance(value, dict):
            _fill(entry[name], value, (*at, name), (*of, name), taken)


_RULE = "An included file lies in the project's folder and is named from there on"


@dataclass(slots=True)
class Included:
    """Settings with the entries of the files that they include.

    Attributes:
        values: The settings, each list whole.
        origins: Where each entry was written.
        findings: What is wrong with the files, and with how they are named, each at its place.
        incomplete: The lists of which something could not be read.
    """

    values: dict[str, Any]
    origins: Origins
    findings: list[Finding] = field(default_factory=list)
    incomplete: set[str] = field(default_factory=set)


def included(values: Mapping[str, Any], file: StackFile | None, root: Path) -> Included:
    """Read the files that settings include.

    Args:
        values: The settings as the stack file has them.
        file: The stack file, for the lines of findings.
        root: The project's folder.
    """
    entries: dict[str, tuple[tuple[IncludedFile | None, int], ...]] = {}
    result = Included(dict(values), Origins(file, entries))
    for key in LISTS:
        given = values.get(key)
        if isinstance(given, list) and any(_including(entry) for entry in given):
            reader = _Reader(key, root, result)
            reader.read(given)
            result.values[key] = [value for value, _, _ in reader.entries]
            entries[key] = tuple((included_file, index) for _, included_file, index in reader.entries)
    return result


def _including(entry: Any) -> str | None:
    """The key by which an entry includes files; misspelt, where it is the entry's only key and names a path."""
    if not isinstance(entry, dict):
        return None
    if INCLUDE in entry:
        return INCLUDE
    alone = next(iter(entry)) if len(entry) == 1 else None
    return alone if isinstance(alone, str) and _meant(alone) else None


@lru_cache(maxsize=64)
def _meant(key: str) -> bool:
    """True where a key is `include`, misspelt; thousands of entries have the same few keys."""
    return bool(near(key, (INCLUDE,)))


class _Reader:
    """Reads the entries of one list."""

    def __init__(self, key: str, root: Path, result: Included) -> None:
        self.key, self.root, self.result = key, root, result
        self.entries: list[tuple[Any, IncludedFile | None, int]] = []
        self._read: dict[Path, str] = {}  # file → where it was included

    def read(self, given: list[Any]) -> None:
        for index, entry in enumerate(given):
            if (word := _including(entry)) is None:
                self.entries.append((entry, None, index))
            else:
                self._include((self.key, index), word, entry)

    def _include(self, loc: Loc, word: str, entry: Mapping[str, Any]) -> None:
        if word != INCLUDE:
            self._wrong((*loc, word), "setting-unknown", f"Unknown key `{word}`", "", f"Did you mean `{INCLUDE}`?")
        for key in entry:
            if key != word:
                rule = f"An entry with `{INCLUDE}` has no other key"
                self._wrong((*loc, key), "setting-unknown", f"Unknown key `{key}`", rule)
        given = entry[word]
        if isinstance(given, dict) and set(given) == {"secure"}:  # refused as a secret
            self.result.incomplete.add(self.key)
            return
        paths = given if isinstance(given, list) else [given]
        for index, path in enumerate(paths):
            at = (*loc, word, index) if isinstance(given, list) else (*loc, word)
            if not isinstance(path, str) or not path.strip():
                seen = f"`{INCLUDE}` must be a path or a list of paths, got `{_short(path)}`"
                self._wrong(at, "setting-value", seen, _RULE)
                continue
            for name in self._named(at, path):
                self._file(at, name)
        if not paths:
            seen = f"`{INCLUDE}` names no file"
            self._wrong((*loc, word), "setting-value", seen, _RULE)

    def _named(self, loc: Loc, path: str) -> Iterator[str]:
        """The files that a path or a pattern means, from the project's folder on."""
        if "\0" in path or Path(path).is_absolute() or "**" in path:
            seen = f"`{INCLUDE}` cannot be `{_short(path)}`"
            self._wrong(loc, "setting-value", seen, f"{_RULE}, with * for any part of a name in one folder")
        elif Path(os.path.normpath(path)).parts[:1] == (os.pardir,):
            self._wrong(loc, "setting-value", f"`{path}` lies outside the project's folder", _RULE)
        elif is_file(self.root / path):
            yield path
        elif glob.has_magic(path):
            names = sorted(glob.glob(path, root_dir=self.root))  # noqa: PTH207 - pathlib's takes hidden files too
            names = [name for name in names if is_file(self.root / name)]
            if not names:
                self._wrong(loc, "file-missing", f"No file is named like `{path}`", _RULE)
            yield from names
        elif is_dir(self.root / path):
            seen = f"`{path}` is a folder"
            self._wrong(loc, "setting-value", seen, _RULE, f"Write `{path.rstrip('/')}/*.yml` for the files in it")
        else:
            whole = self.root / path
            folder = next((parent for parent in whole.parents if is_dir(parent)), self.root)
            close = did_you_mean(whole.relative_to(folder).parts[0], names_in(folder))
            self._wrong(loc, "file-missing", f"There is no file `{path}`", _RULE, close)

    def _file(self, loc: Loc, name: str) -> None:
        name = os.path.normpath(name)
        try:
            path, root = (self.root / name).resolve(strict=True), self.root.resolve()
            size = path.stat().st_size
        except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError
            self._wrong(loc, "settings-file", f"`{name}` cannot be read: {_why(error)}", _RULE)
            return
        if not path.is_relative_to(root):
            self._wrong(loc, "setting-value", f"`{name}` leads out of the project's folder by a link", _RULE)
            return
        if (first := self._read.get(path)) is not None:
            self._wrong(loc, "setting-twice", f"`{name}` is included here and in {first}", "A file is included once")
            return
        self._read[path] = dotted(loc)
        most = yamltext.MAX_BYTES * ROOM
        if size > most:
            self._unreadable(name, f"it has {size:,} bytes", f"An included file has at most {most:,}")
            return
        try:
            text = yamltext.parse(read_regular(path), name, room=ROOM)
        except OSError as error:
            self._unreadable(name, _why(error))
            return
        for wrong in text.findings:
            self._unreadable(name, wrong.seen[:1].lower() + wrong.seen[1:], at=(wrong.line, wrong.column))
            return
        self._entries(IncludedFile(name, text), text.data)

    def _entries(self, source: IncludedFile, data: Any) -> None:
        if not isinstance(data, list):
            held = "keys" if isinstance(data, dict) else "nothing" if data is None else "one value"
            rule = f"An included file is a list of {self.key}, each written as in the stack file"
            top = isinstance(data, dict) and any(str(name).rpartition(":")[2] == self.key for name in data)
            remedy = f"Write the list by itself, without `{self.key}:`" if top else ""
            finding = Finding("settings-file", "", f"The file holds {held} and no list", rule, remedy)
            self._add(source.located((), finding))
            return
        for index, entry in enumerate(data):
            if isinstance(entry, dict) and INCLUDE in entry:
                seen, rule = f"`{INCLUDE}` in an included file", "Files are included by the stack file alone"
                self._add(source.located((index, INCLUDE), Finding("setting-value", f"[{index}]", seen, rule)))
            else:
                self.entries.append((entry, source, index))

    def _wrong(self, loc: Loc, code: str, seen: str, rule: str, remedy: str = "") -> None:
        self._add(Origins(self.result.origins.file).located(loc, Finding(code, dotted(loc), seen, rule, remedy)))

    def _unreadable(
        self, name: str, why: str, rule: str = "", *, at: tuple[int | None, int | None] = (None, None)
    ) -> None:
        rule = rule or "An included file is a YAML list in UTF-8"
        self._add(Finding("settings-file", "", f"The file cannot be read: {why}", rule).at(name, *at))

    def _add(self, finding: Finding) -> None:
        self.result.findings.append(finding)
        self.result.incomplete.add(self.key)


def _why(error: Exception) -> str:
    return str((error.strerror if isinstance(error, OSError) else "") or error)


def _short(value: Any) -> str:
    if isinstance(value, dict | list):
        return "{…}" if isinstance(value, dict) else "[…]"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


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
    reading = parse(values, file, checks.encrypted(file.values), readable=False, root=path.parent)
    return replace(reading, findings=(*checks.check_size(file), *reading.findings))


def from_engine(
    config: Mapping[str, str], file: StackFile | None, secret_keys: Collection[str] = (), *, root: Path = PROJECT
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
    return parse(values, file, checks.of_engine(values, keys, file), root=root)


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
    texts = checks.texts(values, secret) if readable else frozenset()
    for written in secret:
        loc = origins.together(written)
        if not checks.can_be(written):
            refusal = checks.refusal(written, repair.dotted(written))
            found.append(Origins(file).located(written, refusal))
            if loc is not None:
                mending.leave_out(loc)
        elif loc is not None and not readable:
            mending.put(loc, checks.REDACTED)
    bare = tuple(checks.in_clear(values, frozenset(secret)))
    faults += bare
    texts |= checks.texts(values, [loc for loc, _ in bare])
    for loc in _encrypted(whole.values, origins):
        faults.append((loc, checks.not_decrypted(repair.dotted(loc))))
        if checks.can_be(loc):
            mending.put(loc, checks.REDACTED)
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
        faults += [(mending.written(loc), finding) for loc, finding in _profiles(partial, mending)]
        # Where the name or the id of the workspace is faulty, what goes with it is not known.
        if not mending.gone(("workspace",), ("workspace", "name"), ("workspace", "existing")):
            faults += [(mending.written(loc), finding) for loc, finding in checks.check_existing(partial)]
    located = (origins.located(loc, finding) for loc, finding in faults)
    # A fault in a default is found in it and in each cluster that takes it.
    found += {(one.code, one.where, one.seen, one.file, one.line): one for one in located}.values()
    # An entry that could not be read: what depends on the list as a whole is in doubt, its entries are not.
    doubtful = mending.doubtful | {(key, len(whole.values[key])) for key in whole.incomplete}
    shown = in_file_order(checks.hidden(finding, texts) for finding in found)
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
                yield from checks.encrypted(values[key][index], (key, index))


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
    for loc, name in ((("location",), settings.location), *_of_clusters(settings, "location")):
        if name is not None and not doubtful.intersection({loc, loc[:2], loc[:1]}):
            finding = regions.finding(name, repair.dotted(loc))
            if finding is not None:
                yield loc, finding


def _profiles(settings: Settings, mending: Mending) -> Iterator[tuple[Loc, Finding]]:
    """Profiles of Slurm that clusters name and the settings lack."""
    for loc, value in _of_clusters(settings, "rehearse_on"):
        name = (value or "").partition(":")[2]
        if name and name not in settings.slurm and not mending.gone(("slurm",), ("slurm", name)):
            yield loc, replace(slurm_profile_unknown(name, settings.slurm), where=repair.dotted(loc))


def slurm_profile_unknown(name: str, profiles: Collection[str]) -> Finding:
    """The finding on the name of a profile that a stack's settings lack."""
    write = f"Write `{name}: {{partition: NAME}}` under `amlstack:slurm`."
    return stated("slurm-profile-unknown", "", name=name, remedy=did_you_mean(name, profiles, otherwise=write))


def _of_clusters(settings: Settings, key: str) -> list[tuple[Loc, str | None]]:
    """A setting of every cluster, or of the defaults where there is none to take them."""
    found: list[tuple[Loc, str | None]] = [
        (("clusters", index, key), getattr(each, key)) for index, each in enumerate(settings.clusters)
    ]
    if settings.cluster_defaults is not None and not settings.clusters:
        found.append((("cluster_defaults", key), getattr(settings.cluster_defaults, key)))
    return found


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
