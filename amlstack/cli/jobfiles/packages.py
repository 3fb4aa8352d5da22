"""Packages of a job, read as text: imports that its environment does not bring, and pins that cannot be met together.

Nothing is resolved and no index is asked: a rehearsal does that. An environment is known by its conda file, or as one
of the curated ones of which a stand-in's packages are known; of every other nothing is said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding, Level, stated
from amlstack.base.paths import is_dir, is_file
from amlstack.code_reading import code_files
from amlstack.code_reading.shell import scripts, steps

if TYPE_CHECKING:
    import jobs

_MOST_FILES: Final = 20
"""Files of the code that are looked at: a check is quick."""
_PATHS: Final = re.compile(
    r"git\+|https?://|(?:^|\s)(?:-e|--editable)\b|(?:^|[\s=])\.{1,2}(?:/|\s|$)|\.whl\b", re.MULTILINE
)
"""Requirements of which the text does not name the packages."""
_PIN: Final = re.compile(r"\s*[\"']?(?P<name>[A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*={1,3}\s*(?P<version>\d[\w.]*)(?!.*;)")
_SHARED: Final = frozenset(
    ("azure", "azureml", "google", "mpl_toolkits", "pkg_resources", "setuptools", "pip", "wheel")
)
"""Modules that several packages bring, or every environment."""
_DATA: Final = Path(__file__).parents[2] / "images" / "data"
_BESIDE_TORCH: Final = {
    "torchvision": {1: (0, 1), 2: (0, 15)},  # 0.14 beside 1.13, 0.18 beside 2.3
    "torchaudio": {1: (0, 0), 2: (2, 0)},  # 0.13 beside 1.13, 2.3 beside 2.3
}
"""The release that goes with one of PyTorch, which it pins: by torch's major, its own, and what is added to the minor.
https://github.com/pytorch/vision#installation, https://docs.pytorch.org/audio/stable/installation.html
"""


def check(place: str, part: jobs.Plan) -> Iterator[Finding]:
    """Findings on the packages of one command, which stands at a place of its file."""
    code, command, given = part.job.code, part.enriched.command, part.enriched.environment
    folder = part.base / code.path if code is not None and code.local else None
    conda = [*_conda(part)]
    groups = [
        *(("environment", lines) for lines in conda),
        *(("command", each) for each in _installed(command, folder)),
    ]
    for where, lines in groups:
        yield from _contradictions(f"{place}.{where}" if place else where, lines)
    entries = scripts(command)
    if code is None or folder is None or not entries or not is_dir(folder):
        return
    read = [*islice(code_files.files(folder, entries), _MOST_FILES)]
    if modules := [file.name for file in read if file.name not in map(os.path.normpath, entries)]:
        yield from _left_out(folder, modules)
    listed = "\n".join(line for _, lines in groups for line in lines)
    declared = _of_curated(given) if isinstance(given, str) else " ".join(line for lines in conda for line in lines)
    installs = any("pip" in file.text and re.search(r"\bpip3?\b.{0,9}\binstall\b", file.text) for file in read)
    if not declared or installs or _PATHS.search(f"{listed}\n{command}"):
        return
    texts = (declared, listed, command)
    names = frozenset[str]().union(*map(_names, texts))
    alone: set[str] = set()

    @cache  # asked for by few: most import what Python has, or a package that is declared by the same name
    def known() -> frozenset[str]:
        few = _tables()["brought_by"].items()
        alone.update(module for module, of in few if not any(name.startswith(tuple(of)) for name in names))
        along = (Path(str(name)).stem for name in (*code.includes, *part.beside))
        return (_common() - alone).union(_SHARED, along, *map(_with_modules, texts))

    def brought(module: str) -> bool:
        plain = _plain(module)
        return any(plain in name for name in names) or not known().isdisjoint((module, plain))

    whose, more = "that its conda file declares", "what the image holds is not seen in it"
    if isinstance(given, str):
        whose, more = f"known of `{given}`", "the image may hold more"
    for each in code_files.absent_imports(folder, read, brought):
        seen = f"`{each.module}` is imported, and no package {whose} is called like it"
        rule = f"A script ends at an import that neither its environment nor its code folder has; {more}"
        remedy = "Declare its package, or install it in the command (`pip install …`), unless another one brings it."
        level = Level.ERROR if _plain(each.module) in alone and not isinstance(given, str) else Level.WARNING
        found = Finding("import-not-declared", "", seen, rule, remedy, level)
        yield found.at(os.path.normpath(folder / each.path), each.line, 1)


@lru_cache(maxsize=256)  # jobs share environments, and commands
def _names(text: str) -> frozenset[str]:
    """The words of a text that may be names of packages."""
    return frozenset(_plain(word) for word in re.findall(r"[A-Za-z][\w.-]*", text))


@lru_cache(maxsize=256)
def _with_modules(text: str) -> frozenset[str]:
    """The same, with the modules that such packages bring under other names."""
    return frozenset(each for name in _names(text) for each in (name, *_modules(name)))


def _left_out(folder: Path, modules: Iterable[str]) -> Iterator[Finding]:
    """Modules of the code folder that an ignore file leaves out."""
    from amlstack.snapshot.walk import Ignore

    ignore = Ignore.read(folder.resolve())
    for name in modules if ignore.path is not None else ():
        if ignore.path is not None and ignore.excludes(name):
            found = stated("module-left-out", "", Level.WARNING, name=name, ignore=ignore)
            yield found.at(os.path.normpath(folder / name))


def _conda(part: jobs.Plan) -> Iterator[Sequence[str]]:
    """The lines that one solver gets, of the conda file of a job: those of conda, and those of pip."""
    given = getattr(part.enriched.environment, "conda_file", None)
    if not given:
        return
    file = part.base / given if isinstance(given, str) else part.base / "conda.yml"
    try:
        read = _loaded(file.read_text("utf-8-sig")) if isinstance(given, str) else given
        dependencies: list[Any] = read["dependencies"]
        of_pip = [line for each in dependencies if isinstance(each, dict) for line in each.get("pip") or ()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return  # what is wrong with the file has a finding of its own
    yield [str(each).rpartition("::")[2] for each in dependencies if not isinstance(each, dict)]
    yield [line for each in of_pip for line in _requirements(str(each), file.parent)]


@lru_cache(maxsize=64)
def _loaded(text: str) -> Any:
    """The value of a conda file, which is only read.

    Raises:
        ValueError: It is no YAML.
    """
    import yaml

    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _installed(command: str, folder: Path | None) -> Iterator[Sequence[str]]:
    """The lines of each `pip install` of a command."""
    for words in steps(command):
        if "install" in words[:4] and any(re.fullmatch(r"(?:.*/)?pip3?|uv", word) for word in words[:3]):
            rest = words[words.index("install") + 1 :]
            files = [f"-r {name}" for flag, name in pairwise(rest) if flag in {"-r", "--requirement"}]
            yield [line for each in (*rest, *files) for line in _requirements(each, folder)]


def _requirements(line: str, folder: Path | None, depth: int = 0) -> list[str]:
    """A requirement, or those of the file that it names; an address for a file that is not here: nothing is known."""
    found = re.match(r"\s*(?:-r|--requirement)[\s=]+(?P<file>\S+)", line)
    if found is None:
        return [re.sub(r"(^|\s)#.*", "", line)]
    if folder is None or depth or not is_file(folder / found["file"]):
        return ["git+unknown"]
    path = folder / found["file"]
    lines = path.read_text("utf-8-sig", errors="replace").splitlines()
    return [line for each in lines for line in _requirements(each, path.parent, 1)]


def _contradictions(where: str, lines: Iterable[str]) -> Iterator[Finding]:
    """Pins of one solver that exclude each other."""
    pins: dict[str, str] = {}
    wrong: list[tuple[str, str]] = []
    for found in filter(None, map(_PIN.match, lines)):
        name, version = found["name"].lower().replace("_", "-"), found["version"]
        first = pins.setdefault("torch" if name == "pytorch" else name, version)
        # Conda's `1.2` is any 1.2.
        one, other = (re.sub(r"(\.0)+$|\.\*$", "", each) + "." for each in (first, version))
        if not (one.startswith(other) or other.startswith(one)):
            wrong.append((f"`{name}` is pinned to {first} and to {version}", "Keep one of the two."))
    torch = re.match(r"([12])\.(\d+)", pins.get("torch", ""))
    for name, bases in _BESIDE_TORCH.items():
        major, added = bases[int(torch[1])] if torch else (0, 0)
        right = f"{major}.{int(torch[2]) + added}" if torch else pins.get(name, "")
        if name in pins and "." in pins[name] and not f"{pins[name]}.".startswith(f"{right}."):
            seen = f"`{name}` {pins[name]} is pinned beside `torch` {pins['torch']}"
            wrong.append((seen, f"With that torch goes {name} {right}."))
    for seen, remedy in wrong:
        yield Finding("pins-conflict", where, seen, "No set of packages meets both, and the installation ends", remedy)


def _of_curated(reference: str) -> str:
    """The text that names the packages known of a curated environment; empty where nothing is known."""
    from amlstack.catalog import environments

    known = environments.curated(reference) or environments.get(reference)
    return "" if known is None else _listed(known.framework)


@cache
def _listed(framework: str) -> str:
    files = [_DATA / f"{framework}.{suffix}" for suffix in ("toml", "txt")]
    return "\n".join(re.sub(r"#.*", "", file.read_text("utf-8")) for file in files if is_file(file))


@cache
def _common() -> frozenset[str]:
    """Modules of packages that others often bring along: those of all lists of stand-ins."""
    names = [each.partition("==")[0] for file in _DATA.glob("*.txt") for each in file.read_text("utf-8").splitlines()]
    return frozenset(each for name in map(_plain, names) for each in (name, *_modules(name)))


def _modules(name: str) -> Sequence[str]:
    """The modules that a package brings under another name than its own."""
    return _table().get(_plain(name), ())


@cache
def _tables() -> dict[str, Any]:
    import tomllib

    return tomllib.loads((_DATA.parent / "packages.toml").read_text("utf-8"))


@cache
def _table() -> dict[str, tuple[str, ...]]:
    table = _tables()
    modules = {_plain(name): (_plain(module.partition(".")[0]),) for name, module in table["modules"].items()}
    others = {_plain(name): _plain(other) for name, other in (table["conda"] | table["pip"]).items()}
    return modules | {name: (other, *modules.get(other, ())) for name, other in others.items()}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
