"""The body of a request: bounded, decoded and well-formed, or refused with a 4xx."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from amlstack.sandbox.arm.refusals import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

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
