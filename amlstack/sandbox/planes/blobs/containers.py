"""Containers: made, looked at, and listed page by page."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from starlette.responses import Response

from amlstack.sandbox.files.datastores import account_and_container
from amlstack.sandbox.planes.blobs import wire
from amlstack.sandbox.protocol.addresses import ML
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from amlstack.sandbox.planes.blobs.wire import BlobPlace
    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.blobs import Blob, Container

DATASTORES = f"{ML}/workspaces/datastores"
NAMES = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*|\$root|\$web")
LONGEST_NUMBER = 18
"""Digits of a number in a query."""
PAGE = 5000
"""The most entries of a page, and as many as a client gets that asks for no number."""


def make(context: KindContext, place: BlobPlace, headers: Mapping[str, str]) -> Response:
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
        labels = wire.metadata(headers)
        context.store.blobs.set_extra(place.account, place.container, "", {"metadata": labels} if labels else {})
    return Response(status_code=201, headers=wire.stamp(made.etag, made.changed))


LEASE = {
    "LeaseStatus": "x-ms-lease-status", "LeaseState": "x-ms-lease-state", "LeaseDuration": "x-ms-lease-duration",
}  # fmt: skip
"""Properties of a list that tell of a lease, and the headers that do."""


def answer(
    context: KindContext, method: str, place: BlobPlace, query: Mapping[str, str], headers: Mapping[str, str]
) -> Response | None:
    """Answers what is asked of a container; None for what the sandbox does not emulate."""
    comp = query.get("comp", "")
    if method == "GET" and comp == "list":
        return listing(context, place, query)
    if comp == "metadata" and method == "PUT":
        return label(context, place, headers)
    if comp not in {"", "metadata"}:
        return None
    if method == "PUT":
        return make(context, place, headers)
    if method in {"GET", "HEAD"}:
        return show(context, place)
    return remove(context, place, headers) if method == "DELETE" else None


def show(context: KindContext, place: BlobPlace) -> Response:
    """Answers a GET or HEAD of a container."""
    check(context, place)
    state = {"x-ms-lease-status": "unlocked", "x-ms-lease-state": "available"}
    labels = context.store.blobs.extra_of(place.account, place.container).get("metadata", {})
    state |= {f"x-ms-meta-{name}": value for name, value in labels.items()}
    return Response(headers={**_stamp(context, place), **state})


def label(context: KindContext, place: BlobPlace, headers: Mapping[str, str]) -> Response:
    """Puts other metadata in the place of a container's."""
    check(context, place)
    context.store.blobs.set_extra(place.account, place.container, "", {"metadata": wire.metadata(headers)})
    return Response(headers=_stamp(context, place))


def remove(context: KindContext, place: BlobPlace, headers: Mapping[str, str]) -> Response:
    """Deletes a container with its blobs; one of a datastore is gone too, until somebody makes it again."""
    check(context, place)
    with context.store.transaction():
        for blob in context.store.blobs.listed(place.account, place.container):
            wire.check_lease(headers, blob)
        context.store.blobs.drop_container(place.account, place.container)
        if _of_datastore(context, place):
            context.store.blobs.set_extra(place.account, place.container, "", {"gone": True})
    return Response(status_code=202, headers=wire.common())


def all_of(context: KindContext, account: str, query: Mapping[str, str]) -> Response:
    """Answers the list of an account's containers: those with a prefix, by pages."""
    prefix, most, after = query.get("prefix", ""), _most(query), place_of(query.get("marker", ""), "marker")
    made = {each.name: each for each in context.store.blobs.containers(account)}
    stores = (account_and_container(row.body["properties"]) for row in context.store.resources.of_type(DATASTORES))
    names = {name for owner, name in stores if owner == account} | set(made)
    names = {name for name in names if _exists(context, wire.BlobPlace(account, name, ""))}
    rest = sorted(name for name in names if name.startswith(prefix) and name > after)
    shown = "".join(_container_xml(context, account, name, made.get(name), query) for name in rest[:most])
    following = _marker(rest[most - 1]) if len(rest) > most else ""
    return _enumeration(query, "", f"<Containers>{shown}</Containers>", following)


def _container_xml(
    context: KindContext, account: str, name: str, made: Container | None, query: Mapping[str, str]
) -> str:
    stamp = f"<Last-Modified>{wire.date(made.changed)}</Last-Modified><Etag>{made.etag}</Etag>" if made else ""
    labels = ""
    if "metadata" in query.get("include", "").split(","):
        labels = wire.metadata_xml(context.store.blobs.extra_of(account, name).get("metadata", {}))
    return f"<Container><Name>{escape(name)}</Name><Properties>{stamp}</Properties>{labels}</Container>"


def check(context: KindContext, place: BlobPlace) -> None:
    """Refuses (404) what is asked of a container that does not exist."""
    if not _exists(context, place):
        message = f"The specified container '{place.container}' does not exist."
        raise Refused(404, "ContainerNotFound", message)


def listing(context: KindContext, place: BlobPlace, query: Mapping[str, str]) -> Response:
    """Answers a list of blobs: those with a prefix, cut at a delimiter, ``maxresults`` of them from ``marker`` on."""
    check(context, place)
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    most, after = _most(query), place_of(query.get("marker", ""), "marker")
    found: dict[str, str] = {}
    following = ""
    blobs = context.store.blobs.listed(place.account, place.container, prefix, after)
    for name, text in _entries(blobs, prefix, delimiter, query.get("include", "").split(",")):
        if name <= after or name in found:
            continue
        if len(found) == most:
            following = _marker(next(reversed(found)))
            break
        found[name] = text
    name, shown = f' ContainerName="{escape(place.container)}"', "".join(found.values())
    return _enumeration(query, name, f"<Blobs>{shown}</Blobs>", following)


def _enumeration(query: Mapping[str, str], attribute: str, shown: str, following: str) -> Response:
    """A page of a list, with what was asked for."""
    asked = {"Prefix": "prefix", "Marker": "marker", "MaxResults": "maxresults", "Delimiter": "delimiter"}
    echo = "".join(f"<{name}>{escape(query[key])}</{name}>" for name, key in asked.items() if query.get(key))
    text = (
        f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults{attribute}>{echo}{shown}'
        f"<NextMarker>{following}</NextMarker></EnumerationResults>"
    )
    return Response(text, headers=wire.common(), media_type="application/xml")


def _exists(context: KindContext, place: BlobPlace) -> bool:
    """It was made, holds something, or is a datastore's."""
    blobs, account, name = context.store.blobs, place.account, place.container
    if blobs.container(account, name) or any(blobs.listed(account, name)):
        return True
    gone = blobs.extra_of(account, name).get("gone")
    return _of_datastore(context, place) and not gone


def _of_datastore(context: KindContext, place: BlobPlace) -> bool:
    rows = context.store.resources.of_type(DATASTORES)
    return any(account_and_container(row.body["properties"]) == place[:2] for row in rows)


def _stamp(context: KindContext, place: BlobPlace) -> dict[str, str]:
    made = context.store.blobs.container(place.account, place.container)
    return wire.stamp(made.etag, made.changed) if made else wire.common()


def _entries(blobs: Iterator[Blob], prefix: str, delimiter: str, include: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and XML of the blobs and folders of a list, in the order of their names; a folder once for each blob."""
    for blob in blobs:
        head, cut, _ = blob.name[len(prefix) :].partition(delimiter) if delimiter else (blob.name, "", "")
        if cut:
            folder = prefix + head + cut
            yield folder, f"<BlobPrefix><Name>{escape(folder)}</Name></BlobPrefix>"
            continue
        labels = wire.metadata_xml(blob.metadata) if "metadata" in include else ""
        yield blob.name, f"<Blob><Name>{escape(blob.name)}</Name>{_properties(blob)}{labels}<OrMetadata /></Blob>"


def _properties(blob: Blob) -> str:
    """The properties of a blob in a list, in the service's order; a header that it does not have is empty."""
    headers, lease = blob.extra.get("headers", {}), wire.lease_state(blob)
    tier = blob.extra.get("tier")
    shown = {
        "Creation-Time": wire.date(blob.created),
        "Last-Modified": wire.date(blob.changed),
        "Etag": blob.etag,
        "Content-Length": blob.size,
        "Content-Type": blob.type,
        "Content-Encoding": headers.get("content-encoding", ""),
        "Content-Language": headers.get("content-language", ""),
        "Content-CRC64": "",
        "Content-MD5": blob.md5 or "",
        "Cache-Control": headers.get("cache-control", ""),
        "Content-Disposition": headers.get("content-disposition", ""),
        "BlobType": "BlockBlob",
        "AccessTier": tier or "Hot",
        **({} if tier else {"AccessTierInferred": "true"}),
        **{name: lease[key] for name, key in LEASE.items() if key in lease},
        "ServerEncrypted": "true",
    }
    return (
        f"<Properties>{''.join(f'<{name}>{escape(str(said))}</{name}>' for name, said in shown.items())}</Properties>"
    )


def _most(query: Mapping[str, str]) -> int:
    text = query.get("maxresults", "")
    if not text:
        return PAGE
    if not text.isdecimal() or len(text) > LONGEST_NUMBER or int(text) == 0:
        value = f"The value '{text[:100]}' of the query parameter maxresults"
        message = f"{value} is out of range: a whole number from 1 on."
        raise Refused(400, "OutOfRangeQueryParameterValue", message)
    return min(int(text), PAGE)


def _marker(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def place_of(marker: str, parameter: str) -> str:
    """The last name of the page before, by what that page gave for the following one."""
    try:
        return base64.urlsafe_b64decode(marker.encode("ascii")).decode()
    except ValueError:
        message = f"The value of the query parameter {parameter} is none that an earlier page gave."
        raise Refused(400, "OutOfRangeQueryParameterValue", message) from None
