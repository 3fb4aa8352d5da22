"""Jobs that a Python file declares by azure-ai-ml, SDK v2: its objects, and its submissions, which nobody is sent.

While such a file runs, a recorder stands in place of ``MLClient`` and of the credentials of azure-identity. A job
becomes what azure-ai-ml itself would write of it, its own ``_to_dict``, and is read as a file of Azure ML's CLI is.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, Self

from amlstack.base.findings import Finding, Level, stated
from amlstack.code_reading.code_files import tree_of
from jobs.pythonfiles.refusals import replaced

MISSING: Final = stated("sdk-missing", "")
_CHANGES: Final = ("description", "compute", "tags", "experiment_name")
"""Keywords of `jobs.create_or_update` that change the job."""


@dataclass
class SubmissionRecorder:
    """The jobs that a file would have submitted.

    Attributes:
        file: Its name, as its frames bear it.
        sent: Each job with the line of its submission, in their order; a job that is submitted twice is there once.
        assumed: Arguments that the file requires of its command line, each with the word that stands in for it.
    """

    file: str
    sent: list[tuple[Any, int]] = field(default_factory=list)
    assumed: dict[str, str] = field(default_factory=dict)

    def take(self, entity: Any, changes: dict[str, Any]) -> Any:
        """The answer to ``create_or_update``: a job with a name and an address, anything else as it was given."""
        from azure.ai.ml.entities import Job as SdkJob  # noqa: PLC0415 - seconds, and most files do not use it

        if not isinstance(entity, SdkJob) and not hasattr(entity, "_to_job"):
            return entity
        for name in _CHANGES:
            if changes.get(name) is not None:
                setattr(entity, name, changes[name])
        frame = sys._getframe(1)  # noqa: SLF001 - there is no other way to a caller's line
        while frame.f_back is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        if not any(job is entity for job, _ in self.sent):
            self.sent.append((entity, frame.f_lineno if frame.f_code.co_filename == self.file else 0))
        name = getattr(entity, "name", None) or "not-submitted"
        return SimpleNamespace(name=name, id=name, display_name=name, status="NotStarted", studio_url="", services={})


class _Reference(str):  # noqa: SLOT000 - its attributes are set once it is made
    """The address of an asset, with the attributes that programs read of an asset that they got."""

    name = version = ""

    @property
    def path(self) -> str:
        """The same address: azure-ai-ml takes it where it takes an asset."""
        return str(self)

    id = path


@dataclass
class _Operations:
    """One of a client's groups of operations, ``client.jobs``: it answers without asking anybody."""

    kind: str
    registry: str | None
    recorder: SubmissionRecorder

    def create_or_update(self, *given: Any, **changes: Any) -> Any:
        entity = given[0] if given else next(iter(changes.values()))
        return self.recorder.take(entity, changes)

    submit = create_or_update

    def begin_create_or_update(self, *given: Any, **changes: Any) -> Any:
        made = self.create_or_update(*given, **changes)
        return SimpleNamespace(result=lambda *_: made, wait=lambda *_: None, done=lambda: True)

    def get(self, name: str, version: str | None = None, label: str | None = None, **_: Any) -> Any:
        if self.kind == "components":
            raise LookupError(f"the component {name} lies in Azure: give its YAML to load_component() to have it read")
        root = f"azureml://registries/{self.registry}/{self.kind}/{name}/" if self.registry else f"azureml:{name}"
        if self.kind in ("compute", "jobs", "workspaces"):
            made = _Reference(name)
        elif self.registry:
            made = _Reference(f"{root}versions/{version}" if version else f"{root}labels/{label or 'latest'}")
        else:
            made = _Reference(f"{root}:{version}" if version else f"{root}@{label or 'latest'}")
        made.name, made.version = name, version or ""
        if self.kind == "data":  # other than an environment, azure-ai-ml takes it as an object alone
            from azure.ai.ml.entities import Data  # noqa: PLC0415 - as above

            data = Data(name=name, version=version, path=str(made))
            data._id = data._path = str(made)  # noqa: SLF001 - an asset of a workspace has both, and lies on no disk
            return data
        return made

    def get_default(self, **_: Any) -> Any:
        return self.get("workspaceblobstore")  # the name that Azure gives the default datastore

    def list(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def stream(self, *_: Any, **__: Any) -> None:
        """Nothing runs."""

    download = stream


def _client(recorder: SubmissionRecorder) -> type:
    """A class in place of ``MLClient``."""

    class Client:
        def __init__(self, *_: Any, **named: Any) -> None:
            self._registry = named.get("registry_name")
            for name in ("subscription_id", "resource_group_name", "workspace_name"):
                setattr(self, name, named.get(name, ""))

        @classmethod
        def from_config(cls, *_: Any, **named: Any) -> Self:
            return cls(**named)

        def create_or_update(self, entity: Any, **changes: Any) -> Any:
            return recorder.take(entity, changes)

        def begin_create_or_update(self, entity: Any, **changes: Any) -> Any:
            return _Operations("", self._registry, recorder).begin_create_or_update(entity, **changes)

        def __getattr__(self, kind: str) -> _Operations:
            if kind.startswith("_"):
                raise AttributeError(kind)
            return _Operations(kind, self._registry, recorder)

    return Client


class _Credential:
    """A credential that nobody takes."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def get_token(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(token="", expires_on=0)


def _answering(recorder: SubmissionRecorder) -> Callable[..., Any]:
    """A function in place of argparse's, which puts a word in the place of what is required and not given."""
    parse = argparse.ArgumentParser.parse_known_args

    def parse_known_args(self: Any, args: Any = None, namespace: Any = None) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        for action in self._actions:
            if not action.required or any(word.partition("=")[0] in action.option_strings for word in given):
                continue
            plain = action.dest if action.type in (None, str) else "1"
            word = str(next(iter(action.choices))) if action.choices else plain
            recorder.assumed[action.option_strings[-1] if action.option_strings else action.dest] = word
            count = action.nargs if isinstance(action.nargs, int) else 1
            given = [*given, action.option_strings[-1], *[word] * count] if action.option_strings else [word, *given]
        return parse(self, given, namespace)

    return parse_known_args


@contextlib.contextmanager
def recording(path: Path, whole: Path, folder: Path) -> Iterator[SubmissionRecorder]:
    """Within, azure-ai-ml sends nothing, and the command line is the file's name alone.

    Args:
        path: The file, as its frames name it.
        whole: The same from the root on.
        folder: The working folder.

    Raises:
        ImportError: azure-ai-ml is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import azure.ai.ml  # noqa: PLC0415 - as above
        import azure.identity  # noqa: PLC0415 - as above

        recorder = SubmissionRecorder(str(path))
        places: list[tuple[Any, str, Any]] = [(azure.ai.ml, "MLClient", _client(recorder))]
        places += [(azure.identity, name, _Credential) for name in dir(azure.identity) if name.endswith("Credential")]
        places += [(sys, "argv", [str(whole)]), (argparse.ArgumentParser, "parse_known_args", _answering(recorder))]
        log, level = logging.getLogger("azure.ai.ml"), logging.getLogger("azure.ai.ml").level
        log.setLevel(logging.CRITICAL)
        try:
            with replaced(places), contextlib.chdir(folder):
                yield recorder
        finally:
            log.setLevel(level)


class SdkJob(NamedTuple):
    """A job of azure-ai-ml.

    Attributes:
        name: What the file calls it; empty where it has no name there.
        line: Of its submission; 0 where it is not submitted.
        text: The CLI's file of it.
        error: Why azure-ai-ml does not write one.
    """

    name: str
    line: int
    text: str = ""
    error: Exception | None = None


class SdkJobs(NamedTuple):
    """The jobs of a file; `SubmissionRecorder` has the words on the others."""

    jobs: list[SdkJob]
    submitted: bool
    assumed: dict[str, str]


def written(module: dict[str, Any], recorder: SubmissionRecorder, base: Path) -> SdkJobs:
    """The jobs of a file that has run, each as the text of a CLI's file whose paths start at a folder."""
    made: list[SdkJob] = []
    for job, name, line in jobs_in(module, recorder):
        try:
            made.append(SdkJob(name, line, as_text(job, base)))
        except Exception as error:  # noqa: BLE001 - azure-ai-ml raises what it will
            made.append(SdkJob(name, line, error=error))
    return SdkJobs(made, bool(recorder.sent), recorder.assumed)


def jobs_in(module: dict[str, Any], recorder: SubmissionRecorder) -> list[tuple[Any, str, int]]:
    """The jobs of azure-ai-ml that a file submits, else those that it leaves behind.

    Each has its name in the file, and the line of its submission or 0. Of what is left behind, a name `job` or `jobs`
    counts; else pipelines before sweeps before commands, as these are made of those.
    """
    from azure.ai.ml.entities import Job as SdkJob  # noqa: PLC0415 - as above

    names = {id(value): name for name, value in module.items()}
    if recorder.sent:
        return [(job, names.get(id(job), ""), line) for job, line in recorder.sent]
    if isinstance(several := module.get("jobs"), list | tuple):
        return [(job, names.get(id(job), "jobs"), 0) for job in several if isinstance(job, SdkJob)]
    found = {
        id(value): (value, name, 0)
        for name, value in module.items()
        if not isinstance(value, type) and (isinstance(value, SdkJob) or hasattr(value, "_to_job"))
    }
    if (chosen := found.get(id(module.get("job")))) is not None:
        return [chosen]
    for kind in ("pipeline", "sweep"):
        if some := [each for each in found.values() if each[0].type == kind]:
            return some
    return list(found.values())


def as_text(job: Any, base: Path) -> str:
    """A job as the text of a CLI v2 file: JSON, which is YAML too.

    Args:
        job: Of azure-ai-ml.
        base: The folder from which paths below it are written.
    """
    made = job._to_job() if hasattr(job, "_to_job") else job  # noqa: SLF001 - azure-ai-ml has no public way but a file
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = json.loads(json.dumps(made._to_dict(), default=str))  # noqa: SLF001 - as above
    written.pop("parameters", None)  # of a job that has run
    return json.dumps(_mended(written, str(base)), indent=1)


def _mended(value: Any, base: str, key: str = "") -> Any:
    """A value as a person would write it in a file.

    azure-ai-ml writes paths from the root on, and `azureml:` before the `./data` of a pipeline; a binding as
    `{path: binding}`; what a step has from its inline component a second time, at the step or in the component; and
    what is empty, which only an output may be.
    """
    match value:
        case {"path": str(binding)} if len(value) == 1 and binding.startswith("${{"):
            return binding
        case {"component": dict(component)}:
            step = {name: each for name, each in value.items() if name != "component"}
            component = dict(component)
            for name, second in (("environment", step), ("environment_variables", component)):
                if component.get(name) == value.get(name):
                    second.pop(name, None)
            return _mended(step, base) | {"component": _mended(component, base)}
        case dict():
            ports = key in ("inputs", "outputs")
            return {name: _mended(each, base, name) for name, each in value.items() if ports or each != {}}
        case list():
            return [_mended(each, base) for each in value]
        case str() if key in ("path", "code", "conda_file"):
            if value.startswith(("azureml:.", "azureml:/")) and not value.startswith("azureml://"):
                value = value.removeprefix("azureml:")
            return f".{value[len(base) :]}" if value == base or value.startswith(f"{base}/") else value
        case _:
            return value


def place_of(content: bytes, name: str, line: int) -> Callable[[str], tuple[int | None, int | None]]:
    """A function from keys of the CLI's file to line and column in the Python file: the nearest keyword of that name.

    Args:
        content: The file.
        name: What the job is called in it.
        line: Where it is submitted; 0 where it is not.
    """
    tree = tree_of(content)
    if tree is None:
        return lambda _: (line or None, None)
    made: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            made.update({each.id: node.value for each in node.targets if isinstance(each, ast.Name)})
        elif isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0) and not name:
            given = [*node.args, *(each.value for each in node.keywords)]
            name = next((each.id for each in given if isinstance(each, ast.Name)), "")

    def place(where: str) -> tuple[int | None, int | None]:
        steps = where.split(".")
        names = [steps[1], name] if steps[0] == "jobs" and len(steps) > 1 else [name]
        calls: list[ast.expr] = []
        for each in names:
            while (call := made.get(each)) is not None and call not in calls:
                calls.append(call)
                each = _maker(call)  # noqa: PLW2901 - from what was called to where that was made
        for step in reversed(steps):
            for call in calls:
                for node in ast.walk(call):
                    if isinstance(node, ast.keyword) and node.arg == step:
                        return node.lineno, node.col_offset + 1
        return (calls[0].lineno, calls[0].col_offset + 1) if calls else (line or None, None)

    return place


def _maker(call: ast.expr) -> str:
    """The name of what was called, or of the object whose method was: `base` of ``base.sweep(…)``."""
    if not isinstance(call, ast.Call):
        return ""
    function = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    return function.id if isinstance(function, ast.Name) else ""


def assumed(words: dict[str, str], path: Path) -> Iterator[Finding]:
    """That a file was run with words in place of what it requires of its command line."""
    if words:
        shown = ", ".join(f"{name} {word}" for name, word in words.items())
        yield stated("arguments-assumed", "", Level.INFO, shown=shown).changed(file=str(path))


def unread(error: Exception, path: Path, line: int | None) -> Finding:
    """That azure-ai-ml itself does not take an object."""
    text = " ".join(str(error).split())
    rule = "A job is one that azure-ai-ml itself can write as a file"
    return Finding("sdk-refuses", "", f"azure-ai-ml refuses the job: {text[:500]}", rule, file=str(path), line=line)
