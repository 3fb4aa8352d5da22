"""Which settings of a stack differ from those of a commit: entry by entry: a job is touched by its own alone."""

from __future__ import annotations

import fnmatch
import tempfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import yaml

from infra.settings import CuratedEnvironment, Reading, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amlstack.cli.jobfiles.changes.git import Repository
    from infra.settings import Settings

LISTS: Final = ("clusters", "environments", "datastores", "data", "access", "jobs")
ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class ChangedSettings:
    """One stack now and as of a commit.

    Attributes:
        stack: Its name.
        reading: Its settings now.
        files: Where they are written, from the repository's root on: the stack file, and those that it includes.
        before: The settings as of the commit; None where the stack was not there, or could not be read.
        entries: Of each list of the settings, the names of the entries that differ.
        others: Other settings that differ, those of other namespaces too.
    """

    stack: str
    reading: Reading
    files: tuple[str, ...]
    before: Settings | None
    entries: dict[str, frozenset[str]] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What differs, for people; empty for nothing."""
        listed = [f"{key} {', '.join(f'`{name}`' for name in sorted(names))}" for key, names in self.entries.items()]
        return "; ".join([*listed, *self.others])

    @property
    def removed_jobs(self) -> tuple[str, ...]:
        """Job files that it listed, and lists no longer."""
        now = {job.file for job in self.reading.partial.jobs} if self.reading.partial else set()
        return tuple(job.file for job in self.before.jobs if job.file not in now) if self.before else ()


def compare(repository: Repository, commit: str, folder: str, name: str) -> ChangedSettings:
    """Compare a stack's settings.

    Args:
        repository: Where it lies.
        commit: The commit to compare with.
        folder: The project's folder, from the repository's root on; empty for the root itself.
        name: Name of the stack file.
    """
    place = repository.root / folder
    reading = read_file(place / name)
    includes = {included.name for entries in reading.places.entries.values() for included, _ in entries if included}
    files = tuple(str(PurePosixPath(folder, each)) for each in (name, *sorted(includes)))
    stack = name.removeprefix("Pulumi.").removesuffix(".yaml")
    with tempfile.TemporaryDirectory(prefix="amlstack-base-") as scratch:
        then = _checked_out(repository, commit, folder, name, Path(scratch))
    if then is None or then.partial is None or reading.partial is None:
        return ChangedSettings(stack, reading, files, None, dict.fromkeys(LISTS, frozenset({ALL})))
    entries = {}
    for key in LISTS:
        old, new = _entries(then.partial, key), _entries(reading.partial, key)
        if names := frozenset(one for one in {*old, *new} if old.get(one) != new.get(one)):
            entries[key] = names
    return ChangedSettings(stack, reading, files, then.partial, entries, tuple(_others(then, reading)))


def _others(then: Reading, now: Reading) -> Iterator[str]:
    old, new = (each.partial.model_dump(exclude=set(LISTS)) if each.partial else {} for each in (then, now))
    for key in new:
        if old.get(key) != new[key]:
            yield f"`{key}`"
    before, after = ({**each.file.config} if each.file else {} for each in (then, now))
    for key in sorted({*before, *after}):
        theirs = not str(key).startswith("amlstack:")
        # Of what is encrypted the settings show nothing: the text in the file tells.
        if before.get(key) != after.get(key) and (
            theirs or _has_secret(before.get(key)) or _has_secret(after.get(key))
        ):
            yield f"`{key}`"


def _has_secret(value: Any) -> bool:
    if isinstance(value, dict):
        return set(value) == {"secure"} or any(map(_has_secret, value.values()))
    return isinstance(value, list) and any(map(_has_secret, value))


def _entries(settings: Settings, key: str) -> dict[str, Any]:
    """The entries of a list by their names; of several with one name all."""
    found: dict[str, list[Any]] = {}
    for entry in getattr(settings, key) or ():
        found.setdefault(name_of(entry), []).append(entry.model_dump())
    return found


def name_of(entry: Any) -> str:
    """By what jobs name an entry."""
    if isinstance(entry, CuratedEnvironment):
        return entry.curated
    return str(getattr(entry, "name", None) or getattr(entry, "file", None) or entry)


def _checked_out(repository: Repository, commit: str, folder: str, name: str, scratch: Path) -> Reading | None:
    """The settings as of a commit; None where the stack was not there."""
    content = repository.content(commit, str(PurePosixPath(folder, name)))
    if content is None:
        return None
    (scratch / name).write_bytes(content)
    patterns = tuple(_included(content))
    if patterns:
        for path in repository.files_at(commit, folder):
            inside = PurePosixPath(path).relative_to(folder).as_posix() if folder else path
            if any(_meant(inside, pattern) for pattern in patterns):
                target = scratch / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(repository.content(commit, path) or b"")
    return read_file(scratch / name)


def _meant(path: str, pattern: str) -> bool:
    plain = str(PurePosixPath(pattern))
    return path == plain or (path.count("/") == plain.count("/") and fnmatch.fnmatchcase(path, plain))


def _included(content: bytes) -> Iterator[str]:
    """The paths and patterns by which the lists of a stack file include files."""
    try:
        config = yaml.safe_load(content)["config"]
        lists = [value for value in config.values() if isinstance(value, list)]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError):
        return
    for entries in lists:
        for entry in entries:
            given = entry.get("include") if isinstance(entry, dict) else None
            yield from (one for one in _several(given) if isinstance(one, str))


def _several(given: Any) -> Iterable[Any]:
    return given if isinstance(given, list) else [given]
