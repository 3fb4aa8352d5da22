"""`load`: a job file, Python or Azure ML CLI v2 YAML, as jobs with their places and findings."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from amlstack.base.files import read_regular
from amlstack.base.findings import Finding, Level, errors, stated
from amlstack.base.text import hint
from jobs.model.pipeline import PASSED_THROUGH, Declared
from jobs.values import Place, Source

if TYPE_CHECKING:
    from amlstack.base.yamltext import Text
    from jobs.azureml.fields import Cursor
    from jobs.pythonfiles.guard import Guarded
    from jobs.pythonfiles.mistakes import Mistake
    from jobs.pythonfiles.sdk import SdkJobs

YAML_SUFFIXES = (".yml", ".yaml")
SDK = b"azure.ai.ml"
"""The bytes by which a file that uses azure-ai-ml is known."""
KINDS = ("command", "sweep", "pipeline", "component", "schedule")
"""Kinds of Azure ML files that are read."""
AS_STEPS = tuple(kind for kind in PASSED_THROUGH if kind not in KINDS)
"""Kinds of jobs that are read where they are steps of a pipeline."""


class Loaded(NamedTuple):
    """The content of a job file.

    Attributes:
        jobs: The jobs that could be read; none when the file is broken.
        findings: What is wrong with the file as it is written; `jobs.plan` judges what it means.
        source: The file, for `jobs.plan`.
    """

    jobs: tuple[Declared, ...]
    findings: tuple[Finding, ...]
    source: Source

    @property
    def ok(self) -> bool:
        """True where nothing refuses the file; warnings do not."""
        return not errors(self.findings)


def load(path: Path | str) -> Loaded:
    """Read a job file.

    A Python file has a module-level ``job`` (a `Job`) or ``jobs`` (a list of them), or makes and submits jobs of
    azure-ai-ml. A YAML file is an Azure ML CLI v2 command job and is passed through unchanged.

    Args:
        path: The file.

    Returns:
        Jobs and findings; a user's mistake never raises.
    """
    path = path if isinstance(path, Path) else Path(path)
    if path.suffix.lower() == ".py":
        return _load_python(path)
    if path.suffix.lower() in YAML_SUFFIXES:
        from amlstack.base.yamltext import read  # noqa: PLC0415 - a Python job needs no YAML

        return from_text(read(path), path.parent)
    finding = stated("file-kind", "", path=path).changed(file=str(path))
    return Loaded((), (finding,), Source(str(path), path.parent))


def from_text(text: Text, base: Path) -> Loaded:
    """Jobs of YAML that is read already."""
    from amlstack.base.yamltext import unfilled  # noqa: PLC0415 - a Python job needs no YAML
    from jobs.azureml import fields  # noqa: PLC0415
    from jobs.azureml.fields import Cursor, source_of  # noqa: PLC0415
    from jobs.azureml.read import command, kinds  # noqa: PLC0415

    reader = kinds.reader_of(text.data)
    path_of = reader.path_of if reader else kinds.path_as_written
    if text.data is None and text.findings:
        return Loaded((), text.findings, source_of(text, base, path_of))
    if (other := _other(text)) is not None:
        return Loaded((), (*text.findings, other), source_of(text, base, path_of))
    found: list[tuple[tuple[Any, ...], Finding]] = []
    cursor = Cursor(text.data, (), found, base)
    job = None
    if reader is not None:
        job = reader.read(cursor)
    else:
        found.append((("type",), _unknown(cursor)))
    open_ = {keys: _to_fill(keys, value) for keys, value in unfilled(text.data)}
    found = [*open_.items(), *(each for each in found if not any(each[0][: len(keys)] == keys for keys in open_))]
    found = fields.first_causes(found, command.KEYS)
    placed = []
    for keys, finding in found:
        line, column = text.spot(keys) or (None, None)
        placed.append(finding.at(text.file, line, column))
    source = source_of(text, base, path_of, fields.unreadable(found))
    return Loaded((job,) if job else (), (*text.findings, *placed), source)


def _to_fill(keys: tuple[Any, ...], value: str) -> Finding:
    return stated("to-fill", ".".join(map(str, keys)), value=value)


def _other(text: Text) -> Finding | None:
    """That a file is empty, or of a kind that is no job; None for one that is read as a job."""
    from jobs.azureml.read import kinds  # noqa: PLC0415 - as the readers

    if text.data is None:
        return Finding("file-empty", "", "The file is empty", kinds.RULE, file=text.file, line=1)
    found = kinds.recognized(text.data)
    if found is None:
        return None
    remedy = found.remedy.replace("FILE", Path(text.file or "FILE").name)
    line, column = text.spot(("type",)) or (1, 1)
    return Finding(
        "not-a-job", "", f"The file is {found.what}", kinds.RULE, remedy, file=text.file, line=line, column=column
    )


def _unknown(cursor: Cursor) -> Finding:
    from jobs.azureml.read import kinds  # noqa: PLC0415 - as above

    kind = cursor.value.get("type")
    if kinds.is_component(cursor.value):
        return stated("file-type", "type", kind=kind)
    if kind in AS_STEPS:
        return stated("file-type/unknown", "type", kind=kind)
    rule = f"Files of type {', '.join(f'`{name}`' for name in KINDS)} are read"
    return Finding("file-type", "type", f"The file is of type `{kind}`", rule, hint(str(kind), KINDS).strip())


@dataclass
class _Ran:
    """A Python file that was run.

    Attributes:
        module: What it has left.
        raised: What ended it; None where it came to its end.
        guard: What it tried.
        mistakes: The declarations that their models refused.
        sdk: Its jobs of azure-ai-ml; None where it does not use that.
    """

    module: dict[str, Any]
    raised: BaseException | None
    guard: Guarded
    mistakes: list[Mistake]
    sdk: SdkJobs | None = None

    @property
    def failed(self) -> bool:
        """True where it was left before its end, or azure-ai-ml does not take a job of it."""
        return self.raised is not None or (self.sdk is not None and any(each.error for each in self.sdk.jobs))


def _run(path: Path, whole: Path, content: bytes, name: str) -> _Ran:
    """Run a Python file.

    Args:
        path: The file, as its frames and findings name it.
        whole: The same from the root on.
        content: What it holds.
        name: Its ``__name__``.
    """
    from jobs.pythonfiles.guard import guarded  # noqa: PLC0415 - a YAML file runs nothing
    from jobs.pythonfiles.mistakes import noted  # noqa: PLC0415 - nor needs it a syntax tree

    module: dict[str, Any] = {"__name__": name, "__file__": str(whole)}
    raised: BaseException | None = None
    with guarded(str(path), str(whole.parent)) as guard, noted(str(path)) as mistakes:
        try:
            code = compile(content, str(path), "exec", dont_inherit=True)
            exec(code, module)  # noqa: S102 - a Python job file is the user's own program
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a user's file raises is a finding
            raised = error
    return _Ran(module, raised, guard, mistakes)


def _load_python(path: Path) -> Loaded:
    from jobs.pythonfiles.mistakes import place_of  # noqa: PLC0415 - as above

    source = Source(str(path), path.parent)
    try:
        content = read_regular(path)
    except OSError as error:
        return Loaded((), (_raised(error, path),), source)
    source = replace(source, place=place_of(content))
    whole, name = path.resolve(), f"amlstack_job_{path.stem}"
    if SDK not in content:
        return _read(_run(path, whole, content, name), path, content, source)
    try:
        first = _run_with_sdk(path, whole, content, whole.parent)
        # Programs name files from their own folder on, or from where they are started.
        other = first.failed and whole.parent != Path.cwd() and _run_with_sdk(path, whole, content, Path.cwd())
    except ImportError:
        from jobs.pythonfiles import sdk  # noqa: PLC0415 - most files do not use it

        return Loaded((), (sdk.MISSING.at(str(path)),), source)
    return _read(other if other and not other.failed else first, path, content, source)


def _run_with_sdk(path: Path, whole: Path, content: bytes, folder: Path) -> _Ran:
    """Run a Python file in a folder, with a recorder in place of azure-ai-ml's client."""
    from jobs.pythonfiles import sdk  # noqa: PLC0415 - as above

    with sdk.recording(path, whole, folder) as recorder:
        ran = _run(path, whole, content, f"amlstack_job_{path.stem}")
        ran.sdk = sdk.written(ran.module, recorder, whole.parent)
        left = ran.raised or ran.guard.tried or ran.mistakes or ran.sdk.jobs or "job" in ran.module
        if not left and b"__main__" in content:  # a program that makes and submits its job there
            ran = _run(path, whole, content, "__main__")
            ran.sdk = sdk.written(ran.module, recorder, whole.parent)
    return ran


def _read(ran: _Ran, path: Path, content: bytes, source: Source) -> Loaded:
    """The jobs and findings of a Python file that was run."""
    from jobs.pythonfiles.guard import attempts_of  # noqa: PLC0415 - as above
    from jobs.pythonfiles.mistakes import findings_of, placed  # noqa: PLC0415 - as above

    guard, raised = ran.guard, ran.raised
    if guard.ends or guard.tried:
        failed = raised is not None or bool(ran.mistakes)  # and that may only follow from it
        about = attempts_of(guard, failed=failed)
        loaded = Loaded((), (), source) if failed or guard.ends else _from_module(ran, path, content, source)
        refused = bool(errors(about))
        return Loaded(() if refused else loaded.jobs, about if refused else (*about, *loaded.findings), loaded.source)
    if ran.mistakes:  # what else is raised may only follow from them
        return Loaded((), placed(ran.mistakes, content, str(path)), source)
    if isinstance(raised, ValidationError):
        line = _line_in(raised, path)
        return Loaded((), tuple(finding.at(str(path), line) for finding in findings_of(raised)), source)
    if raised is not None:
        if ran.sdk is None or not ran.sdk.submitted:
            return Loaded((), (_raised(raised, path),), source)
        loaded = _from_module(ran, path, content, source)
        return loaded._replace(findings=(_raised(raised, path).changed(level=Level.WARNING), *loaded.findings))
    return _from_module(ran, path, content, source)


def _open(values: Iterable[Declared], content: bytes, path: Path) -> tuple[Finding, ...]:
    """The values that a migration left open."""
    if b"<fill:" not in content:
        return ()
    from amlstack.base.yamltext import unfilled  # noqa: PLC0415 - most files have none

    found = (pair for each in values for pair in unfilled(each.model_dump(mode="json")))
    return tuple(_to_fill(*pair).at(str(path)) for pair in found)


def _from_module(ran: _Ran, path: Path, content: bytes, source: Source) -> Loaded:
    module = ran.module
    value = module["jobs"] if "jobs" in module and "job" not in module else module.get("job")
    values = value if isinstance(value, (list, tuple)) else (value,)
    if values and all(isinstance(each, Declared) for each in values):
        return Loaded(tuple(values), _open(values, content, path), source)
    if ran.sdk is not None and ran.sdk.jobs:
        return _of_sdk(ran.sdk, path, content)
    finding = stated(
        "job-missing/from-module",
        "",
        seen="There is neither `job` nor `jobs`" if value is None else f"`job` is a {type(value).__name__}",
    ).changed(file=str(path))
    return Loaded((), (finding,), source)


def _of_sdk(made: SdkJobs, path: Path, content: bytes) -> Loaded:
    """The jobs of azure-ai-ml that a file has made: each is read as the CLI's file that azure-ai-ml writes of it."""
    from amlstack.base.yamltext import parse  # noqa: PLC0415 - as above
    from jobs.pythonfiles import sdk  # noqa: PLC0415 - as above

    jobs: list[Declared] = []
    findings = list(sdk.assumed(made.assumed, path))
    source = Source(str(path), path.parent)
    for job in made.jobs:
        place = sdk.place_of(content, job.name, job.line)
        if job.error is not None:
            findings.append(sdk.unread(job.error, path, place("")[0]))
            continue
        loaded = from_text(parse(job.text, str(path)), path.parent)
        for finding in loaded.findings:
            at, column = place(finding.where)
            findings.append(finding.changed(line=at, column=column))
        jobs += loaded.jobs
        source = replace(loaded.source, place=_placed_by(loaded.source, place), sdk=True)
    return Loaded(tuple(jobs), tuple(findings), source)


def _placed_by(source: Source, place: Callable[[str], tuple[int | None, int | None]]) -> Callable[[str], Place]:
    """The places of a job in the Python file: keys as in the CLI's file, lines as in its own."""

    def found(where: str) -> Place:
        keys = source.place(where)[0]
        return keys, *place(keys)

    return found


def _line_in(error: BaseException, path: Path) -> int | None:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return frames[-1].lineno if frames else None


def _raised(error: BaseException, path: Path) -> Finding:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return stated("python-syntax", "", error=error).changed(file=str(path), line=error.lineno, column=error.offset)
    if isinstance(error, OSError) and error.filename == str(path):
        return stated("file-unreadable", "", error=error).changed(file=str(path))
    try:
        lines = str(error).splitlines()
    except Exception:  # noqa: BLE001 - an error of the file's own may be unable to say what it is
        lines = []
    return stated(
        "python-raised",
        "",
        __name__=type(error).__name__,
        text=f": {lines[0]}" if lines else "",
        remedy="Install the module into the environment of amlstack." if isinstance(error, ModuleNotFoundError) else "",
    ).changed(file=str(path), line=_line_in(error, path))
