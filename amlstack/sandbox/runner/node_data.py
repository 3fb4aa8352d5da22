"""The paths of a job's inputs and outputs: the same on each of its nodes, as on Azure.

What nodes share lies there once: mounts to read from, links to what may be written. What each node has of its own, its
copies and the outputs that are uploaded, lies in its folder and is mounted over that path for its processes alone.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlstack.sandbox.runner import inputs, namespace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from amlstack.sandbox.files.storage import Storage
    from amlstack.sandbox.runner.inputs import NodeInput

FOLDER = "data"
"""Of the job's folder."""


@dataclass(frozen=True, slots=True)
class NodeData:
    """What one node has.

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
    """What a job's nodes have, to be completed for each of them.

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
        """What the node with this folder has; makes its copies and folders.

        Raises:
            RefusedError: An input holds nothing.
        """
        uploads = {name: root / "outputs" / name for name in self.uploads}
        for path in uploads.values():
            path.mkdir(parents=True)
        given = {one.name: inputs.put(self.storage, one, root, mount=False)[0] for one in self.copies}
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
) -> JobData:
    """Puts down what all nodes share.

    Args:
        storage: The sandbox's storage.
        wanted: The inputs.
        outputs: The mounted folder of each output; None for one that is uploaded.
        job: The job's folder.
        nodes: How many there are.
        mount: What is to be read is mounted; else it is copied, once for all nodes.

    Raises:
        RefusedError: An input holds nothing.
    """
    common = job / FOLDER
    shutil.rmtree(common, ignore_errors=True)
    given, readonly = {}, list[tuple[str, str]]()
    for one in wanted:
        if one.how != "copy":
            given[one.name], mounts = inputs.put(storage, one, common, mount=mount)
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
    alike = bool(nodes > 1 and (copies or uploads)) and namespace.possible()
    return JobData(storage, common, shared, copies, uploads, alike)
