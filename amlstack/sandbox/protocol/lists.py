"""Lists: cut into pages that ``nextLink`` leads through, and narrowed to what the query asks for."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode

from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amlstack.sandbox.protocol.kind import Body

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
    """How many rows the earlier pages had, and the key of the last of them; 0 and an empty text for a first page.

    Raises:
        Refused: 400; the token is none that a page gave.
    """
    token = query.get(NEXT)
    return _read(token) if token else (0, "")


def holds(wanted: str, values: Mapping[str, Any]) -> bool:
    """Whether labels have each of the wanted ones: ``name`` with any value, ``name=value`` with that one."""
    for each in filter(None, (part.strip() for part in wanted.split(","))):
        name, given, value = each.partition("=")
        if name not in values or (given and str(values[name]) != value):
            return False
    return True


def count(query: Mapping[str, str], name: str = "$top") -> int | None:
    """How many entries are asked for at most; None for all.

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
