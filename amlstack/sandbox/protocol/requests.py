"""The body of a request: bounded, decoded and well-formed, or refused with a 4xx.

Paths of requests, whose names become names of files, rows and folders: none of them leads anywhere else.

Conditional requests: what is done only to the state of a resource that the client has seen.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

from amlstack.sandbox.protocol.refusals import Refused, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from amlstack.sandbox.store.store import ResourceRow

LIMIT = 4 << 20
"""Bytes: the resource manager's own bound for a request."""
DISCARDED = 4 * LIMIT
"""Bytes that are read and thrown away beyond the bound, so that a client which is still sending sees the answer."""
DEPTH = 64
"""Levels of nesting. Azure's bound is not known; bodies of jobs, with a pipeline in a schedule, have fewer than 20."""


async def read(request: Request) -> bytes:
    """The whole body.

    Raises:
        Refused: 413; nothing beyond the bound is kept, and reading ends soon after it.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > DISCARDED:
        raise _too_large()
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size <= LIMIT:
            parts.append(part)
        elif size > DISCARDED:
            break
        else:
            parts.clear()
    if size > LIMIT:
        raise _too_large()
    return b"".join(parts)


def parse(raw: bytes) -> Any:
    """JSON that can be stored and answered again; an empty object for no body.

    Raises:
        Refused: 400; it is no JSON, nested too deep, or holds what JSON has no form for (NaN, half a character).
    """
    if not raw:
        return {}
    try:
        value = json.loads(raw, parse_constant=_no_number, parse_float=_float)
        _check_depth(value)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        # The message of a half character names the character and not the text around it.
        raise Refused(400, "InvalidRequestContent", f"The request content was invalid: {error}.") from None
    return value


def form(raw: bytes) -> dict[str, str] | None:
    """The fields of a form; None where it is not text."""
    try:
        fields = dict(parse_qsl(raw.decode("ascii"), errors="strict"))
    except ValueError:
        return None
    return fields if all(value.isascii() for value in fields.values()) else None


def authorization(request: Request, header: str = "authorization") -> str | None:
    """The header with the token.

    Args:
        request: Of the client.
        header: Its name.

    Raises:
        Refused: 401; it holds characters that no token has.
    """
    text = request.headers.get(header)
    if text is not None and not text.isascii():
        raise Refused(401, "InvalidAuthenticationToken", "The access token is invalid: it holds non-ASCII characters.")
    return text


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH):
        nested = (
            outer.values() if isinstance(outer, dict) else outer for outer in level if isinstance(outer, dict | list)
        )
        level = [inner for values in nested for inner in values]
        if not level:
            return
    raise _too_deep()


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        _no_number(text)
    return value


def _no_number(text: str) -> float:
    message = f"{text} is no number that JSON can hold"
    raise ValueError(message)


def _too_deep() -> Refused:
    message = f"The request content was invalid: it is nested deeper than {DEPTH} levels."
    return Refused(400, "InvalidRequestContent", message)


def _too_large() -> Refused:
    message = f"The request content size exceeds the limit of {LIMIT} bytes (4 MB). Send less."
    return Refused(413, "RequestContentTooLarge", message)


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_STORED: Final = ("azureml:", "https:", "http:", "wasbs:", "abfss:")
"""How addresses of stored data begin; those of files of this machine are as its user says."""
UP: Final = frozenset({".", ".."})


def addresses_read(raw: str) -> str:
    """The path of a request to the resource manager or a data plane, decoded.

    Raises:
        Refused: 400; a part of it is ``.`` or ``..`` or holds a slash, a backslash or a control character, written
            out or percent-encoded, or is no UTF-8.
    """
    return "/".join(_part(word) for word in raw.split("/"))


def check_name(name: str) -> str:
    """The name of a blob, decoded; it may hold slashes.

    Raises:
        Refused: 400; it begins with a slash, or one of its parts is none that `read` takes.
    """
    wrong = "begins with a slash" if name.startswith("/") else next(filter(None, map(_wrong, name.split("/"))), "")
    if wrong:
        message = f"The requested URI does not represent any resource on the server: it {wrong}."
        raise Refused(400, "InvalidUri", message)
    return name


def decoded(raw: str) -> str:
    """Percent-encoded text as text.

    Raises:
        Refused: 400; it is no UTF-8.
    """
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        raise Refused(400, "InvalidUri", "The path of the request is no UTF-8.") from None


def check_folder_name(name: str, where: str) -> None:
    """A name that becomes the name of a folder: of a job's input or output, an account, a container.

    Raises:
        Refused: 400; it is empty, has a slash, or is no name by `read`.
    """
    wrong = "is empty" if not name else "holds a slash" if "/" in name else _wrong(name)
    if wrong:
        raise invalid(where, f"the name '{name}' {wrong}.")


def check_uri(uri: str, where: str) -> None:
    """The address of data in a datastore or a container.

    Raises:
        Refused: 400; a part of its path is ``..``, written out or percent-encoded, or holds a control character.
    """
    if not uri.lower().startswith(_STORED):
        return
    parts = unquote(uri.partition("?")[0]).replace("\\", "/").split("/")
    if ".." in parts or _CONTROL.search(unquote(uri)):
        raise invalid(where, f"'{uri}' leads out of its folder, or holds a control character.")


def _part(word: str) -> str:
    name = decoded(word)
    wrong = "holds a percent-encoded slash" if "/" in name else _wrong(name)
    if wrong:
        message = f"The path of the request {wrong}. Its parts are names, each without slashes and control characters."
        raise Refused(400, "InvalidUri", message)
    return name


def _wrong(name: str) -> str:
    if name in UP:
        return f"has the part '{name}'"
    if "\\" in name:
        return "holds a backslash"
    return "holds a control character" if _CONTROL.search(name) else ""


def check(headers: Mapping[str, str], before: ResourceRow | None) -> None:
    """Judges ``If-Match`` and ``If-None-Match`` of a write.

    Args:
        headers: Of the request, by names in lower-case letters.
        before: The resource as it is now; None when there is none.

    Raises:
        Refused: 412 PreconditionFailed.
    """
    wanted, unwanted = headers.get("if-match"), headers.get("if-none-match")
    seen = "there is none" if before is None else f'it is "{before.etag}" now'
    if wanted is not None and (before is None or not _names(wanted, before)):
        message = f"The condition 'If-Match: {wanted}' is not met: {seen}. Get the resource again and repeat."
        raise Refused(412, "PreconditionFailed", message)
    if unwanted is not None and before is not None and _names(unwanted, before):
        message = f"The condition 'If-None-Match: {unwanted}' is not met: {seen}."
        raise Refused(412, "PreconditionFailed", message)


def _names(tags: str, row: ResourceRow) -> bool:
    return any(tag.strip().removeprefix("W/").strip('"') in {"*", row.etag} for tag in tags.split(","))
