"""Parts of a request beside its path and body: a page of a list, a state of the resource, its identity."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode

from amlstack.sandbox.protocol import entra
from amlstack.sandbox.protocol.refusals import Refused, invalid

if TYPE_CHECKING:
    from starlette.requests import Request

    from amlstack.sandbox.protocol.kind import Body, KindContext
    from amlstack.sandbox.store.store import ResourceRow

HEADER = "x-azureml-token"
_JOB = re.compile(r"(?P<workspace>.*/workspaces/[^/]+)/jobs/(?P<name>[^/]+)", re.IGNORECASE)


def check_identity(context: KindContext, path: str, body: Any, token: str | None) -> None:
    """Refuses (400) the PUT of a new job that acts for a person and does not bring that person's token.

    Args:
        context: State and address.
        path: Of the request.
        body: Its body.
        token: The header's value.
    """
    found, kind = _JOB.fullmatch(path), acting_job(body)
    if found is None or not kind or context.store.jobs.find(found["workspace"], found["name"]) is not None:
        return
    rule = (
        f"The PUT of {kind} carries a token for https://ml.azure.com in the header '{HEADER}', as azure-ai-ml sends it"
    )
    if not token or not token.isascii():
        raise Refused(400, "UserError", f"{rule}. The request has no such header.")
    try:
        audience = entra.audience_of(context.key, token)
    except Refused as refused:
        raise Refused(400, "UserError", f"{rule}. {refused.message}") from None
    if audience not in entra.machine_learning(context.base):
        raise Refused(400, "UserError", f"{rule}. The token of this request is for '{audience}'.")


def acting_job(body: Any) -> str:
    """The thing that makes a job act for a person, in words; empty for a job that acts for itself."""
    properties = body.get("properties") if isinstance(body, dict) else None
    if not isinstance(properties, dict):
        return ""
    if properties.get("jobType") == "Pipeline":
        return "a pipeline"
    given = properties.get("identity")
    user = isinstance(given, dict) and given.get("identityType") == "UserIdentity"
    return "a job with the identity UserIdentity" if user else ""


PAGE: Final = 100
"""Entries of a page. How many Azure gives differs between services, and is documented for none of these lists."""
NEXT: Final = "$skip"
"""The query parameter that carries the place where the next page begins, as the interfaces of Azure ML name it."""

_Row = TypeVar("_Row")


def page(
    address: str,
    query: Mapping[str, str],
    rows: Sequence[_Row],
    key: Callable[[_Row], str],
    render: Callable[[_Row], Body],
    *,
    left_out: int = 0,
) -> Body:
    """The answer of a list: ``value``, and ``nextLink`` where there is more.

    Args:
        address: Of the request, without its query.
        query: Of the request.
        rows: The whole list, in its order; or as many of what `behind` leaves as a page has, and one more.
        key: What names a row: the next page begins behind the row that ended this one, wherever it is by then.
        render: A row as it is answered.
        left_out: How many rows of earlier pages are not among them.

    Raises:
        Refused: 400; the token is none that a page gave.
    """
    begin = 0
    if (token := query.get(NEXT)) and not left_out:
        place, last = _read(token)
        known = [key(row) for row in rows]
        begin = known.index(last) + 1 if last in known else place
    shown = rows[begin : begin + PAGE]
    answer: Body = {"value": [render(row) for row in shown]}
    if len(rows) > begin + PAGE:
        following = {**query, NEXT: _token(left_out + begin + PAGE, key(shown[-1]))}
        answer["nextLink"] = f"{quote(address, safe=':/')}?{urlencode(following)}"
    return answer


def behind(query: Mapping[str, str]) -> tuple[int, str]:
    """The count of the earlier pages' rows, and the key of the last of them; 0 and an empty text for a first page.

    Raises:
        Refused: 400; the token is none that a page gave.
    """
    token = query.get(NEXT)
    return _read(token) if token else (0, "")


def holds(wanted: str, values: Mapping[str, Any]) -> bool:
    """True where labels have each of the wanted ones: ``name`` with any value, ``name=value`` with that one."""
    for each in filter(None, (part.strip() for part in wanted.split(","))):
        name, given, value = each.partition("=")
        if name not in values or (given and str(values[name]) != value):
            return False
    return True


def count(query: Mapping[str, str], name: str = "$top") -> int | None:
    """The number of entries that are asked for at most; None for all.

    Raises:
        Refused: 400; it is no positive whole number.
    """
    text = query.get(name)
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        message = f"The value '{text}' of the query parameter '{name}' is invalid: a whole number from 1 on."
        raise Refused(400, "InvalidQueryParameterValue", message, name)
    return int(text)


def _token(place: int, last: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([place, last]).encode()).decode().rstrip("=")


def _read(token: str) -> tuple[int, str]:
    try:
        place, last = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        if not isinstance(last, str) or type(place) is not int or place < 0:
            raise ValueError(token)  # noqa: TRY301 - the same refusal as of what cannot be read
    except (ValueError, TypeError):
        message = f"The value of the query parameter '{NEXT}' is none that an earlier page gave."
        raise Refused(400, "InvalidQueryParameterValue", message, NEXT) from None
    return place, last


LIMIT = 4 << 20
"""Bytes: the resource manager's own bound for a request."""
DISCARDED = 4 * LIMIT
"""Bytes that are read and thrown away beyond the bound, so that a client which is still sending sees the answer."""
DEPTH = 64
"""Levels of nesting. Bodies of jobs, with a pipeline in a schedule, have fewer than 20; Azure's bound:
docs/reference/unproven.md#nested-json."""


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
    raise ValueError(f"{text} is no number that JSON can hold")


def _too_deep() -> Refused:
    message = f"The request content was invalid: it is nested deeper than {DEPTH} levels."
    return Refused(400, "InvalidRequestContent", message)


def _too_large() -> Refused:
    message = f"The request content size exceeds the limit of {LIMIT} bytes (4 MB). Send less."
    return Refused(413, "RequestContentTooLarge", message)


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_STORED: Final = ("azureml:", "https:", "http:", "wasbs:", "abfss:")
"""The beginnings of addresses of stored data; those of files of this machine are as its user says."""
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


def check_etag(headers: Mapping[str, str], before: ResourceRow | None) -> None:
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
        raise Refused(412, "PreconditionFailed", f"The condition 'If-None-Match: {unwanted}' is not met: {seen}.")


def _names(tags: str, row: ResourceRow) -> bool:
    names = {"*", row.etag, storage_etag(row)}
    return any(tag.strip().removeprefix("W/").strip('"').replace("-", "") in names for tag in tags.split(","))


def storage_etag(row: ResourceRow) -> str:
    """The etag of a resource as storage writes it."""
    return f"0x8D{row.etag[:11].upper()}"
