"""Answers of services as facts: times, ids, etags and hashes become words that say how they are written."""

from __future__ import annotations

import re
from typing import Any, Final

_FORMS: Final = (
    (
        re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?P<part>\.\d+)?(?P<zone>Z|[+-]\d\d:\d\d)?"),
        lambda found: f"<time{'.' if found['part'] else ''}{found['zone'] or ''}>",
    ),
    (re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"), "<date>"),
    (re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"), "<guid>"),
    (re.compile(r"[0-9A-F]{8}-(?:[0-9A-F]{4}-){3}[0-9A-F]{12}"), "<GUID>"),
    (re.compile(r"0x[0-9A-F]{10,}"), "<etag>"),
    (re.compile(r"\b0{5,}\b"), "<hidden>"),
    (re.compile(r"\b[0-9a-f]{16,64}\b"), lambda found: f"<hex{len(found[0])}>"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"), "<ip>"),
    (re.compile(r"\w+\.(?:api\.azureml|experiments\.azureml)(?:-test)?\.(?:ms|net)"), "<region>.api.azureml.ms"),
    (
        re.compile(r"(?:/locations/[^/]+)?/\w*[oO]peration(?:s|s?Status(?:es)?|s?[rR]esults?)/[^/?\"\s]+"),
        "/<operation>",
    ),
    (re.compile(r"^[a-z]{1,2}:<guid>:\S+$"), "<operation>"),
    (re.compile(r"\?(?=\S*\bsig=)[^\"\s]+"), "?<sas>"),
    (re.compile(r"\bml-(?:<workspace>|[\w-]+?)-(?=(\w+)-<guid>\.\1\.notebooks\.)"), "ml-<name>-"),
    (re.compile(r"^__SYS_PE_[\w-]+_amlworkspace$"), "__SYS_PE_<workspace>_amlworkspace"),
    (re.compile(r"^PT(?:\d+[HM])*\d+(?:\.\d+)?S$"), "<duration>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]-<guid>"), "<container>"),
    (re.compile(r"\b\d{4}(?:-\d\d){5}-\d{7}\b"), "<time->"),
    (re.compile(r"(?i)(\$skip(?:token)?=)[^&\"\s]+"), r"\1<token>"),
    (re.compile(r"^bytes \d+-\d+/\d+$"), "bytes <range>"),
    (re.compile(r"\bsig=[^&\"\s]+"), "sig=<sig>"),
    (re.compile(r"\b(s[kt]e?|skoid|sktid|sks|skv)=[^&\"\s]+"), r"\1=<text>"),
    (re.compile(r"\b[0-9A-F]{16}\b"), "<HEX16>"),
    (re.compile(r"<hex(?:19|20)>"), "<number>"),  # of 64 bits
    (re.compile(r"\.z\d+\.web\."), ".<zone>.web."),
    (re.compile(r"\b[A-Z][A-Za-z]+_\d{4}-\d\d-\d\d\b"), "<offer>"),  # of a subscription: what was bought
    (re.compile(r"(?i)(/resourceGroups/)rgpy-\w{60,}"), r"\1<group>"),  # a test's own, which its recorder left in part
    (re.compile(r"^[A-Za-z0-9+/]{22}==$"), "<md5>"),
    (re.compile(r"^[A-Za-z0-9+/]{11}=$"), "<crc64>"),
)


def written(text: str) -> str:
    """A text whose times, ids, etags, hashes and signatures are words for their form."""
    for form, word in _FORMS:
        text = form.sub(word, text)
    return text


def flat(value: Any, at: str = "") -> dict[str, Any]:
    """Path → leaf of a body; an empty object and an empty list are leaves."""
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not rows or not value:
        return {at: value}
    found: dict[str, Any] = {}
    for key, inner in rows:
        found |= flat(inner, f"{at}[{key}]" if isinstance(value, list) else f"{at}.{key}" if at else str(key))
    return found
