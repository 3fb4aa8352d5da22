"""Files that a run executes: a code folder without job files, and without files that tools leave there."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from amlstack.snapshot import remembered
from amlstack.snapshot.content import HEAD, compact

if TYPE_CHECKING:
    from amlstack.snapshot.folder import Snapshot
    from amlstack.snapshot.walk import File

_FOLDERS: Final = frozenset(
    (
        *("__pycache__", ".git", ".hg", ".svn", ".vscode", ".idea", ".vs", ".ipynb_checkpoints"),
        *(".pytest_cache", ".mypy_cache", ".ruff_cache", ".pytype", ".hypothesis", ".tox", ".nox", ".eggs"),
        *(".pulumi", ".amlstack"),
    )
)
"""Folders by name, at any depth: compiled modules, version control, editors, and caches of tools that run no code."""

_FILES: Final = re.compile(
    r"""  \.DS_Store | \._.+ | \.AppleDouble | Thumbs\.db | ehthumbs\.db | desktop\.ini   # of operating systems
        | \..+\.sw[a-p] | .+~ | \.\#.+ | \#.+\# | \.nfs[0-9a-f]+                        # swap and backup files
        | \.git | \.gitignore | \.gitattributes | \.gitmodules | \.amlignore            # what git and an upload look at
        | \.coverage
    """,
    re.VERBOSE | re.DOTALL,
)
"""Files by name, at any depth."""

_SETTINGS: Final = re.compile(r"Pulumi(?:\.[^/]+)?\.ya?ml")
"""The settings of stacks, on top of a folder."""

_OF_RUNS: Final = frozenset(["outputs", "logs", "user_logs", "azureml-logs", "mlruns", "wandb", "lightning_logs"])
"""Folders on top that a run writes: Azure ML's own (outputs, logs), and those that trackers make by themselves."""


def litter(paths: Iterable[str]) -> frozenset[str]:
    """Those of the files of a snapshot that are no part of what a run does.

    A ``.pyc`` outside of ``__pycache__`` counts where the ``.py`` of its name is missing: then it is the module. A
    folder of a former run counts when it holds a module that Python could import: then it is a package.

    Args:
        paths: All files of the snapshot, relative, with ``/``.
    """
    names = frozenset(paths)
    packages = {name.partition("/")[0] for name in names if _is_module(name)}
    return frozenset(name for name in names if _is_litter(name, names, packages))


def _is_litter(name: str, names: frozenset[str], packages: set[str]) -> bool:
    *folders, last = name.split("/")
    if not _FOLDERS.isdisjoint(folders) or _FILES.fullmatch(last):
        return True
    if last.endswith((".pyc", ".pyo")):
        return f"{name[:-1]}" in names
    if not folders:
        return _SETTINGS.fullmatch(last) is not None
    return folders[0] in _OF_RUNS and folders[0] not in packages


def _is_module(name: str) -> bool:
    """True where it can be imported from the top of the folder: all folders on the way have names valid in Python."""
    *folders, last = name.split("/")
    return last.endswith((".py", ".so")) and bool(folders) and all(each.isidentifier() for each in folders)


_DECLARES: Final = re.compile(rb"^jobs?[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
_OUR_WORDS: Final = re.compile(rb"^(?:from[ \t]+jobs(?:\.\w+)*[ \t]+import\b|import[ \t]+jobs\b)", re.MULTILINE)
_SCHEMA: Final = re.compile(rb"^[\"']?\$schema[\"']?[ \t]*:.*azureml", re.MULTILINE)
_KEY: Final = re.compile(rb"^[\"']?(\w+)[\"']?[ \t]*:", re.MULTILINE)
_OF_AZURE_ML: Final[tuple[frozenset[bytes], ...]] = (
    frozenset({b"command", b"environment"}),
    frozenset({b"trial", b"search_space"}),
    frozenset({b"type", b"jobs"}),
    frozenset({b"create_job", b"trigger"}),
)
"""Top-level keys by which a file is a job, a component, a sweep, a pipeline or a schedule of Azure ML."""
_SCRIPTS: Final = (".sh", ".bash", ".zsh", ".ksh")
_IMPORTERS: Final = frozenset({"import_module", "__import__", "run_module", "run_path", "find_spec"})


def declarations(found: Snapshot, own: Collection[Path], commands: Sequence[str], left: Collection[str]) -> set[str]:
    """The job files in a folder that nothing which runs makes use of.

    A file is one by what it holds, whichever stack names it, so that a run stays the same when the stack gets or loses
    another job; the job's own file is one whatever it holds. It is used, and counts as code, when a command or a shell
    script names it, or when a Python file imports it or has its name in a text.

    Args:
        found: The folder.
        own: The job's own file and those it was read from.
        commands: What runs.
        left: Files that do not count anyway.
    """
    files = [file for file in found.files if file.relative not in left]
    places = {str(path.resolve()) for path in own}
    declaring = {file.relative for file in files_declaring(files)}
    unused = {file.relative: file for file in files if file.place in places or file.relative in declaring}
    running = [file for file in files if file.relative not in unused]
    used = {name for name in unused if any(_names(command, name) for command in commands)}
    while unused:
        running += [unused.pop(name) for name in used]
        used = _used(running, unused)
        if not used:
            break
        running = []  # what these use is known; what the used ones use comes next
    return set(unused)


def files_declaring(files: Sequence[File]) -> Iterator[File]:
    """Those of a folder's files that are job files by what they hold."""
    theirs = any(file.relative == "jobs.py" or file.relative.startswith("jobs/") for file in files)
    return (file for file in files if _declares(file, theirs=theirs))


def _declares(file: File, *, theirs: bool) -> bool:
    suffix = _suffix(file.relative)
    if suffix == ".py":
        # A folder with a module `jobs` of its own means that one. Nearly no file has the word: it is looked for first.
        content = b"" if theirs else _content(file)
        return b"jobs" in content and bool(_DECLARES.search(content) and _OUR_WORDS.search(content))
    if suffix in (".yml", ".yaml"):
        content = _content(file)
        if _SCHEMA.search(content):
            return True
        keys = frozenset(_KEY.findall(content))
        return any(marks <= keys for marks in _OF_AZURE_ML)
    return False


def _used(running: Sequence[File], candidates: Collection[str]) -> set[str]:
    """Those of the candidates that one of these files imports or names."""
    used: set[str] = set()
    stems = {name: PurePosixPath(name).stem.encode() for name in candidates}
    for file in running:
        suffix = _suffix(file.relative)
        if suffix not in (".py", "", *_SCRIPTS):
            continue
        content = _content(file)
        named = [name for name, stem in stems.items() if stem in content and name not in used]
        if not named:
            continue
        uses = _of_python(content) if suffix == ".py" else _of_script(content, suffix)
        used |= {name for name in named if uses(name)}
    return used


def _of_script(content: bytes, suffix: str) -> Callable[[str], bool]:
    if not suffix and not content.startswith(b"#!"):
        return lambda _: False
    text = content.decode(errors="replace")
    return lambda name: _names(text, name)


def _of_python(content: bytes) -> Callable[[str], bool]:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        text = content.decode(errors="replace")
        return lambda name: re.search(rf"\b{re.escape(PurePosixPath(name).stem)}\b", text) is not None
    modules, texts = set(_imported(tree)), list(_texts(tree))
    return lambda name: PurePosixPath(name).stem in modules or any(_names(text, name) for text in texts)


def _imported(tree: ast.Module) -> Iterator[str]:
    """Last parts of all names that could be modules which it imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name.rpartition(".")[2] for each in names)
            case ast.ImportFrom(module=module, names=names):
                yield (module or "").rpartition(".")[2]
                yield from (each.name for each in names)
            case ast.Call(
                func=ast.Name(id=called) | ast.Attribute(attr=called), args=[ast.Constant(value=str(name)), *_]
            ) if called in _IMPORTERS:
                yield name.rpartition(".")[2]


def _texts(tree: ast.Module) -> Iterator[str]:
    """Its texts, those left out that stand by themselves: documentation."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def _names(text: str, relative: str) -> bool:
    """True where a command or a text names a file: ``job.py``, ``sub/job.py`` or ``-m sub.job``."""
    path = PurePosixPath(relative)
    if re.search(rf"(?<![\w.-]){re.escape(path.name)}(?![\w-])", text):
        return True
    return path.suffix == ".py" and re.search(rf"-m\s+(?:\w+\.)*{re.escape(path.stem)}(?![\w-])", text) is not None


def _suffix(relative: str) -> str:
    """As of a path, in lower case."""
    stem, dot, ending = relative[relative.rfind("/") + 1 :].rpartition(".")
    return f"{dot}{ending}".lower() if stem and ending else ""


def _content(file: File) -> bytes:
    try:
        with file.open() as stream:
            return stream.read(min(HEAD, file.size + 1))
    except OSError:
        return b""


@dataclass(frozen=True, slots=True)
class OwnCode:
    """The code of a run, for its identity.

    Attributes:
        hash: Of the files that count, 64 hex digits; empty without code, or where it cannot be read.
        files: The files that count with digests, as `compact` lists them: for naming what changed.
    """

    hash: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def own_code(found: Snapshot, *, declared_in: Collection[Path] = (), commands: Sequence[str] = ()) -> OwnCode:
    """The part of a scanned folder that counts for the identity of the run that it is the code of.

    Args:
        found: The folder; what travels beside it never counts.
        declared_in: The job's own file.
        commands: What the run executes: a job file that they name is code.
    """
    if not found.hash:
        return OwnCode()
    kept = remembered.keeper(found.root) if remembered.is_large(found.files) else None
    if kept is None:
        return _own_code(found, declared_in, commands)
    declared = [str(path.resolve()) for path in declared_in]
    places = sorted(file.relative for file in found.files if file.place in declared)
    key = f"own {found.key} {json.dumps([places, list(commands)])}"
    if (known := kept.read(key)) is not None:
        return OwnCode(known[0], known[1])
    own = _own_code(found, declared_in, commands)
    if remembered.is_steady(found.files):
        kept.write(key, [own.hash, own.files])
    return own


def has_job_files(found: Snapshot) -> bool:
    """True where job files lie in a folder; without one, what counts of it is the same for all outside runs."""
    left = litter(found.own_digests)
    return any(files_declaring([file for file in found.files if file.relative not in left]))


def _own_code(found: Snapshot, declared_in: Collection[Path], commands: Sequence[str]) -> OwnCode:
    digests = found.own_digests
    left = litter(digests)
    left |= declarations(found, declared_in, commands, left)
    digests = {path: digest for path, digest in digests.items() if path not in left}
    # Of names and contents; where nothing is left that counts, still a hash.
    whole = hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest()
    return OwnCode(whole, compact(digests))


def together(codes: Mapping[str, OwnCode]) -> OwnCode:
    """The code of a run of several parts, by their places; parts with the same files are listed once."""
    if not codes:
        return OwnCode()
    hashes = {place: code.hash for place, code in codes.items()}
    first: dict[str, str] = {}
    for place, digest in sorted(hashes.items()):
        first.setdefault(digest, place)
    several = len(first) > 1
    files = {
        f"{place.removeprefix('jobs.')}/{name.removeprefix('./')}" if several else name: digest
        for place in first.values()
        for name, digest in codes[place].files.items()
    }
    return OwnCode(hashlib.sha256(repr(sorted(hashes.items())).encode()).hexdigest(), compact(files))
