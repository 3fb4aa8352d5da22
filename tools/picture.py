"""``python tools/picture.py FILE COMMAND…``: runs a command in a terminal and draws what it printed as an SVG.

Of more than four lines in a row with one first word, as of resources that are created, the first two are drawn.
"""

from __future__ import annotations

import os
import pty
import re
import sys
from itertools import groupby
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

WIDTH = 110
FONTS = re.compile(r"@font-face \{\{.*?\}\}\n", re.DOTALL)
"""The fonts that rich would load from another host: the reader's own monospaced one serves."""


def main(file: str, *command: str) -> int:
    """Runs the command, shows and draws its output; its exit status."""
    printed = bytearray()

    def read(terminal: int) -> bytes:
        printed.extend(chunk := os.read(terminal, 65536))
        return chunk

    os.environ |= {"COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    status = os.waitstatus_to_exitcode(pty.spawn(command, read))
    text = printed.decode(errors="replace").replace("\r\n", "\n").replace(str(Path.cwd()), "~/amlstack")
    lines = [Text.from_ansi(line.rpartition("\r")[2].replace("\x1b[K", "")) for line in text.splitlines()]
    with Path(os.devnull).open("w") as nowhere:
        drawn = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        for _, alike in groupby(lines, lambda line: re.sub(r"^[\d. s·]*", "", line.plain).partition(" ")[0] or line):
            same = list(alike)
            shown = same if len(same) < 5 else [*same[:2], Text(f"        … {len(same) - 2} more")]
            for line in shown:
                drawn.print(line, no_wrap=True, overflow="ellipsis")
        form = FONTS.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, monospace", "monospace")
        drawn.save_svg(file, title=" ".join(command).removesuffix(" YES=1"), code_format=form)
    return status


sys.exit(main(*sys.argv[1:]))
