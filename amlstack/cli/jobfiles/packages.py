"""Packages of a job, read as text: imports that its environment does not bring, and pins that cannot be met together.

Nothing is resolved and no index is asked: a rehearsal does that. An environment is known by its conda file, or as one
of the curated ones of which a stand-in's packages are known; of every other nothing is said.
"""

from __future__ import annotations

import os
import re
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding, Level
from amlstack.base.paths import is_dir, is_file
from amlstack.code_reading import code_files
from amlstack.code_reading.shell import scripts, steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import jobs

_MOST_FILES: Final = 20
"""Files of the code that are looked at: a check is quick."""
_PATHS: Final = re.compile(
    r"git\+|https?://|(?:^|\s)(?:-e|--editable)\b|(?:^|[\s=])\.{1,2}(?:/|\s|$)|\.whl\b", re.MULTILINE
)
"""Requirements of which the text does not name the packages."""
_PIN: Final = re.compile(r"^\s*[\"']?(?P<name>[A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*={1,3}\s*(?P<version>\d[\w.]*)(?!.*;)")
_SHARED: Final = frozenset(
    ("azure", "azureml", "google", "mpl_toolkits", "pkg_resources", "setuptools", "pip", "wheel")
)
"""Modules that several packages bring, or every environment."""
_DATA: Final = Path(__file__).parents[2] / "images" / "data"
# Which release of torchvision and torchaudio goes with which of PyTorch; each pins its PyTorch exactly.
# https://github.com/pytorch/vision#installation, https://docs.pytorch.org/audio/stable/installation.html
_BESIDE_TORCH: Final = {"torchvision": {1: (0, 1), 2: (0, 15)}, "torchaudio": {1: (0, 0), 2: (2, 0)}}


def check(place: str, part: jobs.Plan) -> Iterator[Finding]:
    """Findings on the packages of one command, which stands at a place of its file."""
    code = part.job.code
    folder = part.base / code.path if code is not None and code.local else None
    groups = [*_conda(part), *_installed_by(part.enriched.command, folder)]
    for where, lines in groups:
        yield from _contradictions(f"{place}.{where}" if place else where, lines)
    entries = scripts(part.enriched.command)
    if code is None or folder is None or not entries or not is_dir(folder):
        return
    yield from _left_out(folder, entries)
    declared = _declared(part)
    text = "\n".join([declared or "", part.enriched.command, *(line for _, lines in groups for line in lines)])
    if declared is None or _PATHS.search(text):
        return
    names = {_plain(word) for word in re.findall(r"[A-Za-z][\w.-]*", text)}
    names |= {_plain(module) for name in names for module in _modules(name)}
    for file in islice(code_files.files(folder, entries), _MOST_FILES):
        if "pip" in file.text and re.search(r"\bpip3?\b.{0,9}\binstall\b", file.text):
            return
    beside = {Path(str(name)).stem for name in (*code.includes, *part.beside)}
    known = names | _SHARED | _common() | beside
    for each in code_files.absent_imports(folder, entries, known, _MOST_FILES):
        plain = _plain(each.module)
        if plain not in known and not any(plain in name for name in names):
            yield _absent(folder, each, part)


def _absent(folder: Path, each: code_files.Import, part: jobs.Plan) -> Finding:
    given = part.enriched.environment
    whose = f"known of `{given}`" if isinstance(given, str) else "that its conda file declares"
    more = "the image may hold more" if isinstance(given, str) else "what the image holds is not seen in it"
    return Finding(
        "import-not-declared",
        "",
        f"`{each.module}` is imported, and no package {whose} is called like it",
        f"A script ends at an import that neither its environment nor its code folder has; {more}",
        "Declare its package, or install it in the command (`pip install PACKAGE && …`), unless another one brings it.",
        Level.WARNING,
        file=os.path.normpath(folder / each.path),
        line=each.line,
        column=1,
    )


def _left_out(folder: Path, entries: Sequence[str]) -> Iterator[Finding]:
    """Modules of the code folder that an ignore file leaves out."""
    from amlstack.snapshot.ignore import Ignore

    ignore = Ignore.read(folder.resolve())
    if ignore.path is None:
        return
    for file in islice(code_files.files(folder, entries), _MOST_FILES):
        if file.name not in {entry.removeprefix("./") for entry in entries} and ignore.excludes(file.name):
            yield Finding(
                "module-left-out",
                "",
                f"`{file.name}` is imported, and `{ignore.path.name}` leaves it out of the upload",
                "A command runs in a copy of the code folder, without what the ignore file lists",
                f"Write `!{file.name}` at the end of `{ignore.path.name}`.",
                Level.WARNING,
                file=os.path.normpath(folder / file.name),
            )


def _conda(part: jobs.Plan) -> Iterator[tuple[str, Sequence[str]]]:
    """The lines that one solver gets, of the conda file of a job: those of conda, and those of pip."""
    environment = part.enriched.environment
    given = getattr(environment, "conda_file", None)
    if not given:
        return
    import yaml

    try:
        read = yaml.safe_load((part.base / given).read_text("utf-8-sig")) if isinstance(given, str) else given
        dependencies: list[Any] = read["dependencies"]
        of_pip = [line for each in dependencies if isinstance(each, dict) for line in each.get("pip") or ()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError):
        return  # a file that is none is a finding elsewhere
    yield "environment", [str(each).rpartition("::")[2] for each in dependencies if not isinstance(each, dict)]
    beside = (part.base / given).parent if isinstance(given, str) else part.base
    yield "environment", [line for each in of_pip for line in _requirements(str(each), beside)]


def _installed_by(command: str, folder: Path | None) -> Iterator[tuple[str, Sequence[str]]]:
    """The lines of each `pip install` of a command."""
    for words in steps(command):
        if "install" in words[:4] and any(re.fullmatch(r"(?:.*/)?pip3?|uv", word) for word in words[:3]):
            rest = words[words.index("install") + 1 :]
            files = [f"-r {name}" for flag, name in pairwise(rest) if flag in {"-r", "--requirement"}]
            yield "command", [line for each in (*rest, *files) for line in _requirements(each, folder)]


def _requirements(line: str, folder: Path | None, depth: int = 0) -> list[str]:
    """A requirement, or those of the file that it names."""
    found = re.match(r"\s*(?:-r|--requirement)[\s=]+(?P<file>\S+)", line)
    if found is None:
        return [line.partition(" #")[0]]
    path = (folder or Path()) / found["file"]
    if folder is None or depth or not is_file(path):
        return ["git+unknown"]
    lines = path.read_text("utf-8-sig", errors="replace").splitlines()
    return [line for each in lines if not each.lstrip().startswith("#") for line in _requirements(each, path.parent, 1)]


def _contradictions(where: str, lines: Iterable[str]) -> Iterator[Finding]:
    """Pins of one solver that exclude each other."""
    pins: dict[str, str] = {}
    for found in filter(None, map(_PIN.match, lines)):
        name, version = found["name"].lower().replace("_", "-"), found["version"]
        name = "torch" if name == "pytorch" else name
        if not _same(pins.setdefault(name, version), version):
            yield _conflict(where, f"`{name}` is pinned to {pins[name]} and to {version}", "Keep one of the two.")
    torch = _release(pins.get("torch", ""))
    for name, bases in _BESIDE_TORCH.items():
        if name in pins and torch and torch[0] in bases and _release(pins[name]):
            major, offset = bases[torch[0]]
            right = (major, torch[1] + offset) if name == "torchvision" or torch[0] > 1 else (0, torch[1])
            if _release(pins[name]) != right:
                seen = f"`{name}` {pins[name]} is pinned beside `torch` {pins['torch']}"
                yield _conflict(where, seen, f"With that torch goes {name} {right[0]}.{right[1]}.")


def _conflict(where: str, seen: str, remedy: str) -> Finding:
    return Finding("pins-conflict", where, seen, "No set of packages meets both, and the installation ends", remedy)


def _release(version: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def _same(one: str, other: str) -> bool:
    """True where two versions may be one: conda's `1.2` is any 1.2."""
    first, second = (re.sub(r"(\.0)+$|\.\*$", "", each) + "." for each in (one, other))
    return first.startswith(second) or second.startswith(first)


def _declared(part: jobs.Plan) -> str | None:
    """The text that names the packages of an environment; None where nothing is known."""
    from amlstack.catalog import environments

    given = part.enriched.environment
    if not isinstance(given, str):
        return "\n".join(line for _, lines in _conda(part) for line in lines) or None
    known = environments.curated(given) or environments.get(given)
    return None if known is None else _listed(known.framework)


@cache
def _listed(framework: str) -> str | None:
    files = [_DATA / f"{framework}.{suffix}" for suffix in ("toml", "txt")]
    texts = [re.sub(r"#.*", "", file.read_text("utf-8")) for file in files if is_file(file)]
    return "\n".join(texts) if len(texts) == len(files) else None


@cache
def _common() -> frozenset[str]:
    """Modules of packages that others often bring along: those of all lists of stand-ins."""
    names = [each.partition("==")[0] for file in _DATA.glob("*.txt") for each in file.read_text("utf-8").splitlines()]
    return frozenset(_plain(module) for name in names for module in (name, *_modules(name)))


def _modules(name: str) -> Sequence[str]:
    """The modules that a package brings under another name than its own."""
    return _table().get(name.lower().replace("_", "-"), ())


@cache
def _table() -> dict[str, tuple[str, ...]]:
    import tomllib

    table = tomllib.loads((_DATA.parent / "packages.toml").read_text("utf-8"))
    return {name: (module.partition(".")[0],) for name, module in table["modules"].items()} | {
        name: (other, *([table["modules"][other]] if other in table["modules"] else []))
        for name, other in (table["conda"] | table["pip"]).items()
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
