"""The command of a job out of script, arguments and `command=`; torchrun in the place of torch.distributed.launch."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from amlstack.migrate.data import DATA, OUTPUTS, JobPorts, listed, text
from amlstack.migrate.values import Made

_PLAIN: Final = re.compile(r"[\w@%+=:,./{}$<>()\[\]*-]+|\$\{\{.*\}\}")
_LAUNCH: Final = re.compile(r"(?P<python>\S*python3?)\s+-m\s+torch\.distributed\.launch\b(?P<rest>.*)", re.DOTALL)
_ITS_FLAGS: Final = frozenset(("--use_env", "--use-env", "--module", "-m", "--no_python", "--no-python"))
_LOGS: Final = "they are `user_logs/std_log_process_00.txt` and so on, one for each process"
_V1_NAMES: Final = {
    r"\bAZUREML_DATAREFERENCE_\w*": ("variable", "the path of an input: hand it on with ${{inputs.NAME}}"),
    r"\bAZ_BATCHAI_\w*": ("variable", "set for MPI jobs alone, some of them"),
    r"\bAZ_BATCH_NODE_LIST\b": ("variable", "not set; the nodes are MASTER_ADDR and NODE_RANK"),
    r"\bAZUREML_SERVICE_ENDPOINT\w*": ("variable", "not meant for jobs of v2"),
    r"\bazureml-logs\b(?:/[\w.-]+)?|(?<![\w/])\d0_driver_log[\w.]*": ("log", _LOGS),
}
"""Variables and logs that v1's jobs have and those of v2 do not, or not all, each with the note that names it."""


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
    before = ""
    for value in listed(arguments):
        yield _bound(value, before, data, parameter) or quoted(text(value))
        before = value if isinstance(value, str) else ""


def _bound(value: Any, before: str, data: JobPorts, parameter: Callable[[Made], str]) -> str:
    """The binding of an input, an output or a parameter; empty for other values."""
    if isinstance(value, Made) and value.kind in DATA | OUTPUTS:
        return data.word(value, before)
    return parameter(value) if isinstance(value, Made) and value.kind == "PipelineParameter" else ""


def joined(command: Any, data: JobPorts, parameter: Callable[[Made], str]) -> str:
    """A `command=`: v1 puts spaces between the parts of a list, and a shell reads the whole."""
    whole = " ".join(_bound(part, "", data, parameter) or text(part) for part in listed(command))
    return whole.strip() if "'" in whole or '"' in whole or "\n" in whole else " ".join(whole.split())


def with_torchrun(command: str) -> tuple[str, bool]:
    """A command with torchrun, and True where torch.distributed.launch stays."""
    found = _LAUNCH.search(command)
    if found is None:
        return command, False
    words = found["rest"].split(" ")
    options = _options(words)
    kept = [word for word in options if word not in ("--use_env", "--use-env")]
    if len(kept) == len(options):
        return command, True
    rest = " ".join([*kept, *words[len(options) :]])
    return f"{command[: found.start()]}torchrun{' ' if not rest.startswith(' ') else ''}{rest}", False


def _options(words: list[str]) -> list[str]:
    """The launcher's own words: all up to the script."""
    takes = False
    for number, word in enumerate(words):
        if word and not takes and not word.startswith("-"):
            return words[:number]
        if word:
            takes = not takes and "=" not in word and word not in _ITS_FLAGS
    return words


def names_of_v1(lines: Iterable[str]) -> Iterator[tuple[int, str, dict[str, str]]]:
    """The variables and logs of v1 that lines name, each once: the line's number, the note, and its values."""
    met: set[str] = set()
    for number, line in enumerate(lines, 1):
        for pattern, (note, instead) in _V1_NAMES.items():
            for name in {*re.findall(pattern, line)} - met:
                met.add(name)
                yield number, note, {"name": name, "instead": instead}
