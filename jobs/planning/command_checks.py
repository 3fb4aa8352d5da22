"""Checks of the words of a command before it runs, and of the files that they name.

Found are a script that is not there, words that the shell expands, packages that are gone, the place of a checkpoint,
and GPUs that no process of the job would use.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.base.paths import is_dir, is_file
from amlstack.base.text import did_you_mean
from amlstack.code_reading.code_files import text_of
from amlstack.code_reading.shell import ASSIGNMENT, plain_file, plain_script, script_of, steps
from jobs.launchers.base import MpiDistribution, PyTorchDistribution
from policies.checks.job_command import SPEAKS, check_nebula_gone_file
from policies.checks.job_limits import GPUS_IDLE_RULE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jobs.launchers.base import Lowered
    from jobs.model.job import Job
    from jobs.planning.plans import Plan, Target
    from jobs.values import Code

_SHELL = re.compile(r"(?<!\$)\$\{\s*(?P<kind>inputs|outputs|search_space)\.(?P<name>[\w.-]+)\s*\}(?!\})")
_LOCAL_RANK = re.compile(r"--local[_-]rank(?:=|\s+)[\"']?\$\{?RANK\b")
_CREATES_NOTHING = frozenset({"pip", "pip3", "conda", "apt", "apt-get", "export", "echo", "ls", "nvidia-smi", "set",
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
    yield from _expanded_by_the_shell(job)
    if _LOCAL_RANK.search(job.command) and job.nodes not in (None, 1):
        yield Finding(
            "local-rank-from-rank",
            "command",
            "The command passes the global rank, `$RANK`, as the local rank",
            "A local rank counts the processes of one node; from the second node on the global rank is higher",
            "Write `$LOCAL_RANK`.",
            Level.ERROR if job.typed else Level.WARNING,
        )
    if job.code is not None and job.code.local:
        yield from _scripts(job.command, job.code, base)


def _expanded_by_the_shell(job: Job) -> Iterator[Finding]:
    if "${" not in job.command.replace("${{", ""):
        return
    for match in {found[0]: found for found in _SHELL.finditer(job.command)}.values():
        yield Finding(
            "binding-of-the-shell",
            "command",
            f"`{match[0]}` has one brace on each side, so that the shell expands it",
            "A binding has two braces on each side; the shell knows no such variable",
            f"Write `${{{{{match['kind']}.{match['name']}}}}}`.",
        )


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
        if words and words[0].rsplit("/", 1)[-1] not in _CREATES_NOTHING:
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
"""What a script may start other processes by, or use several GPUs from one."""


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
    if not isinstance(lowered.distribution, PyTorchDistribution | MpiDistribution | None):
        return
    script = plain_script(lowered.command)
    if script is None:
        return
    text = text_of(os.path.join(base, job.code.path, script))  # noqa: PTH118 - of each job
    if text is None or _USES_SEVERAL.search(text):
        return
    yield Finding(
        GPUS_IDLE_RULE.code,
        "command",
        f"`python {script}` is one process on each node, and {size.name} has {size.gpus} GPUs",
        "A process drives one GPU, the others of the node stay idle",
        f"Start {size.gpus}: `torchrun --nproc_per_node {size.gpus} {script}`, or a distribution with "
        f"process_count_per_instance: {size.gpus}; or take a smaller size.",
        Level.WARNING,
    )
