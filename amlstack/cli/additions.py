"""Things that `amlstack add` puts into a team's repository: new files, and lines in the settings of stacks."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from amlstack.base import paths
from amlstack.base.files import read_regular, write_whole
from amlstack.base.yamltext import parse
from amlstack.cli import repository
from amlstack.cli.console import confirmed, on_a_terminal, say
from infra.settings import read_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_OF_A_STACK: Final = ("encryptionsalt:", "encryptedkey:", "secretsprovider:")
"""Keys of settings that hold for the secrets of one stack alone."""


class AdditionError(Exception):
    """It cannot be added; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Addition:
    """One addition.

    Attributes:
        files: Path in the project → content of each new file.
        key: The list in the settings that gets an item; empty for none.
        item: The item.
        stacks: The stacks whose settings get it.
    """

    files: Mapping[str, str]
    key: str = ""
    item: Any = None
    stacks: Sequence[str] = ()


def add(asked: Addition, *, yes: bool, dry_run: bool) -> int:
    """Shows an addition as a difference, and after a yes writes it; never over what is there.

    Returns:
        0 written or shown; 1 the answer was no, or there is no terminal to ask on; 2 it cannot be added.
    """
    root, edits = paths.PROJECT, {}
    try:
        for name, text in asked.files.items():
            if (root / name).exists():
                raise AdditionError(f"`{name}` is there already")  # noqa: TRY301 - told like all else
            edits[root / name] = "", text
        for stack in asked.stacks:
            file = root / f"Pulumi.{stack}.yaml"
            text = read_regular(file).decode("utf-8")
            edits[file] = text, with_item(text, asked.key, asked.item, file.name)
            if wrong := sorted({str(one) for one in _wrong(file, edits[file][1])} - {str(one) for one in _wrong(file)}):
                raise AdditionError("\n".join(wrong))  # noqa: TRY301
    except (AdditionError, UnicodeDecodeError) as error:
        say(str(error), err=True)
        return 2
    except OSError as error:
        say(f"{error.filename} cannot be read: {error.strerror}", err=True)
        return 2
    for file, (before, after) in edits.items():
        name = str(file.relative_to(root))
        lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, name)
        say("".join(lines), nl=False)
    if dry_run or not (yes or (on_a_terminal() and confirmed("Write this?"))):
        say(
            "nothing was written"
            if dry_run or on_a_terminal()
            else "nothing was written: `--yes` writes without a question"
        )
        return 0 if dry_run else 1
    for file, (_, after) in edits.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, after)
    return 0


def _wrong(file: Path, text: str | None = None) -> Sequence[Any]:
    """The errors of settings as they are, or as they would be."""
    if text is None:
        return [one for one in read_file(file).findings if one.level == "error"]
    trial = file.with_name(f".{file.name}.trial")
    try:
        write_whole(trial, text)
        return [one.changed(file=file.name) for one in read_file(trial).findings if one.level == "error"]
    finally:
        trial.unlink(missing_ok=True)


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
    line = (
        item
        if isinstance(item, str)
        else yaml.safe_dump(item, default_flow_style=True, width=1000, sort_keys=False).strip()
    )
    node = _value(_value(yaml.compose(text, Loader=yaml.SafeLoader), "config"), key)
    if node is None or not getattr(node, "value", None):
        parent = _value(yaml.compose(text, Loader=yaml.SafeLoader), "config")
        indent = " " * parent.value[0][0].start_mark.column
        made = f"{text.rstrip()}\n{indent}{key}:\n{indent}  - {line}\n" if node is None else text
    elif node.flow_style:
        end = node.value[-1].end_mark.index
        made = f"{text[:end]}, {line}{text[end:]}"
    else:
        last = node.value[-1]
        end = text.find("\n", _end(last) - 1)
        end = len(text) if end < 0 else end
        made = f"{text[:end]}\n{' ' * node.start_mark.column}- {line}{text[end:]}"
    if parse(made).data != wanted:
        raise AdditionError(f"{name} is written in a form that cannot be edited here. Add to `{key}` by hand: {line}")
    return made


def _value(node: Any, name: str) -> Any:
    return next((value for key, value in getattr(node, "value", None) or () if key.value == name), None)


def _end(node: Any) -> int:
    """The offset behind the last character of a node; that of a block would be behind the comments below it."""
    if isinstance(node.value, list) and node.value and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def job(name: str, cluster: str, nodes: int, stacks: Sequence[str]) -> Addition:
    """A job like the first one of `init`, in a folder of its own."""
    source = paths.shipped("deploy")
    text = (source / "team/workloads/train/job.py.in").read_text("utf-8").replace("@nodes@", str(nodes))
    text = text.replace('name="train"', f"name={json.dumps(name)}").replace(
        'compute="gpu"', f"compute={json.dumps(cluster)}"
    )
    code = (source / "review/review/train.py").read_text("utf-8")
    file = f"workloads/{name}/job.py"
    return Addition({file: text, f"workloads/{name}/train.py": code}, "amlstack:jobs", file, stacks)


def schedule(name: str, starts: str, cron: str, begin: str, stacks: Sequence[str]) -> Addition:
    """A schedule of a pipeline's file, or of a job that ran before."""
    file = f"workloads/{name}.yml"
    work = starts if starts.startswith("azureml:") else f"../{starts}"
    if work != starts and not (paths.PROJECT / starts).is_file():
        raise AdditionError(f"There is no file `{starts}`; a job that ran before is azureml:NAME")
    content = {"name": name, "trigger": {"type": "cron", "expression": cron, "start_time": begin}, "create_job": work}
    return Addition({file: yaml.safe_dump(content, sort_keys=False)}, "amlstack:jobs", file, stacks)


def stack(name: str, like: str, workspace: str) -> Addition:
    """A stack like another one, comments too, with a workspace of its own and none of the other's secrets."""
    if not repository.NAME.fullmatch(name):
        raise AdditionError(f"a stack's name has 2 to 32 small letters, digits and `-`, got `{name}`")
    file = paths.PROJECT / f"Pulumi.{like}.yaml"
    text = "".join(
        line
        for line in read_regular(file).decode("utf-8").splitlines(keepends=True)
        if not line.startswith(_OF_A_STACK)
    )
    if "secure:" in text:
        raise AdditionError(
            f"{file.name} has secrets, which another stack cannot decrypt: write Pulumi.{name}.yaml by hand"
        )
    node = _value(_value(yaml.compose(text, Loader=yaml.SafeLoader), "config"), "amlstack:workspace")
    node = _value(node, "name") if isinstance(getattr(node, "value", None), list) else node
    if node is None:
        raise AdditionError(f"{file.name} names no `amlstack:workspace`")
    text = text[: node.start_mark.index] + workspace + text[node.end_mark.index :]
    return Addition({f"Pulumi.{name}.yaml": text})
