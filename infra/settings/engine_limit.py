"""The size of settings with which the engine can start the program.

The engine hands all configuration over in one environment string, `PULUMI_CONFIG=` and a JSON object of texts, those of
lists and objects JSON themselves (`constructConfig` in Pulumi's pulumi-language-python/main.go and analyzer_plugin.go).
Linux ends one string of a program's environment at 32 pages (MAX_ARG_STRLEN in linux/binfmts.h, execve(2)).
"""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding, Level
from infra.settings.includes import LISTS
from infra.settings.repair import dotted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.settings.stackfile import StackFile

VARIABLE: Final = "PULUMI_CONFIG="
PAGES: Final = 32
_TAG_BYTES: Final = 16
"""What AES-GCM adds to a text."""


def limit() -> int:
    """Bytes of one string of the environment on this machine, its end included: 131,072 where a page has 4 KiB."""
    return PAGES * os.sysconf("SC_PAGE_SIZE")


def length(config: Mapping[str, Any]) -> int:
    """Bytes of the engine's string for what a stack file has under ``config``, its end included.

    An encrypted value counts as long as what it decrypts to, where that can be known, else nothing.
    """
    texts = {key: value if isinstance(value, str) else _go_json(value) for key, value in _clear(config).items()}
    return len(VARIABLE) + len(_go_json(texts).encode(errors="surrogatepass")) + 1


def check(file: StackFile) -> tuple[Finding, ...]:
    """The finding on a stack file whose settings do not fit; none where they do."""
    size, most = length(file.config), limit()
    if size <= most:
        return ()
    sizes = {key: len(_go_json(value)) for key, value in _clear(file.values).items() if key in LISTS}
    largest = max(sizes, key=lambda key: sizes[key], default="clusters")
    found = Finding(
        "settings-too-large",
        dotted((largest,)),
        f"The settings have {size:,} bytes as the engine hands them to the program",
        f"Linux starts no program with more than {most:,} (`argument list too long`)",
        f"Move entries of `amlstack:{largest}` to a file, a list by itself, and write `- include: FILE` in their place",
        Level.ERROR if sys.platform == "linux" else Level.WARNING,
    )
    return (found.at(file.name, *file.locate((largest,))),)


def _clear(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"secure"} and isinstance(value["secure"], str):
            return "-" * _decrypted(value["secure"])
        return {str(key): _clear(item) for key, item in value.items()}
    return [_clear(item) for item in value] if isinstance(value, list) else value


def _decrypted(text: str) -> int:
    """Bytes that an encrypted text of the form ``v1:NONCE:TEXT`` decrypts to."""
    version, _, last = text.partition(":")
    try:
        return max(0, len(base64.b64decode(last.rpartition(":")[2])) - _TAG_BYTES) if version == "v1" else 0
    except ValueError:
        return 0


def _go_json(value: Any) -> str:
    """JSON as Go's encoder writes it: no blanks, and what could end an HTML script as an escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    for character in "<>&\u2028\u2029":
        if character in text:
            text = text.replace(character, f"\\u{ord(character):04x}")
    return text
