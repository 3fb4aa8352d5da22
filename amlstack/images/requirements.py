"""Packages that an environment declares: lines of pip, by file or by command, and conda files.

All become pip's requirements (https://pip.pypa.io/en/stable/reference/requirements-file-format/), under PyPI's
names and without what a machine without GPUs cannot have. Azure ML makes a new conda environment from a conda file, in
which the image's own Python packages are not seen: the file alone counts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name

from amlstack.base.paths import is_dir, is_file
from amlstack.code_reading.shell import split_words
from amlstack.images.standins import Absent

_TABLES: Final = tomllib.loads(Path(__file__).with_name("packages.toml").read_text(encoding="utf-8"))
CONDA: Final[dict[str, str]] = _TABLES["conda"]
PIP: Final[dict[str, str]] = _TABLES["pip"]
LEFT_OUT: Final = frozenset(_TABLES["left_out"])
_FIRST_ON_CPU: Final[dict[str, str]] = _TABLES["first_on_cpu"]
_NEEDS_GPU: Final[dict[str, list[str]]] = _TABLES["needs_gpu"]
_NOT_PUBLIC: Final[dict[str, list[str]]] = _TABLES["not_public"]
_REPOSITORIES: Final[dict[str, str]] = _TABLES["repositories"]
_MODULES: Final[dict[str, str]] = _TABLES["modules"]
NO_PYTHON = re.compile(
    r"^(r-.*|bioconductor-.*|_.*|lib(?!cst|rosa|sass|tmux|clang$|usb1).*|gcc_.*|gxx_.*|openjdk|nodejs|r)$"
)
"""Conda packages that have no twin on PyPI by their kind."""
_GITHUB = re.compile(r"github\.com[/:](?P<repository>[\w.-]+/[\w.-]+?)(?:\.git)?(?:[@#/].*)?$", re.IGNORECASE)


def why_absent(name: str) -> str | None:
    """The reason why no stand-in can have a package, by its canonical name; None for one that may be had."""
    if name in _NEEDS_GPU or name.startswith(("nvidia-dali", "cupy-cuda")):
        return "it is compiled against CUDA"
    if name in _NOT_PUBLIC:
        return "it is part of Azure ML's images and on no public index"
    return None


def modules(name: str) -> tuple[str, ...]:
    """The modules that a package brings, as far as its name tells."""
    known = _NEEDS_GPU.get(name) or _NOT_PUBLIC.get(name)
    if known is not None:
        return tuple(known)
    return (_MODULES.get(name, name.replace("-", "_")),)


def package_of(module: str) -> str:
    """The package that brings a module, by the top of its name; the same name where none is known."""
    found = (
        package
        for package, brought in _MODULES.items()
        if f"{brought}.".startswith(f"{module}.") and not package.endswith("-cpu")
    )
    return next(found, module.replace("_", "-"))


def on_cpu(name: str, rule: str) -> str | None:
    """The release to install for an exact version that no CPU can run; None where the version may stay."""
    first = _FIRST_ON_CPU.get(name)
    exact = re.fullmatch(r"===?\s*(\d+(?:\.\d+)*)", rule)
    if first is None or exact is None:
        return None
    asked, needed = ([int(part) for part in text.split(".")] for text in (exact[1], first))
    return first if asked < needed else None


def without_cuda(extras: str) -> str:
    """A requirement's extras, ``[a,b]``, without those that bring CUDA's libraries."""
    kept = [each.strip() for each in extras.strip("[] ").split(",") if each.strip() and "cuda" not in each.lower()]
    return f"[{','.join(kept)}]" if kept else ""


def release_of(address: str) -> str | None:
    """The package that a well-known repository releases on PyPI; None for any other address."""
    found = _GITHUB.search(address)
    return _REPOSITORIES.get(found["repository"].lower()) if found is not None else None


NAME = re.compile(
    r"^\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?P<extras>\[[^\]]*\])?\s*(?P<rule>[^;]*)(?P<marker>;.*)?$"
)
_COMMENT = re.compile(r"(^|\s)#.*$")
_LOCAL_VERSION = re.compile(r"(?<=\d)\+[A-Za-z0-9.]+")
_URL = re.compile(r"^(?:(?:git|hg|svn|bzr)\+)?(?:https?|ssh|file|git)://", re.IGNORECASE)
_HASH = re.compile(r"\s--hash[= ]\S+")
_PYTORCH_INDEX = re.compile(r"//download\.pytorch\.org/|//[^/]*nvidia\.com/|//pypi\.ngc\.", re.IGNORECASE)

INDEXES = ("--index-url", "-i", "--extra-index-url", "--find-links", "-f")
_FILES = ("-r", "--requirement", "-c", "--constraint")
_EDITABLE = ("-e", "--editable")
_WITH_VALUE = frozenset(
    {
        *("--no-binary", "--only-binary", "--trusted-host", "--target", "-t", "--prefix", "--root", "--cache-dir"),
        *("--timeout", "--retries", "--proxy", "--cert", "--client-cert", "--log", "--global-option", "--src"),
        *("--build-option", "--config-settings", "-C", "--python-version", "--platform", "--upgrade-strategy"),
        *("--python", "--progress-bar", "--use-feature", "--exists-action", "--root-user-action", "--implementation"),
        *("--abi", "--report"),
    }
)


@dataclass(slots=True)
class PipLines:
    """The result of reading lines of requirements.

    Attributes:
        requirements: As uv takes them, in the order in which they were written.
        constraints: Lines of constraints files.
        options: Indexes and other options that uv takes under pip's names.
        absent: What no stand-in can have.
        notes: What was read otherwise than it was written.
        files: Files and folders of this machine that a requirement names: their content belongs to the key.
        raised: Packages with the version that was declared, where a CPU needs a later one.
    """

    requirements: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    raised: dict[str, str] = field(default_factory=dict)

    def add(self, other: PipLines) -> None:
        """Takes over what others gave."""
        for name in ("requirements", "constraints", "options", "absent", "notes", "files"):
            getattr(self, name).extend(getattr(other, name))
        self.raised |= other.raised

    def read(self, text: str, folder: Path | None, seen: tuple[Path, ...] = ()) -> None:
        """Takes over a requirements file.

        Args:
            text: Its content.
            folder: Where paths in it start from; None: it names no files.
            seen: The files that led to it.
        """
        for raw in text.replace("\\\n", " ").splitlines():
            line = _HASH.sub("", _COMMENT.sub("", raw)).strip()
            if not line:
                continue
            if line.startswith("-"):
                option = line.replace("=", " ", 1) if line.startswith("--") else line
                self.words(split_words(option) or option.split(), _in(folder), seen)
            else:
                self.one(line, _in(folder))

    def words(self, words: Sequence[str], find: Callable[[str], Path | None], seen: tuple[Path, ...] = ()) -> None:
        """Takes over the words after ``pip install``.

        Args:
            words: Without quotes.
            find: The file of this machine that a path means; None for one that is not there.
            seen: The files that led here.
        """
        rest = iter(words)
        for word in rest:
            option, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
            if option[:2] in ("-r", "-c", "-e", "-i", "-f") and not option.startswith("--") and len(option) > 2:
                option, equals, value = option[:2], "=", option[2:]
            if option in (*_FILES, *_EDITABLE, *INDEXES):
                self._valued(option, value if equals else next(rest, ""), find, seen)
            elif option in _WITH_VALUE:
                if not equals:
                    next(rest, "")
            elif option == "--pre":
                self.options += ["--prerelease", "allow"]
            elif not option.startswith("-"):
                self.one(word, find)

    def one(self, text: str, find: Callable[[str], Path | None]) -> None:
        """Takes over one requirement: a package, an address, or a file or folder of this machine."""
        text = text.strip()
        if _URL.match(text) is not None:
            self._address(text)
            return
        name, at, address = text.partition("@")
        if at and _URL.match(address.strip()) is not None:
            self._address(address.strip(), name.strip())
            return
        if text.startswith((".", "/", "~", "file:")) or text.endswith((".whl", ".tar.gz", ".zip")):
            self._local(text, find)
            return
        found = NAME.match(text)
        if found is None:
            self.absent.append(Absent(text, "it is no requirement that pip's format knows"))
            return
        self._package(found)

    def _package(self, found: re.Match[str]) -> None:
        name = canonicalize_name(found["name"])
        if (why := why_absent(name)) is not None:
            self.absent.append(Absent(found["name"], why, modules(name)))
            return
        twin = PIP.get(name)
        rule, marker = found["rule"].strip(), found["marker"] or ""
        plain = _LOCAL_VERSION.sub("", rule)
        if plain != rule:
            self.notes.append(f"{found['name']}{rule} as {plain.lstrip('=~<>! ')} of PyPI")
        if (first := on_cpu(name, plain)) is not None:
            self.raised[name] = plain.lstrip("= ")
            plain = f"=={first}"
        if twin is not None:
            self.notes.append(f"{twin} for {found['name']}")
        extras = without_cuda(found["extras"] or "")
        self.requirements.append(f"{twin or found['name']}{extras}{plain}{' ' + marker if marker else ''}")

    def _valued(self, option: str, value: str, find: Callable[[str], Path | None], seen: tuple[Path, ...]) -> None:
        value = value.strip().strip("\"'")
        if option in INDEXES:
            if _PYTORCH_INDEX.search(value):
                self.notes.append(f"PyPI's packages instead of {value}")
                return
            long = {"-i": "--index-url", "-f": "--find-links"}.get(option, option)
            place = find(value) if "://" not in value else None
            self.options += [long, str(place or value)]
            return
        if option in _EDITABLE:
            self.one(value, find)
            return
        file = find(value)
        if file is None or not is_file(file) or file in seen:
            why = "it names itself" if file in seen else "there is no such file"
            self.absent.append(Absent(f"{option} {value}", why))
            return
        text = file.read_text(encoding="utf-8-sig", errors="replace")
        if option in ("-c", "--constraint"):
            self.constraints += [line for raw in text.splitlines() if (line := _COMMENT.sub("", raw).strip())]
        else:
            self.read(text, file.parent, (*seen, file))

    def _address(self, url: str, name: str = "") -> None:
        release = release_of(url)
        if release is not None:
            self.requirements.append(release)
            self.notes.append(f"the release of {release} on PyPI for {url}")
        else:
            self.requirements.append(f"{name} @ {url}" if name else url)

    def _local(self, text: str, find: Callable[[str], Path | None]) -> None:
        path, bracket, extras = text.partition("[")
        place = find(path.removeprefix("file://").removeprefix("file:"))
        if place is None or not (is_file(place) or is_dir(place)):
            self.absent.append(Absent(text, "there is no such file or folder on this machine"))
            return
        self.files.append(place)
        self.requirements.append(f"{place}{bracket}{extras}")


def requirement_name(requirement: str) -> str:
    """The package that a requirement names, in pip's canonical form; empty for an address or a file."""
    found = NAME.match(requirement.partition("@")[0])
    return canonicalize_name(found["name"]) if found is not None and "/" not in requirement.partition("@")[0] else ""


def latest_wins(requirements: Iterable[str]) -> tuple[str, ...]:
    """Requirements with each package once: what is installed later replaces what an earlier line installed.

    A later line without a version leaves the earlier one as it is, as pip does without ``--upgrade``.
    """
    found: dict[str, str] = {}
    for each in requirements:
        name = requirement_name(each) or each
        match = NAME.match(each)
        if name in found and match is not None and not match["rule"].strip() and not match["extras"]:
            continue
        found[name] = each
    return tuple(found.values())


def _in(folder: Path | None) -> Callable[[str], Path | None]:
    def find(path: str) -> Path | None:
        if folder is None:
            return None
        return (folder / Path(path).expanduser()).absolute()

    return find


_PACKAGE = re.compile(r"^(?:[^\s:\[]+::)?(?P<name>[A-Za-z0-9_.-]+)\s*(?P<rule>.*)$")
_BRACKETS = re.compile(r"\[(?P<fields>[^\]]*)\]\s*$")
_FIELD = re.compile(r"(?P<key>\w+)\s*=\s*(?P<value>'[^']*'|\"[^\"]*\"|[^,\s]+)")
_NO_CONDA = "it is no Python package, and this machine has no conda"


class CondaFileError(Exception):
    """The conda file is not one; the message says what was found."""


def read_conda(text: str, folder: Path | None, found: PipLines) -> str:
    """Takes over a conda file.

    Args:
        text: The conda file, as YAML.
        folder: Where it lies, when that is known: paths in its pip section start there.
        found: Gets its packages.

    Returns:
        The Python that it asks for, as pip writes versions; ``""`` for none.

    Raises:
        CondaFileError: It is no YAML, or its ``dependencies`` are not a list of packages.
    """
    python = ""
    for one in _dependencies(text):
        if isinstance(one, dict):
            for line in one.get("pip") or []:
                found.read(str(line), folder)
            continue
        declared = conda_package(str(one))
        if declared is None:
            raise CondaFileError(f"The conda file's `dependencies` must name packages, got `{one}`.")
        name, rule = declared
        if name == "python":
            python = rule.removeprefix("==").removesuffix(".*")
        else:
            add_conda_package(found, name, rule)
    return python


def conda_package(text: str) -> tuple[str, str] | None:
    """The name and pip's version rule in one conda requirement; None for what is none."""
    found = _PACKAGE.match(text.strip().strip("\"'"))
    if found is None:
        return None
    rule = found["rule"]
    if (bracket := _BRACKETS.search(rule)) is not None:
        fields = {each["key"]: each["value"].strip("'\"") for each in _FIELD.finditer(bracket["fields"])}
        rule = fields.get("version", rule[: bracket.start()])
    return found["name"].lower(), pip_rule(rule.strip())


def add_conda_package(found: PipLines, name: str, rule: str) -> None:
    """Adds one conda package to what was found, under PyPI's name; or to what cannot be had."""
    twin = CONDA.get(name, name)
    if name in LEFT_OUT:
        found.notes.append(f"without {name}: wheels bring it along, or the machine has its own")
    elif not twin or NO_PYTHON.match(name):
        found.absent.append(Absent(name, _NO_CONDA))
    else:
        found.one(twin + rule, lambda _path: None)


def pip_rule(rule: str) -> str:
    """A conda version rule in pip's words: ``=1.2`` is any 1.2, a build at the end is dropped."""
    rule = rule.split(maxsplit=1)[0] if rule[:1].isdigit() else "".join(rule.split())
    rule = rule.split("|", 1)[0]  # of alternatives the first
    if not rule or rule == "*" or rule.startswith("=*"):
        return ""
    if rule.startswith("=") and not rule.startswith("=="):
        version, _, build = rule[1:].partition("=")
        return f"=={version}" if build or version.endswith("*") else f"=={version}.*"
    if rule.startswith("=="):
        return "==" + rule[2:].partition("=")[0]
    if rule[0].isdigit():
        return "==" + rule.partition("=")[0]
    return rule


def _dependencies(text: str) -> list[Any]:
    import yaml  # noqa: PLC0415 - few environments have a conda file, and yaml takes a while to import

    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CondaFileError(f"The conda file is no YAML: {' '.join(str(error).split())}") from None
    found = data.get("dependencies", []) if isinstance(data, dict) else None
    if not isinstance(found, list):
        raise CondaFileError("The conda file must have a list of packages under `dependencies`.")
    return found


def module_names(requirement: str) -> tuple[str, ...]:
    """Modules that a requirement brings, as far as its name tells."""
    name = requirement_name(requirement)
    return modules(name) if name else ()
