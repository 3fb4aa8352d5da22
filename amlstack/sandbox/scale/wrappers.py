"""Programs of a rehearsal's PATH that stand before launchers, and scale the counts in their words."""

from __future__ import annotations

import shlex
import shutil
import sys
from typing import TYPE_CHECKING

from amlstack.code_reading import starters, starting

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.scale.scale import RehearsalScale

FOLDER = "scaled-launchers"
_PYTHON = """\
#!/bin/sh
case " $* " in {modules}|*num[-_]nodes*devices*|*devices*num[-_]nodes*) exec {scaling} {program} "$@";; esac
exec {program} "$@"
"""
_LAUNCHER = '#!/bin/sh\nexec {scaling} {program} "$@"\n'


def write(folder: Path, path: str, scale: RehearsalScale, declared: int) -> str:
    """Writes a wrapper for each launcher that is on a PATH.

    Args:
        folder: The job's temporary folder.
        path: PATH of the job's processes.
        scale: What the counts are scaled to.
        declared: Nodes that the job declares.

    Returns:
        PATH with the wrappers first.
    """
    made = folder / FOLDER
    made.mkdir(exist_ok=True)
    scaling = shlex.join([sys.executable, "-I", "-S", starting.__file__, str(scale), str(declared)])
    modules = "|".join(f'*" -m {module} "*' for module in starters.MODULES)
    for name in starters.PROGRAMS:
        found = shutil.which(name, path=path)
        if found is None:
            continue
        text = _PYTHON if name.startswith("python") else _LAUNCHER
        wrapper = made / name
        # Most calls of Python start no launcher, and go on at once; what looks like one is read exactly by `starters`.
        wrapper.write_text(text.format(scaling=scaling, program=shlex.quote(found), modules=modules))
        wrapper.chmod(0o700)
    return f"{made}:{path}"
