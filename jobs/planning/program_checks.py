"""Checks of what a job runs before it runs: its command's words, the files they name, the scripts, the environment.

Found are a script that is not there or not in the upload, text that is no Python, arguments that a script would refuse,
words that the shell expands, packages that are gone, the place of a checkpoint, GPUs that no process of the job would
use, and an image that the nodes cannot run. Nothing is run: each script is read as text.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from amlstack.base.findings import Finding, Level, stated
from amlstack.base.paths import is_dir, is_file
from amlstack.base.text import did_you_mean, near
from amlstack.catalog import clock, environments, images
from amlstack.code_reading.code_files import MOST_CHARACTERS, text_of
from amlstack.code_reading.parsers import Fault, Interface, faults, interface_of
from amlstack.code_reading.shell import ASSIGNMENT, plain_file, plain_script, script_of, steps
from amlstack.code_reading.starters import MODULES, PROGRAMS
from amlstack.snapshot.walk import NAMES, Ignore
from jobs.launchers import Lowered, MpiDistribution, PyTorchDistribution
from jobs.planning.job_checks import PLACEHOLDER
from jobs.values import Code, Environment
from policies.checks.job import SOME_GPUS, SPEAKS, check_image_runs, check_nebula_gone_file

if TYPE_CHECKING:
    from jobs.model.job import Job
    from jobs.planning.plans import Plan, Target

_REDIRECTION = re.compile(r"(?<=\s)[\d&]?(?:>>?|<)(?:&\d|\s*[^\s;&|]+)")
_OPTIONAL = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)
_GOES_ON = re.compile(r"[;\n|]|(?<!&)&(?!&)")
"""Between commands of which the next one runs, whatever became of the one before."""
_ABOVE = (
    rf"(?:\w+=\S* )*(?:\S*/)?(?:python[\d.]*|bash|sh|{'|'.join(PROGRAMS)}) "
    r"(?:(?!\S+\.(?:py|sh)\b)\S+ )*(?P<script>\S+\.(?:py|sh))\b"
)
"""The first script after an interpreter or a launcher, with the words before it."""
_NEWER = r"f-string|\btype\s+\w+\s*(\[|=)|\b(def|class)\s+\w+\[|\bexcept\s+\w+\s*,|\bt[\"']|\bmatch\b|\blazy\b"
"""Lines that a later Python than this one may read."""


def scripts_of(job: Job, base: Path) -> Iterator[Finding]:
    """Findings on the scripts that a command starts.

    Args:
        job: The job.
        base: Folder that its code is relative to.
    """
    if job.code is None or not job.code.local or re.search(r"`|\$\(|=\(", job.command):
        return
    folder = os.path.join(base, job.code.path)  # noqa: PTH118 - for each of many jobs
    parts = _OPTIONAL.sub(r" \1 ", job.command)
    done = steps(_REDIRECTION.sub(" ", parts))
    ends, changed = _GOES_ON.search(parts.replace("\\\n", "").strip()) is None, False
    for words in done:
        named = list(dropwhile(ASSIGNMENT.fullmatch, words))
        if not named or named[0] in {"cd", "pushd", "popd"}:
            return
        script, rest = _started(named)
        if script is None:
            yield from () if changed else _outside(named)
            changed |= named[0].rsplit("/", 1)[-1] not in CREATES_NOTHING
            continue
        name = posixpath.normpath(script)
        path = os.path.join(folder, name)  # noqa: PTH118 - as above
        if not is_file(path):
            continue
        yield from () if changed else _ignored(folder, name)
        changed = True
        read = _read(path) if name.endswith(".py") else None
        if isinstance(read, Finding):
            yield read
        elif read is not None:
            certain = (ends or words is done[-1]) and read.sure and parts == job.command and "||" not in parts
            rest = rest[: next((at for at, word in enumerate(rest) if word.startswith("#")), len(rest))]
            yield from (_argument(fault, read, name, certain=certain) for fault in faults(read, rest))


def _started(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """The script that a simple command starts, by its path or as a module, and the words that it gets."""
    if (script := script_of(words)) is not None:
        return script, words[words.index(script) + 1 :]
    modules = (
        at for at, word in enumerate(words) if at and words[at - 1] in {"-m", "--module"} and word not in MODULES
    )
    at = next(modules, 0)
    return (f"{words[at].replace('.', '/')}.py", words[at + 1 :]) if at else (None, ())


def _outside(words: Sequence[str]) -> Iterator[Finding]:
    """A script above the code folder."""
    found = re.match(_ABOVE, " ".join(words))
    if found is not None and posixpath.normpath(found["script"]).startswith("../"):
        yield stated("script-outside-code", "command", found=found["script"])


def _ignored(folder: str, name: str) -> Iterator[Finding]:
    """A script that the code folder's ignore file leaves out."""
    if not any(is_file(os.path.join(folder, each)) for each in NAMES):  # noqa: PTH118 - for each of many jobs
        return
    ignore = Ignore.read(Path(folder).resolve())
    if ignore.path is not None and ignore.excludes(name):
        yield stated("script-left-out", "command", name=name, ignore=ignore)


def _read(path: str) -> Interface | Finding | None:
    text = text_of(path)
    partly = text is None or len(text) >= MOST_CHARACTERS or "\ufffd" in text
    return None if partly or text is None else _parsed(text.removeprefix("\ufeff"), os.path.normpath(path))


@lru_cache(maxsize=64)  # jobs share scripts
def _parsed(text: str, path: str) -> Interface | Finding | None:
    """The arguments of a script as far as they are known, or its syntax error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return interface_of(ast.parse(text), text)
    except (RecursionError, MemoryError):  # nested deeper than the parser follows
        return None
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", None) or 1, max(1, getattr(error, "offset", None) or 1)
        said = getattr(error, "msg", str(error))
        newer = re.search(_NEWER, "\n".join((said, *text.splitlines()[max(0, line - 2) : line])))
        rule = "A later Python than this one may read it" if newer else "Each process of the job ends at its start"
        remedy = "Run `python -m py_compile` on it in the job's environment." if newer else ""
        found = Finding("script-syntax", "", f"The script is no Python: {said}", rule, remedy)
        return found.changed(level=Level.WARNING if newer else Level.ERROR, file=path, line=line, column=column)


_SAID = {
    "unknown": ("gives `{script}` the argument `{word}`", "does not know it"),
    "missing": ("gives `{script}` no `{word}`", "requires it{at}"),
    "value": ("gives `{script}` `{word}` without a value", "wants one{at}"),
    "extra": ("gives `{script}` `{word}`", "has no place for the last word"),
}


def _argument(fault: Fault, interface: Interface, script: str, *, certain: bool) -> Finding:
    at = f" ({script}:{fault.line})" if fault.line else ""
    seen, rule = (each.format(script=script, word=fault.word, at=at) for each in _SAID[fault.kind])
    known = [names[-1] for names in interface.groups if "--help" not in names]
    listed = ", ".join(f"`{name}`" for name in known[:8]) + (", …" if len(known) > 8 else "")
    remedy = f"Write `{fault.word} VALUE`." if fault.word.startswith("--") else "Add it."
    if fault.kind == "unknown":
        close = near(fault.word, interface.options, 1)
        remedy = f"Did you mean `{close[0]}`?" if close else f"It knows {listed or 'none'}."
    remedy = "Leave it out." if fault.kind == "extra" else remedy
    rule = f"The script's {interface.reads} {rule}, and ends the script"
    level = Level.ERROR if certain else Level.WARNING
    return Finding(f"script-argument-{fault.kind}", "command", f"The command {seen}", rule, remedy, level)


_MISWRITTEN = (
    r"(?<![\w$\\])(?P<open>\$\{\{|\{\{|\$[{(]?)\s*(?P<kind>inputs|outputs|search_space)"
    r"\.(?P<name>\w[\w-]*(?:\.\w[\w-]*)*)\s*(?P<close>\}\}|[})])?"
)
_WHY = {
    "${": "has one brace on each side, so that the shell expands it",
    "$": "has no braces, so that the shell expands its first word",
    "$(": "is a command that the shell runs",
    "{{": "has no dollar sign, and stays text",
    "${{": "lacks a brace at its end, and stays text",
}
_LOCAL_RANK = re.compile(r"--local[_-]rank(?:=|\s+)[\"']?\$\{?RANK\b")
CREATES_NOTHING = frozenset({"pip", "pip3", "conda", "apt", "apt-get", "export", "echo", "ls", "nvidia-smi", "set",
                              "env", "pwd", "date", "which", "ulimit", "true", "sleep", "hostname", "cat"})  # fmt: skip
"""Programs after which the code folder holds the scripts that it held before."""
_MOST_NAMES = 2_000
_FILES = 8
"""Files of one command that are read."""
_ENDINGS = (".py", ".json", ".sh")


def command_words(job: Job, base: Path) -> Iterator[Finding]:
    """Findings on the words of a command.

    Args:
        job: The job.
        base: Folder that its code is relative to.
    """
    yield from _miswritten(job)
    if _LOCAL_RANK.search(job.command) and job.nodes not in (None, 1):
        yield stated("local-rank-from-rank", "command", Level.ERROR if job.typed else Level.WARNING)
    if job.code is not None and job.code.local:
        yield from _scripts(job.command, job.code, base)


def _miswritten(job: Job) -> Iterator[Finding]:
    seen: set[str] = set()
    for match in re.finditer(_MISWRITTEN, job.command) if "puts." in job.command or "search_" in job.command else ():
        opened, kind, name = match["open"], match["kind"], match["name"]
        if match[0] in seen or (opened, match["close"]) == ("${{", "}}"):
            continue
        seen.add(match[0])
        meant = name.split(".")[0] in {**job.inputs, **job.outputs} or kind == "search_space"
        rule = "A binding has a dollar sign and two braces on each side"
        remedy = f"Write `${{{{{kind}.{name}}}}}`."
        level = Level.ERROR if meant or opened == "${" else Level.WARNING
        yield Finding("binding-of-the-shell", "command", f"`{match[0].strip()}` {_WHY[opened]}", rule, remedy, level)


def _scripts(command: str, code: Code, base: Path) -> Iterator[Finding]:
    """Scripts that the command starts and the code folder does not have.

    A script is looked for only as long as nothing ran that may have made it, fetched it or changed the folder.
    """
    plain = plain_file(command)
    if plain is not None and is_file(os.path.join(base, code.path, plain)):  # noqa: PTH118 - as nearly all
        return
    folder = base / code.path
    beside = {include.rstrip("/").rsplit("/", 1)[-1].removesuffix(".zip") for include in code.includes}
    for step in steps(command):
        words = [word for word in step if not ASSIGNMENT.fullmatch(word)]
        script = script_of(words)
        if script is not None:
            first = script.removeprefix("./").split("/", 1)[0]
            if is_dir(folder) and first not in beside and not is_file(folder / script):
                yield _missing(script, folder, code.path)
            return
        if words and words[0].rsplit("/", 1)[-1] not in CREATES_NOTHING:
            return


def _missing(script: str, folder: Path, written: str) -> Finding:
    names = []
    for path in folder.rglob("*"):
        names.append(path.relative_to(folder).as_posix())
        if len(names) == _MOST_NAMES:
            break
    alike = [name for name in names if name.endswith((".py", ".sh"))]
    return Finding(
        "script-missing",
        "command",
        f"The command starts `{script}`, which is not in the code folder `{written}`",
        "A command runs in a copy of the code folder",
        did_you_mean(script.removeprefix("./"), alike, otherwise="Put it there, or name another `code` folder."),
        # A folder without any script may be filled by what builds the job.
        Level.ERROR if alike else Level.WARNING,
    )


def nebula(job: Job, command: str, base: Path) -> Iterator[Finding]:
    """Findings on scripts that import Nebula, and on DeepSpeed configurations that switch it on.

    Args:
        job: The job.
        command: Its command as each node runs it.
        base: Folder that its code is relative to.
    """
    for name, text in _texts(job, command, base):
        if "nebula" in text and (found := check_nebula_gone_file(text, name=name)) is not None:
            yield found


def knows_where_it_was(part: Plan) -> bool:
    """True where a file that the command names speaks of a checkpoint."""
    texts = [text for _, text in _texts(part.job, part.enriched.command, part.base)]
    return any(SPEAKS.search(text) for text in texts)


def _texts(job: Job, command: str, base: Path) -> Iterator[tuple[str, str]]:
    """Name and content of the files of the code that the words of a command name."""
    if job.code is None or not job.code.local:
        return
    words = dict.fromkeys(word.rpartition("=")[2] for step in steps(command) for word in step)
    for name in [word for word in words if word.endswith(_ENDINGS)][:_FILES]:
        if (text := text_of(os.path.join(base, job.code.path, name))) is not None:  # noqa: PTH118 - for each of many jobs
            yield name, text


_USES_SEVERAL = re.compile(
    r"spawn|multiprocessing|subprocess|os\.system|\bDataParallel|lightning|accelerat|deepspeed|transformers|ignite"
    r"|colossalai|torch_?run|elastic|tensorflow|jax|\bray\b|xgboost|lightgbm|cudf|dask|vllm|device_map|pipeline_parallel"
    r"|cuda:[1-9]|device_count",
    re.IGNORECASE,
)
"""Modules by which a script starts other processes, or uses several GPUs from one."""


def idle_gpus(job: Job, lowered: Lowered, target: Target, base: Path) -> Iterator[Finding]:
    """A warning where one process runs on each node and its script shows no way to use the other GPUs.

    Args:
        job: The job.
        lowered: Its launcher in Azure ML's words.
        target: Where it runs; nothing is judged where its size is not known.
        base: Folder that its code is relative to.
    """
    size, one = target.facts, lowered.processes_per_node == 1
    if size is None or size.gpus < 2 or not one or job.code is None or not job.code.local:
        return
    if SOME_GPUS in job.environment_variables:
        return
    if not isinstance(lowered.distribution, PyTorchDistribution | MpiDistribution | None):
        return
    script = plain_script(lowered.command)
    if script is None:
        return
    text = text_of(os.path.join(base, job.code.path, script))  # noqa: PTH118 - of each job
    if text is None or _USES_SEVERAL.search(text):
        return
    yield stated("gpus-idle/idle-gpus", "command", Level.WARNING, script=script, size=size)


_CURATED = re.compile(
    r"(?:azureml://registries/azureml/environments/|azureml:(?=azureml-))(?P<name>[^/@:]+)", re.IGNORECASE
)


def check_environment(job: Job, known: Collection[str] = ()) -> Iterator[Finding]:
    """The form of the environment."""
    value = job.environment
    if isinstance(value, Environment):
        if (value.image is None) == (value.build is None):
            yield Finding(
                "environment-incomplete" if value.image is None else "environment-twice",
                "environment",
                "The environment has neither an image nor a build context"
                if value.image is None
                else "The environment has both an image and a build context",
                "An inline environment is one of the two",
                "Write `image:` or `build: {path: …}`.",
            )
        return
    if PLACEHOLDER.search(value) or value in known or environments.get(value):
        return
    if curated := _CURATED.match(value):
        yield from _of_the_catalogue(curated["name"])
    if value.startswith("azureml:"):
        return
    remedy = did_you_mean(value, (*known, *(item.name for item in environments.all_environments())))
    yield stated("environment-unknown/check-environment", "environment", value=value, remedy=remedy)


def _of_the_catalogue(name: str) -> Iterator[Finding]:
    """A curated name that is retired, or close to one of the catalogue: a warning, since Azure may take it."""
    if (gone := environments.retired(name)) is not None:
        known = f"Azure took the name on {gone.taken:%d %B %Y}" if gone.taken else "Azure may refuse the name"
        yield Finding(
            "environment-retired",
            "environment",
            f"`{name}` is retired: it is no curated environment of {gone.checked:%B %Y}",
            f"{known}, but its image is not renewed",
            "Take " + (" or ".join(f"`{each}`" for each in environments.successors(name)) or "one of today's") + ".",
            Level.WARNING,
        )
        return
    near = () if environments.get(name) else environments.near(name, 1)
    for close in filter(None, map(environments.get, near)):
        yield stated("environment-unknown", "environment", Level.WARNING, name=name, close=close)


_LINE = re.compile(r"^\s*(?P<word>ARG|FROM|RUN)\s+(?P<rest>.*)$", re.IGNORECASE)
_FROM = re.compile(r"(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?\s*(?:#.*)?$", re.IGNORECASE)
_VARIABLE = r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))"
_MAY_BRING_TORCH = (
    r"torch|requirement|\s-[re]\b|\.(?:txt|ya?ml|toml|sh|whl|lock)\b|\binstall\s+\.|\b(?:conda|mamba)\b|\bsync\b"
)
"""Commands after which another PyTorch may run than the image's: they name it, or a file or project that may."""


class Start(NamedTuple):
    """The image of a Dockerfile's last stage, and whether a command of it may bring another PyTorch."""

    image: str
    installs: bool


def start(text: str) -> Start | None:
    """Read a Dockerfile; None where it has no FROM, or one whose argument has no value in it."""
    given: dict[str, str] = {}
    stages: dict[str, Start] = {}
    last: Start | None = None
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        word, rest = found["word"].upper(), found["rest"].strip()
        if word == "ARG":
            name, equals, value = rest.partition("=")
            if equals and last is None:  # after the first FROM an argument is the stage's
                given[name.strip()] = value.strip().strip("\"'")
        elif word == "FROM" and (stage := _FROM.match(_filled(rest, given))) is not None:
            earlier = stages.get(stage["image"].lower())
            last = earlier or Start(stage["image"], installs=False)
            if stage["stage"]:
                stages[stage["stage"].lower()] = last
        elif word == "RUN" and last is not None and re.search(_MAY_BRING_TORCH, rest.lower()):
            stages |= {name: Start(one.image, installs=True) for name, one in stages.items() if one is last}
            last = Start(last.image, installs=True)
    return None if last is None or "$" in last.image else last


def check_build_context(job: Job, target: Target, base: Path) -> Iterator[Finding]:
    """Judges whether the nodes can run what the Dockerfile of a job's own environment starts from.

    Args:
        job: As declared.
        target: Where it runs; nothing is judged where its size is not known.
        base: Folder that relative paths start from.
    """
    environment, size = job.environment, target.facts
    if not isinstance(environment, Environment) or environment.build is None or size is None:
        return
    build = environment.build
    try:
        file = base / str(build.path) / (build.dockerfile_path or "Dockerfile")
        text = file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # a folder that is not there is a finding elsewhere
        return
    begins = start(text)
    image = None if begins is None else images.named(begins.image)
    if begins is None or image is None or size.retired_on(clock.today()):
        return
    yield from check_image_runs(
        image.without_framework() if begins.installs else image,
        size,
        command=job.command,
        variables=job.environment_variables,
        where="environment",
    )


def _filled(text: str, given: dict[str, str]) -> str:
    return re.sub(_VARIABLE, lambda each: given.get(each[1] or each[3]) or each[2] or each[0], text)
