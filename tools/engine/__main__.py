"""``python3 tools/engine [--json]`` from anywhere, or ``python -m tools.engine`` from the root of the clone."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - any python3 may be asked to run this file
    sys.exit(f"Python {sys.version_info[0]}.{sys.version_info[1]} was found; amlstack needs 3.11 or newer.")

if not __package__:
    # Run as a folder: its parent makes `engine` a package, so that both ways share the relative imports.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from engine.cli import main  # type: ignore[import-not-found, unused-ignore]
else:
    from .cli import main

sys.exit(main(sys.argv[1:]))
