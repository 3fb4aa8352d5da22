"""From files of SDK v1 to those of v2: programs, notebooks and `.runconfig` files in, job files and patches out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from amlstack.base.text import snake
from amlstack.code_reading.code_files import text_of, tree_of
from amlstack.migrate.commands import names_of_v1
from amlstack.migrate.constructs import constructs
from amlstack.migrate.data import free, shown
from amlstack.migrate.pipelines import Writer
from amlstack.migrate.report import Item, noted
from amlstack.migrate.scopes import Followed, Shared
from amlstack.migrate.settings import settings_of
from amlstack.migrate.training_code import difference, patched
from amlstack.migrate.values import MARK, Made

SUFFIXES: Final = (".py", ".ipynb", ".runconfig")
_LEFT_OUT: Final = frozenset(("node_modules", "site-packages", "__pycache__", "venv"))
_MAGIC: Final = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)
SETTINGS: Final = "Pulumi.migrated.yaml"


@dataclass
class Migration:
    """The result for some files.

    Attributes:
        files: The new files by their path in the output folder.
        items: What became of each construct.
        patches: New text of training code by its path.
        read: The files that name SDK v1.
        modules: The modules that programs share.
    """

    files: dict[str, str] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    patches: dict[Path, str] = field(default_factory=dict)
    read: int = 0
    modules: Shared = field(default_factory=lambda: Shared({}, {}))


def sources(paths: Iterable[Path], out: Path) -> Iterator[Path]:
    """The files to read: those named, and all in folders that are named."""
    for path in paths:
        if path.is_file():
            yield path
            continue
        for root, folders, names in os.walk(path):
            here = Path(root)
            kept = (name for name in folders if name == ".azureml" or not name.startswith("."))
            folders[:] = sorted(name for name in kept if name not in _LEFT_OUT and here / name != out)
            yield from (here / name for name in sorted(names) if name.endswith(SUFFIXES))


def migrate(paths: Sequence[Path], out: Path) -> Migration:
    """Migrate files and folders.

    Args:
        paths: They themselves.
        out: The folder of the new files, which job files name their code from.
    """
    found, made = Migration(), list[Made]()
    roots = [path if path.is_dir() else path.parent for path in paths]
    notes = Writer(out / SETTINGS, roots, out)
    for path in dict.fromkeys(sources(paths, out)):
        text = text_of(path)
        if text is None or not (path.suffix == ".runconfig" or "azureml" in text or "AZ_BATCH" in text):
            continue
        root = next((each for each in roots if path.is_relative_to(each)), path.parent)
        made += _one(path, root, text, found, Writer(path, roots, out))
    if settings := settings_of(made, notes.told):
        found.files[SETTINGS] = _dumped(settings, "Clusters and workspace of programs of SDK v1.", found)
    found.items += notes.items
    return found


def _one(path: Path, root: Path, text: str, found: Migration, writer: Writer) -> list[Made]:
    """One file."""
    label = path.relative_to(root).as_posix()
    if path.suffix == ".runconfig":
        made = _of_runconfig(path, label, text)
    else:
        notebook = path.suffix == ".ipynb"
        cells = [*_cells(label, text)] if notebook else [(label, text)]
        read = {part: tree_of(code) for part, code in cells if not code.startswith("%%")} or {label: None}
        found.items += (noted(part, 0, "file" if part == label else "cell") for part, tree in read.items() if not tree)
        program = Followed(root, found.modules)
        program.follow([(part, tree) for part, tree in read.items() if tree], path)
        made = program.made
        found.items += (noted(file, line, "not-in-the-table", name=name) for name, file, line in program.foreign)
        for part, code in _written(cells) if notebook else cells:
            lines = code.splitlines()
            found.items += (noted(part, line, note, **values) for line, note, values in names_of_v1(lines))
            result = patched(code, part)
            found.items += result.items
            if result.text != code and not notebook:
                found.patches[path] = result.text
                found.files[f"{label.replace('/', '__')}.patch"] = difference(text, result.text, label)
        if any(each.kind in _SUBMITTED for each in made):
            assumed = program.assumed.items()
            found.items += (noted(file, line, "a default", what=what) for (file, line), what in assumed)
    found.read += bool(made)
    for each in made:
        row = constructs().get(each.fields.get("_row") or each.kind)
        if row is not None and "_elsewhere" not in each.fields:
            found.items.append(Item(each.file, each.line, row.name, row.state, row.becomes, row.how))
    for document in writer.documents(made):
        name = document.name = free(document.stem, found.files, "{}.yml")
        head = f"From {document.file}, line {document.line}." if document.line else f"From {document.file}."
        found.files[name] = _dumped(document.content, head, found)
    found.items += writer.items
    return made


_SUBMITTED: Final = frozenset(("ScriptRunConfig", "Estimator", "PyTorch", "TensorFlow", "Pipeline", "HyperDriveConfig"))


def _dumped(content: dict[str, Any], head: str, found: Migration) -> str:
    """A file's text; each placeholder in it is an open question."""
    text = yaml.safe_dump(shown(content), sort_keys=False, width=110, allow_unicode=True)
    known, marks = {*found.items}, MARK.finditer(text.replace("\n", " "))
    items = (noted(mark["file"], int(mark["line"]), "unread", what=mark["what"]) for mark in marks)
    found.items += [item for item in dict.fromkeys(items) if item not in known]
    return f"# {head}\n{text}"


def _cells(label: str, text: str) -> Iterator[tuple[str, str]]:
    """The code cells of a notebook, each with its number among all cells; lines that are no Python do nothing."""
    try:
        cells = json.loads(text)["cells"]
        for number, cell in enumerate(cells, 1):
            if cell.get("cell_type") == "code":
                source = cell.get("source", "")
                code = source if isinstance(source, str) else "".join(source)
                other = code.lstrip().startswith("%%")
                yield f"{label}[{number}]", code.lstrip() if other else _MAGIC.sub(r"\1pass", code)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return


def _written(cells: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The cells that a notebook writes into files."""
    for name, cell in cells:
        first, _, rest = cell.partition("\n")
        if first.startswith("%%writefile") and first.rstrip().endswith(".py"):
            yield name, f"\n{rest}"


def _of_runconfig(path: Path, label: str, text: str) -> list[Made]:
    """A `.runconfig` file: the same names as in a program, in camel case."""
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not {"script", "command", "target"} & content.keys():
        return []
    made = _made(".runconfig", content, label)
    folder = path.parent.parent if path.parent.name == ".azureml" else path.parent
    made.fields |= {"source_directory": folder.as_posix(), "_row": ".runconfig"}
    environment = made.part("environment")
    environment.kind = "Environment"
    python = environment.part("python")
    if isinstance(dependencies := python.get("conda_dependencies"), dict):
        python.fields["conda_dependencies"] = _conda(dependencies, label)
    return [made]


def _made(kind: str, content: dict[Any, Any], label: str) -> Made:
    fields: dict[str, Any] = {}
    for key, value in content.items():
        name = snake(str(key))
        keep = name in ("environment_variables", "conda_dependencies")
        fields[name] = _made(name, value, label) if isinstance(value, dict) and not keep else value
    return Made(kind, {key: value for key, value in fields.items() if value not in ("", [])}, label, 0)


def _conda(content: dict[str, Any], label: str) -> Made:
    listed = content.get("dependencies") or []
    pip = next((each["pip"] for each in listed if isinstance(each, dict) and "pip" in each), None)
    names = [each for each in listed if isinstance(each, str)]
    python = next((each.partition("=")[2].strip("=") for each in names if each.startswith("python=")), None)
    channels = tuple(("add_channel", {0: each}) for each in content.get("channels") or [])
    fields = {"conda_packages": names, "pip_packages": pip, "python_version": python, "_calls": channels}
    return Made("CondaDependencies", fields, label, 0)
