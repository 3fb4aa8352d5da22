"""Texts that act on a terminal or on a CI's runner, and what of an output would act."""

from __future__ import annotations

import re

HOSTILE = {
    "a title": "\x1b]0;X\x07",
    "the clipboard": "\x1b]52;c;ZWNobyBoaQ==\x07",
    "colours": "\x1b[31;8mhidden\x1b[0m",
    "C1": "\x9b2J\x9d0;X\x9c",
    "bidi": "a\u202eb\u2066c\u2069",
    "no width": "a\u200bb\ufeffc\u2060",
    "a carriage return": "bad\rgood",
    "a separator of lines": "a\u2028::error::x\u0085::error::y\x0b::error::z\x0c::error::",
    "GitHub": "x\n::error::forged\n  ::add-mask::x\n##[add-mask]x",
    "Azure Pipelines": "x\n##vso[task.setvariable variable=a]b",
    "a null": "a\0b\x7f",
}
"""Texts by what they try."""
_ACTS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_COMMANDS = re.compile(r"^\s*::|##(?:vso)?\[", re.MULTILINE)
_OURS = re.compile(r"\x1b\[(?:0|1|2|3[1-6])m")
"""Colours that this project prints."""


def acting(output: str) -> list[str]:
    """The parts of an output that act: there should be none."""
    output = _OURS.sub("", output)
    return [*_ACTS.findall(output), *_COMMANDS.findall(output)]
