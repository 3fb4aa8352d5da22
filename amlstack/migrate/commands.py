"""The command of a job out of script, arguments and `command=`; torchrun in the place of torch.distributed.launch."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from amlstack.migrate.data import DATA, OUTPUTS, text
from amlstack.migrate.values import Made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amlstack.migrate.data import JobPorts

_PLAIN: Final = re.compile(r"[\w@%+=:,./{}$<>()\[\]*-]+|\$\{\{.*\}\}")
_LAUNCH: Final = re.compile(r"(?P<python>\S*python3?)\s+-m\s+torch\.distributed\.launch\b(?P<rest>.*)", re.DOTALL)
_ITS_FLAGS: Final = frozenset(("--use_env", "--use-env", "--module", "-m", "--no_python", "--no-python"))
_V1_VARIABLES: Final = {
    "AZUREML_DATAREFERENCE_": "the path of an input: hand it on with ${{inputs.NAME}}",
    "AZ_BATCHAI_": "set for MPI jobs alone, some of them",
    "AZ_BATCH_NODE_LIST": "not set; the nodes are MASTER_ADDR and NODE_RANK",
    "AZUREML_SERVICE_ENDPOINT": "not meant for jobs of v2",
}
"""Beginnings of variables that v1's jobs have and those of v2 do not, or not all."""


def quoted(word: str) -> str:
    """A word as a shell takes it for one; variables and bindings stay what they are."""
    if _PLAIN.fullmatch(word) or not word:
        return word or "''"
    if "$" in word:
        return '"' + re.sub(r'(["\\`])', r"\\\1", word) + '"'
    return shlex.quote(word)


def words_of(arguments: Any, data: JobPorts, parameter: Callable[[Made], str]) -> Iterator[str]:
    """The words of arguments, each as a shell takes it."""
    if isinstance(arguments, dict):  # `script_params`: a flag has an empty value
        arguments = [each for name, value in arguments.items() for each in ((name,) if value == "" else (name, value))]
    if not isinstance(arguments, (list, tuple)):
        arguments = [] if arguments is None else [arguments]
    before = ""
    for value in arguments:
        if isinstance(value, Made) and value.kind in DATA | OUTPUTS:
            yield data.word(value, before)
        elif isinstance(value, Made) and value.kind == "PipelineParameter":
            yield parameter(value)
        else:
            yield quoted(text(value))
        before = value if isinstance(value, str) else ""


def joined(command: Any, data: JobPorts, parameter: Callable[[Made], str]) -> str:
    """A `command=`: v1 puts spaces between the parts of a list, and a shell reads the whole."""
    parts = [command] if isinstance(command, (str, Made)) or not isinstance(command, (list, tuple)) else command
    shown = []
    for part in parts:
        special = isinstance(part, Made) and part.kind in DATA | OUTPUTS | {"PipelineParameter"}
        shown.append(next(words_of([part], data, parameter)) if special else text(part))
    whole = " ".join(shown)
    return whole.strip() if "'" in whole or '"' in whole or "\n" in whole else " ".join(whole.split())


def with_torchrun(command: str) -> tuple[str, str]:
    """A command with torchrun, and the reason where torch.distributed.launch stays; both as they are without it."""
    found = _LAUNCH.search(command)
    if found is None:
        return command, ""
    words = found["rest"].split(" ")
    options = _options(words)
    if not {"--use_env", "--use-env"} & {*options}:
        return command, (
            "without `--use_env` it gives each script `--local_rank=N` (from PyTorch 2.0 on `--local-rank=N`), "
            "which torchrun does not"
        )
    rest = " ".join(
        word for number, word in enumerate(words) if number >= len(options) or word not in ("--use_env", "--use-env")
    )
    return f"{command[: found.start()]}torchrun{' ' if not rest.startswith(' ') else ''}{rest}", ""


def _options(words: list[str]) -> list[str]:
    """The launcher's own words: all up to the script."""
    value = False
    for number, word in enumerate(words):
        if not word:
            continue
        if value:
            value = False
        elif word.startswith("-"):
            value = "=" not in word and word not in _ITS_FLAGS
        else:
            return words[:number]
    return words


def variables_of_v1(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The variables of v1 that texts name, with what there is in their place."""
    whole = "\n".join(texts)
    for beginning, instead in _V1_VARIABLES.items():
        for name in dict.fromkeys(re.findall(rf"\b{beginning}\w*", whole)):
            yield name, instead


def script(name: Any) -> str:
    """A script's path in its code folder."""
    return quoted(str(PurePosixPath(text(name)))) if text(name) else ""
