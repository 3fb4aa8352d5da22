"""Containers: made, looked at, and listed page by page."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from starlette.responses import Response

from amlstack.sandbox.arm.ids import ML
from amlstack.sandbox.arm.refusals import Refused
from amlstack.sandbox.data.blobs import wire
from amlstack.sandbox.data.datastore_places import account_and_container

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.data.blobs.wire import BlobPlace
    from amlstack.sandbox.kinds.base import KindContext
    from amlstack.sandbox.store.store import Blob, Container

DATASTORES = f"{ML}/workspaces/datastores"
NAMES = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*|\$root|\$web")
PAGE = 5000
"""The most entries of a page, and as many as a client gets that asks for no number."""


def make(context: KindContext, place: BlobPlace) -> Response:
    """Answers a PUT of a container."""
    if not NAMES.fullmatch(place.container):
        message = (
            f"The specified resource name '{place.container}' is invalid. Containers have 3 to 63 lower-case letters, "
            "digits and single hyphens, no hyphen at either end."
        )
        raise Refused(400, "InvalidResourceName", message)
    with context.store.transaction():
        if _exists(context, place):
            raise Refused(409, "ContainerAlreadyExists", "The specified container already exists.")
        made = context.store.blobs.make_container(place.account, place.container)
    return Response(status_code=201, headers=wire.stamp(made.etag, made.changed))


def show(context: KindContext, place: BlobPlace) -> Response:
    """Answers a GET or HEAD of a container."""
    check(context, place)
    made = _made(context, place)
    state = {"x-ms-lease-status": "unlocked", "x-ms-lease-state": "available"}
    return Response(headers={**(wire.stamp(made.etag, made.changed) if made else wire.common()), **state})


def check(context: KindContext, place: BlobPlace) -> None:
    """Refuses (404) what is asked of a container that does not exist."""
    if not _exists(context, place):
        message = f"The specified container '{place.container}' does not exist."
        raise Refused(404, "ContainerNotFound", message)


def listing(context: KindContext, place: BlobPlace, query: Mapping[str, str]) -> Response:
    """Answers a list of blobs: those with a prefix, cut at a delimiter, ``maxresults`` of them from ``marker`` on."""
    check(context, place)
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    most, after = _most(query), _place_of(query.get("marker", ""))
    found: dict[str, str] = {}
    following = ""
    for name, text in _entries(
        context.store.blobs.listed(place.account, place.container, prefix, after), prefix, delimiter
    ):
        if name <= after or name in found:
            continue
        if len(found) == most:
            following = _marker(next(reversed(found)))
            break
        found[name] = text
    asked = {
        "Prefix": prefix,
        "Marker": query.get("marker"),
        "MaxResults": query.get("maxresults"),
        "Delimiter": delimiter,
    }
    echo = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in asked.items() if value)
    text = (
        f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="{escape(place.container)}">{echo}'
        f"<Blobs>{''.join(found.values())}</Blobs><NextMarker>{following}</NextMarker></EnumerationResults>"
    )
    return Response(text, headers=wire.common(), media_type="application/xml")


def _exists(context: KindContext, place: BlobPlace) -> bool:
    """It was made, holds something, or is a datastore's."""
    if _made(context, place) or next(context.store.blobs.listed(place.account, place.container), None) is not None:
        return True
    wanted = place.account, place.container
    rows = context.store.resources.of_type(DATASTORES)
    return any(account_and_container(row.body["properties"]) == wanted for row in rows)


def _made(context: KindContext, place: BlobPlace) -> Container | None:
    return context.store.blobs.container(place.account, place.container)


def _entries(blobs: Iterator[Blob], prefix: str, delimiter: str) -> Iterator[tuple[str, str]]:
    """Name and XML of the blobs and folders of a list, in the order of their names; a folder once for each blob."""
    for blob in blobs:
        head, cut, _ = blob.name[len(prefix) :].partition(delimiter) if delimiter else (blob.name, "", "")
        if cut:
            folder = prefix + head + cut
            yield folder, f"<BlobPrefix><Name>{escape(folder)}</Name></BlobPrefix>"
            continue
        md5 = f"<Content-MD5>{blob.md5}</Content-MD5>" if blob.md5 else ""
        text = (
            f"<Blob><Name>{escape(blob.name)}</Name><Properties><Last-Modified>{wire.date(blob.changed)}</Last-Modified>"
            f"<Etag>{blob.etag}</Etag><Content-Length>{blob.size}</Content-Length>"
            f"<Content-Type>{escape(blob.type)}</Content-Type>{md5}<BlobType>BlockBlob</BlobType></Properties></Blob>"
        )
        yield blob.name, text


def _most(query: Mapping[str, str]) -> int:
    text = query.get("maxresults", "")
    if not text:
        return PAGE
    if not text.isdecimal() or int(text) == 0:
        message = f"The value '{text}' of the query parameter maxresults is out of range: a whole number from 1 on."
        raise Refused(400, "OutOfRangeQueryParameterValue", message)
    return min(int(text), PAGE)


def _marker(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _place_of(marker: str) -> str:
    """The last name of the page before."""
    try:
        return base64.urlsafe_b64decode(marker.encode("ascii")).decode()
    except ValueError:
        message = "The value of the query parameter marker is none that an earlier page gave."
        raise Refused(400, "OutOfRangeQueryParameterValue", message) from None
