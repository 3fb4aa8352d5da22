"""Takes credentials out of a text before it reaches a log, a message or a state file."""

from __future__ import annotations

import re

_QUERY_OF_SIGNED_URL = re.compile(r"(https?://[^\s\"'?]+)\?[^\s\"'<>]*\bsig=[^\s\"'<>]*", re.IGNORECASE)
_BEARER = re.compile(r"\b(Bearer\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_SIGNATURE = re.compile(r"(\bsig=)[^&\s\"'<>]+", re.IGNORECASE)


def scrub(text: str) -> str:
    """The text without queries of signed URLs (SAS), signatures and bearer tokens."""
    text = _QUERY_OF_SIGNED_URL.sub(r"\1?…", text)
    return _SIGNATURE.sub(r"\1…", _BEARER.sub(r"\1…", text))
