"""Shell completion: verbs, their options, stacks, sizes and regions. Files are left to the shell."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import paths

if TYPE_CHECKING:
    import typer

_BASH: Final = 'complete -o bashdefault -o default -C "amlstack --complete" amlstack'
SHELLS: Final = {
    "bash": _BASH,
    "zsh": f"autoload -U +X bashcompinit && bashcompinit\n{_BASH}",
    "fish": "complete -c amlstack -a '(COMP_LINE=(commandline -cp) amlstack --complete)'",
}
"""Lines for the file that a shell reads first; each asks `amlstack --complete`, which reads COMP_LINE."""


def candidates(verbs: Mapping[str, Callable[[], typer.Typer]], environ: Mapping[str, str] = os.environ) -> list[str]:
    """The words that may stand at the end of the line; none where a file or a value of one's own belongs there.

    Args:
        verbs: Name → the app of each verb.
        environ: Holds the line up to the cursor, as bash gives it.
    """
    line = environ.get("COMP_LINE", "")
    line = line[: int(environ.get("COMP_POINT") or len(line))]
    words = line.split()[1:]
    last = "" if not words or line[-1:].isspace() else words.pop()
    return sorted(word for word in _known(verbs, words, last) if word.startswith(last))


def _known(verbs: Mapping[str, Callable[[], typer.Typer]], words: list[str], last: str) -> Iterable[str]:
    from typer.main import get_command

    if not words:
        return verbs
    if words[0] not in verbs:
        return ()
    command: Any = get_command(verbs[words[0]]())
    for word in words[1:]:
        command = getattr(command, "commands", {}).get(word, command)
    match words[-1]:
        case "--stack" | "-s" | "--like":
            from amlstack.cli.stack_files import stack_names

            return stack_names(paths.PROJECT)
        case "--size":
            from amlstack.catalog import sizes

            return (size.name for size in sizes.all_sizes())
        case "--location":
            from amlstack.catalog import regions

            return regions.names()
    options = (option for each in command.params for option in (*each.opts, *each.secondary_opts) if option[0] == "-")
    return (*options, "--help") if last.startswith("-") else getattr(command, "commands", ())
