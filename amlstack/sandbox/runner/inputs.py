"""Inputs of a job on its nodes: mounted, copied, read-only."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from amlstack.sandbox.contract import RefusedError
from amlstack.sandbox.files.storage import Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from amlstack.sandbox.contract import JobPort, Spec
    from amlstack.sandbox.files.storage import Storage

How = Literal["text", "copy", "write", "read"]
"""A node gets one of these: the value or address as text, a copy, a link to the data, a mount to read from."""


@dataclass(frozen=True, slots=True)
class NodeInput:
    """One input, resolved.

    Attributes:
        name: Its name.
        how: What a node gets.
        text: The value, where ``how`` is text.
        place: Where the data lie, otherwise.
        file: The file's name where it is one file; empty for a folder.
    """

    name: str
    how: How
    text: str = ""
    place: Location | Path = Path()
    file: str = ""

    @property
    def what(self) -> str:
        """The name that messages give it."""
        return f"The input {self.name!r}"


def resolve(storage: Storage, spec: Spec, here: Mapping[str, Path]) -> tuple[NodeInput, ...]:
    """The inputs of a job, each with the place of its data.

    Args:
        storage: The sandbox's storage.
        spec: The job.
        here: Paths of this machine that take the place of declared addresses, by input.

    Raises:
        RefusedError: One has no path, lies where the sandbox cannot read, or holds what must not be mounted.
    """
    return tuple(_input(storage, name, port, here.get(name)) for name, port in spec.inputs.items())


def protected(inputs: Iterable[NodeInput], folder: Path, possible: Callable[[Iterable[Path]], bool]) -> bool:
    """True where the nodes may mount the data to be read; where they may not, they get copies.

    Args:
        inputs: Of `resolve`.
        possible: `namespace.possible` for the nodes.
        folder: The job's folder, which holds what comes from the sandbox's storage.
    """
    read = [one.place for one in inputs if one.how == "read"]
    return not read or possible([folder, *(place for place in read if isinstance(place, Path))])


def put(storage: Storage, one: NodeInput, root: Path, *, mount: bool) -> tuple[str, list[tuple[str, str]]]:
    """Puts one input onto a node.

    Args:
        storage: The sandbox's storage.
        one: The input.
        root: The node's folder.
        mount: What is to be read is mounted; else it is copied, the copy's files without the right to write.

    Returns:
        What the command gets for it, and the mounts for `namespace.take`.

    Raises:
        RefusedError: There is nothing.
    """
    if one.how == "text":
        return one.text, []
    # A file keeps its name, since programs look at the ending.
    target = root / "inputs" / one.name
    goal = target / one.file if one.file else target
    goal.parent.mkdir(parents=True, exist_ok=True)
    if one.how == "write":
        goal.symlink_to(storage.mount(one.place) if isinstance(one.place, Location) else one.place)
        return str(goal), []
    if one.how == "read" and mount:
        if isinstance(one.place, Location):
            storage.fetch(one.place, goal, one.what, link=True)
            return str(goal), [(str(target), str(target))]
        if one.place.is_dir():
            goal.mkdir()
            return str(goal), [(str(one.place), str(goal))]
        goal.touch()
        # A file's own folder too, so that nothing can be put beside it.
        own = [(str(target), str(target))] if one.file else []
        return str(goal), [(str(one.place), str(goal)), *own]
    storage.fetch(one.place, goal, one.what)
    if one.how == "read":
        for file in (goal, *goal.rglob("*")):
            if file.is_file():
                file.chmod(0o444)
    return str(goal), []


def _input(storage: Storage, name: str, port: JobPort, here: Path | None) -> NodeInput:
    if port.kind == "literal":
        return NodeInput(name, "text", port.value if here is None else str(here))
    uri = port.uri if here is None else str(here)
    if not uri:
        raise RefusedError(f"The input {name!r} has no path.")
    if port.mode == "Direct":
        return NodeInput(name, "text", uri)
    place = storage.locate(uri, f"The input {name!r}") if here is None else here
    source = place.path if isinstance(place, Location) else place.name
    how: How = "copy" if port.copied else "write" if port.mode == "ReadWriteMount" else "read"
    found = NodeInput(name, how, place=place, file=Path(source).name if port.kind == "uri_file" else "")
    if isinstance(place, Path):
        if not place.exists():
            raise RefusedError(f"{found.what} is {place}, which does not exist.")
        if how != "write":
            _check_tree(place, found.what)
    return found


def _check_tree(top: Path, what: str) -> None:
    """Refuses what would lead from a mount to files outside it, or keep a copy waiting for ever."""
    root = Path(os.path.realpath(top))
    for path, mode in _entries(root):
        if stat.S_ISLNK(mode):
            text = path.readlink()
            climbs = os.path.normpath(path.relative_to(root).parent / text).split("/")[0] == ".."
            if text.is_absolute() or climbs or not Path(os.path.realpath(path)).is_relative_to(root):
                message = (
                    f"{what} is {top}, which holds the link '{path.relative_to(root)}' to '{text}'. Links in an input "
                    "must be relative and stay in its folder: a job would reach through others to files that the input "
                    "does not hold. Replace the link with what it leads to, or make that an input of its own."
                )
                raise RefusedError(message)
        elif not stat.S_ISREG(mode):
            message = (
                f"{what} is {top}, which holds '{path.relative_to(root)}', neither a file nor a folder nor a link. "
                "Inputs hold nothing else, as storage does not. Move it elsewhere."
            )
            raise RefusedError(message)


def _entries(root: Path) -> Iterator[tuple[Path, int]]:
    """Path and type (as in ``st_mode``) of everything below a folder that is no folder itself, or of the one file."""
    if not root.is_dir():
        yield root, root.stat().st_mode
        return
    folders = [str(root)]
    while folders:
        with os.scandir(folders.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    yield Path(entry.path), stat.S_IFLNK if entry.is_symlink() else 0


FOLDER = "data"
"""Of the job's folder."""


@dataclass(frozen=True, slots=True)
class NodeData:
    """The data of one node.

    Attributes:
        inputs: What the command gets for each.
        outputs: Path of each.
        uploads: Folder of each output that is uploaded, as everybody sees it.
        readonly: Source and target of what is mounted to be read.
        own: Source and target of what is mounted to be written.
    """

    inputs: dict[str, str]
    outputs: dict[str, str]
    uploads: dict[str, Path]
    readonly: tuple[tuple[str, str], ...]
    own: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class JobData:
    """The data of a job's nodes, to be completed for each of them.

    Attributes:
        storage: The sandbox's storage.
        common: The folder of the paths.
        shared: What all nodes have.
        copies: Inputs of which each node gets a copy.
        uploads: Outputs of which each node has a folder.
        alike: The nodes' own folders are mounted at one path; else each has its own.
    """

    storage: Storage
    common: Path
    shared: NodeData
    copies: tuple[NodeInput, ...]
    uploads: tuple[str, ...]
    alike: bool

    def on(self, root: Path) -> NodeData:
        """Return the data of the node with this folder; make its copies and folders.

        Raises:
            RefusedError: An input holds nothing.
        """
        uploads = {name: root / "outputs" / name for name in self.uploads}
        for path in uploads.values():
            path.mkdir(parents=True)
        given = {one.name: put(self.storage, one, root, mount=False)[0] for one in self.copies}
        outputs = {name: str(path) for name, path in uploads.items()}
        own = []
        if self.alike:
            given = {name: str(self._at(root, path)) for name, path in given.items()}
            outputs = {name: str(self._at(root, path)) for name, path in outputs.items()}
            places = [*(root / "inputs" / one.name for one in self.copies), *uploads.values()]
            for place in places:
                target = self._at(root, str(place))
                target.parent.mkdir(parents=True, exist_ok=True)
                if place.is_dir():
                    target.mkdir(exist_ok=True)
                else:
                    target.touch()
                own.append((str(place), str(target)))
        return NodeData(
            self.shared.inputs | given, self.shared.outputs | outputs, uploads, self.shared.readonly, tuple(own)
        )

    def _at(self, root: Path, path: str) -> Path:
        """The path that all nodes have for one in a node's folder."""
        return self.common.joinpath(path.removeprefix(f"{root}/"))


def prepare(
    storage: Storage,
    wanted: Sequence[NodeInput],
    outputs: Mapping[str, Path | None],
    job: Path,
    nodes: int,
    *,
    mount: bool,
    private: bool,
) -> JobData:
    """Puts down what all nodes share.

    Args:
        storage: The sandbox's storage.
        wanted: The inputs.
        outputs: The mounted folder of each output; None for one that is uploaded.
        job: The job's folder.
        nodes: How many there are.
        mount: What is to be read is mounted; else it is copied, once for all nodes.
        private: Nodes may have mounts of their own.

    Raises:
        RefusedError: An input holds nothing.
    """
    common = job / FOLDER
    shutil.rmtree(common, ignore_errors=True)
    given, readonly = {}, list[tuple[str, str]]()
    for one in wanted:
        if one.how != "copy":
            given[one.name], mounts = put(storage, one, common, mount=mount)
            readonly += mounts
    linked = {}
    for name, folder in outputs.items():
        if folder is not None:
            path = common / "outputs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(folder)
            linked[name] = str(path)
    shared = NodeData(given, linked, {}, tuple(readonly), ())
    copies = tuple(one for one in wanted if one.how == "copy")
    uploads = tuple(name for name, folder in outputs.items() if folder is None)
    alike = bool(nodes > 1 and (copies or uploads)) and private
    return JobData(storage, common, shared, copies, uploads, alike)
