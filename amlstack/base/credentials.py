"""Credentials in texts: their forms and names, and their removal from logs, messages and state files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal

FORMS: Final = (
    (r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----", "a private key"),
    (r"AccountKey=[A-Za-z0-9+/]{40,}={0,2}", "the key of a storage account"),
    (r"[?&]sig=[A-Za-z0-9%+/]{30,}", "a signed URL (SAS)"),
    (r"\bgh[pousr]_[A-Za-z0-9]{36,}", "a GitHub token"),
    (r"\bhf_[A-Za-z0-9]{30,}", "a Hugging Face token"),
    (r"\bAKIA[0-9A-Z]{16}\b", "an AWS access key id"),
    (r"\bxox[baprs]-[A-Za-z0-9-]{20,}", "a Slack token"),
    (r"\beyJ[A-Za-z0-9_-]{20,}\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}", "a JSON web token"),
)
"""Patterns of what is a credential wherever it stands, and what it is."""

_HEADS: Final = re.compile(r"-----BEGIN |AccountKey=|[?&]sig=|gh[pousr]_|hf_|AKIA|xox[baprs]-|eyJ|://")
"""The beginnings of all forms, and of a URL: nearly every text of a job is done after this one search."""

_IN_URL: Final = re.compile(r"://[^/\s:@]*:(?P<value>[^/\s@]+)@")

_PASSWORD: Final = re.compile(r"(?:^|_)(?:PASSWORD|PASSWD|PASSPHRASE|PWD)$")
_KEY: Final = re.compile(
    r"(?:^|_)(?:(?:API|ACCESS|SECRET|PRIVATE|ACCOUNT|STORAGE|AUTH|ENCRYPTION|SIGNING|SUBSCRIPTION)_?KEY|SECRET|"
    r"CREDENTIALS?)$"
)
_TOKEN: Final = re.compile(r"(?:^|_)(?:TOKEN|SAS)$")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_SECRETS: Final = frozenset({"PWD", "OLDPWD"})
"""Variables of every shell that end like a secret's name."""

_ASSIGNED: Final = re.compile(
    r"(?<![\w$.-])(?:(?P<name>[A-Za-z_]\w*)=|--?(?P<option>[A-Za-z][\w-]*)(?:=|[ \t]+))"
    r"(?P<quote>[\"']?)(?P<value>[^\s\"';&|]+)(?P=quote)"
)
"""``NAME=VALUE``, ``--name VALUE`` and ``--name=VALUE`` in a command line, ``Name=Value;`` in a connection string."""

_PLACEHOLDER: Final = r"""(?xis)
          [x*.\-_0]+ | none | null | nil | true | false | todo | tbd | dummy | redacted | hidden
        | change[-_]?me | replace[-_]?me | insert.* | example.* | (?:enter|put|set)?[-_ ]?your.* | .*placeholder.*
        | .*(?:\.\.\.|…).*                     # cut short
        | .*[<{\[$%`].*                        # <key>, {key}, $KEY, ${{inputs.key}}, $(cat key), %KEY%
        | (?:[a-z]+:)?/.* | \.{1,2}/.* | ~/.*  # a path, or a URL: where the secret lies
        | azureml:.* | @.*
    """
_LEAST_KEY, _LEAST_PASSWORD, _LEAST_TOKEN = 8, 4, 16


def form(text: str) -> str | None:
    """The credential that a text holds by its form, e.g. ``a GitHub token``; None for nothing."""
    if _HEADS.search(text) is None:
        return None
    for pattern, what in FORMS:
        if re.search(pattern, text):
            return what
    if any(not re.fullmatch(_PLACEHOLDER, found["value"]) for found in _IN_URL.finditer(text)):
        return "a URL with a password"
    return None


def named(name: str, value: str) -> bool:
    """True where something has the name of a secret, and a value that can be one.

    A token of a language model's vocabulary (``EOS_TOKEN``) is none: a secret is long and holds a digit. Placeholders,
    expressions, and where a secret lies (a path, a URL) are none either.
    """
    kind = _kind(name)
    if kind is None:
        return False
    value = value.strip()
    if re.fullmatch(_PLACEHOLDER, value):
        return False
    if kind == "password":
        return len(value) >= _LEAST_PASSWORD
    if " " in value:
        return False
    if kind == "key":
        return len(value) >= _LEAST_KEY
    return len(value) >= _LEAST_TOKEN and any(map(str.isdigit, value))


@lru_cache(maxsize=4096)  # jobs have few names, and each is asked for in every job
def _kind(name: str) -> Literal["password", "key", "token"] | None:
    """The credential that a value of that name holds, if it is a secret."""
    words = _CAMEL.sub("_", name).replace("-", "_").replace(".", "_").upper()
    if words in _NO_SECRETS:
        return None
    if _PASSWORD.search(words):
        return "password"
    if _KEY.search(words):
        return "key"
    return "token" if _TOKEN.search(words) else None


def assigned(text: str) -> Iterator[str]:
    """Names in a command line or a connection string that `named` takes for secrets, each once."""
    if "=" not in text and "-" not in text:
        return
    seen: set[str] = set()
    for found in _ASSIGNED.finditer(text):
        name = found["name"] or found["option"]
        if name not in seen and named(name, found["value"]):
            seen.add(name)
            yield name if found["name"] else f"--{name}"


_QUERY_OF_SIGNED_URL = re.compile(r"(https?://[^\s\"'?]+)\?[^\s\"'<>]*\bsig=[^\s\"'<>]*", re.IGNORECASE)
_BEARER = re.compile(r"\b(Bearer\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_OF_ANY_FORM = re.compile(rf"(?=(?P<head>{_HEADS.pattern}))(?:{'|'.join(pattern for pattern, _ in FORMS)})")
_SIGNATURE = re.compile(r"(\bsig=)[^&\s\"'<>]+", re.IGNORECASE)


def scrub(text: str) -> str:
    """The text without bearer tokens, signatures of any length, passwords in URLs, and credentials of known forms."""
    if _HEADS.search(text) is None and not any(word in text.casefold() for word in ("bearer", "sig=")):
        return text  # the patterns take twenty times as long
    text = _SIGNATURE.sub(r"\1…", _BEARER.sub(r"\1…", _QUERY_OF_SIGNED_URL.sub(r"\1?…", text)))
    text = _IN_URL.sub(lambda found: f"{found[0].removesuffix(found['value'] + '@')}…@", text)
    return _OF_ANY_FORM.sub(lambda found: f"{found['head']}…", text)
