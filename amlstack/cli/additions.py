"""Things that `amlstack add` puts into a team's repository: new files, and lines in the settings of stacks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from amlstack.base import paths
from amlstack.base.files import read_regular, write_whole
from amlstack.base.findings import errors
from amlstack.base.text import did_you_mean
from amlstack.base.yamltext import parse
from amlstack.cli import repository
from amlstack.cli.jobfiles.mending import value_of
from infra.settings import read_file

KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "job": {"cluster": "gpu", "nodes": 2},
    "cluster": {"size": "Standard_ND96asr_v4", "nodes": 2},
    "environment": {"image": ""},
    "schedule": {"starts": "", "cron": "0 2 * * *", "begin": ""},
    "stack": {"like": "dev", "workspace": ""},
}
"""The kinds, and the options of each with their values when they are not given."""
_OF_A_STACK: Final = ("encryptionsalt:", "encryptedkey:", "secretsprovider:")
"""Keys of settings that hold for the secrets of one stack alone."""


class AdditionError(Exception):
    """It cannot be added; the message is for the user."""


class Addition(NamedTuple):
    """One addition.

    Attributes:
        files: Path in the project → content of each new file.
        key: The list in the settings that gets an item; empty for none.
        item: The item.
    """

    files: Mapping[str, str]
    key: str = ""
    item: Any = None


def of_kind(kind: str, name: str, given: Mapping[str, Any]) -> Addition:
    """An addition.

    Args:
        kind: A key of ``KINDS``.
        name: Its name.
        given: Options of the kind.

    Raises:
        AdditionError: There is no such kind, it has no such option, or a value cannot be.
    """
    if kind not in KINDS:
        raise AdditionError(f"`add` takes {', '.join(KINDS)}, got `{kind}`. {did_you_mean(kind, KINDS)}".strip())
    if wrong := given.keys() - KINDS[kind]:
        known = ", ".join(f"--{option}" for option in KINDS[kind])
        raise AdditionError(f"`add {kind}` takes {known}, and no --{min(wrong)}")
    if not repository.NAME.fullmatch(name) and kind != "environment":
        raise AdditionError(f"a name has 2 to 32 small letters, digits and `-`, got `{name}`")
    one = {**KINDS[kind], **given}
    match kind:
        case "cluster":
            item = {"name": name, "size": one["size"], "nodes": {"min": 0, "max": one["nodes"]}}
            return Addition({}, "amlstack:clusters", item)
        case "environment":
            image = one["image"]
            return Addition({}, "amlstack:environments", {"name": name, "image": image} if image else name)
        case "job":
            files = dict(_job(name, one["cluster"], one["nodes"]))
            return Addition(files, "amlstack:jobs", next(iter(files)))
        case "schedule":
            files = {f"workloads/{name}.yml": _schedule(name, one["starts"], one["cron"], one["begin"])}
            return Addition(files, "amlstack:jobs", *files)
    return Addition({f"Pulumi.{name}.yaml": _stack(one["like"], one["workspace"] or f"aml-{name}")})


def edits(asked: Addition, stacks: Sequence[str]) -> dict[Path, tuple[str, str]]:
    """File → its text before and after; of a new file the first is empty.

    Raises:
        AdditionError: A file is there already, or settings would have an error.
        OSError: Settings cannot be read.
    """
    found = {paths.PROJECT / name: ("", text) for name, text in asked.files.items()}
    if there := [file for file in found if file.exists()]:
        raise AdditionError(f"`{there[0].relative_to(paths.PROJECT)}` is there already")
    for stack in stacks if asked.key else ():
        file = paths.PROJECT / f"Pulumi.{stack}.yaml"
        text = read_regular(file).decode("utf-8", "replace")
        found[file] = text, with_item(text, asked.key, asked.item, file.name)
        trial = file.with_name(f".{file.name}")  # its errors are those that the settings would have
        try:
            write_whole(trial, found[file][1])
            wrong = {one.message for one in errors(read_file(trial).findings)}
        finally:
            trial.unlink(missing_ok=True)
        if new := wrong - {one.message for one in errors(read_file(file).findings)}:
            raise AdditionError(f"{file.name}: {' '.join(sorted(new))}")
    return found


def with_item(text: str, key: str, item: Any, name: str) -> str:
    """Settings with one item more in a list; comments, order and quotes stay, as the text is edited at one place.

    Raises:
        AdditionError: The list has a form that cannot be edited so.
    """
    wanted = parse(text).data
    config = wanted.get("config") if isinstance(wanted, dict) else None
    if not isinstance(config, dict) or not isinstance(config.get(key) or [], list):
        raise AdditionError(f"{name} has no `config`, or its `{key}` is no list")
    config[key] = [*(config.get(key) or []), item]
    line = yaml.safe_dump([item], default_flow_style=True, width=1000, sort_keys=False).strip()[1:-1]
    parent = value_of(yaml.compose(text, Loader=yaml.SafeLoader), "config")
    node, made = value_of(parent, key), text
    if node is None:
        indent = " " * parent.value[0][0].start_mark.column
        made = f"{text.rstrip()}\n{indent}{key}:\n{indent}  - {line}\n"
    elif node.value and node.flow_style:
        end = node.value[-1].end_mark.index
        made = f"{text[:end]}, {line}{text[end:]}"
    elif node.value:
        end = text.find("\n", _end(node) - 1)
        end = len(text) if end < 0 else end
        made = f"{text[:end]}\n{' ' * node.start_mark.column}- {line}{text[end:]}"
    if parse(made).data != wanted:
        raise AdditionError(f"{name} is written in a form that cannot be edited here. Add to `{key}` by hand: {line}")
    return made


def _end(node: Any) -> int:
    """The offset behind the last character of a node; that of a block would be behind the comments below it."""
    while isinstance(node.value, list) and node.value and not node.flow_style:
        node = node.value[-1][1] if isinstance(node.value[-1], tuple) else node.value[-1]
    return int(node.end_mark.index)


def _job(name: str, cluster: str, nodes: int) -> Iterator[tuple[str, str]]:
    """The files of a job like the first one of `init`."""
    deploy = paths.shipped("deploy")
    text = (deploy / "team/workloads/train/job.py.in").read_text("utf-8").replace("@nodes@", str(nodes))
    text = text.replace('"train"', json.dumps(name)).replace('"gpu"', json.dumps(cluster))
    yield f"workloads/{name}/job.py", text
    yield f"workloads/{name}/train.py", (deploy / "review/review/train.py").read_text("utf-8")


def _schedule(name: str, starts: str, cron: str, begin: str) -> str:
    if not starts.startswith("azureml:") and not (paths.PROJECT / starts).is_file():
        raise AdditionError(f"`--starts` must be the file of a pipeline, or azureml:NAME of a job, got `{starts}`")
    if not begin:
        raise AdditionError(
            "`--begin` must be a time such as 2026-12-01T00:00:00: without one the first start is at once"
        )
    trigger = {"type": "cron", "expression": cron, "start_time": begin}
    work = starts if starts.startswith("azureml:") else f"../{starts}"
    return yaml.safe_dump({"name": name, "trigger": trigger, "create_job": work}, sort_keys=False)


def _stack(like: str, workspace: str) -> str:
    """The settings of a stack like another one, comments too, with a workspace of its own and no secrets."""
    file = paths.PROJECT / f"Pulumi.{like}.yaml"
    lines = read_regular(file).decode("utf-8", "replace").splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith(_OF_A_STACK))
    node = value_of(value_of(yaml.compose(text, Loader=yaml.SafeLoader), "config"), "amlstack:workspace")
    node = value_of(node, "name") or node
    if "secure:" in text or node is None or not isinstance(node.value, str):
        raise AdditionError(
            f"{file.name} names no workspace, or has secrets that no other stack decrypts: copy it by hand"
        )
    return text[: node.start_mark.index] + workspace + text[node.end_mark.index :]
