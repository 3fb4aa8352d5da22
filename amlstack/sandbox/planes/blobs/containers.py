"""Containers: made, looked at, and listed page by page."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote
from xml.sax.saxutils import escape

from starlette.responses import Response

from amlstack.sandbox.files.storage import account_and_container
from amlstack.sandbox.planes.blobs import wire
from amlstack.sandbox.protocol.addresses import ML
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.store.blobs import FOLDER, Blob

if TYPE_CHECKING:
    from amlstack.sandbox.planes.blobs.wire import BlobPlace
    from amlstack.sandbox.protocol.kind import KindContext

DATASTORES = f"{ML}/workspaces/datastores"
STORAGE = "Microsoft.Storage/storageAccounts"
NAMES = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*|\$root|\$web")
LONGEST_NUMBER = 18
"""Digits of a number in a query."""
PAGE = 5000
"""The most entries of a page, and as many as a client gets that asks for no number."""


def make(context: KindContext, place: BlobPlace, headers: Mapping[str, str]) -> Response:
    """Answers a PUT of a container."""
    if not 3 <= len(place.container) <= 63:
        message = "The specified resource name length is not within the permissible limits."
        raise Refused(400, "OutOfRangeInput", message)
    if not NAMES.fullmatch(place.container):  # as the service spells it
        raise Refused(400, "InvalidResourceName", "The specifed resource name contains invalid characters.")
    with context.store.transaction():
        if _exists(context, place):
            raise Refused(409, "ContainerAlreadyExists", "The specified container already exists.")
        made = context.store.blobs.make_container(place.account, place.container)
        given = {"metadata": wire.metadata(headers), "access": headers.get("x-ms-blob-public-access")}
        kept = {name: value for name, value in given.items() if value}
        context.store.blobs.set_extra(place.account, place.container, "", kept)
    return Response(status_code=201, headers=wire.stamp(made.etag, made.changed))


CONTAINER: Final = {
    "DefaultEncryptionScope": "$account-encryption-key", "DenyEncryptionScopeOverride": "false",
    "HasImmutabilityPolicy": "false", "HasLegalHold": "false", "ImmutableStorageWithVersioningEnabled": "false",
}  # fmt: skip
"""Properties of each container in a list."""
COPY: Final = {
    "CopyId": "x-ms-copy-id", "CopySource": "x-ms-copy-source", "CopyStatus": "x-ms-copy-status",
    "CopyProgress": "x-ms-copy-progress", "CopyCompletionTime": "x-ms-copy-completion-time",
}  # fmt: skip
"""Properties of a copy in a list, and the headers that tell of it."""
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
    if comp == "lease" and method == "PUT":
        check(context, place)
        return wire.change_lease(context, as_blob(context, place), headers)
    if comp not in {"", "metadata"}:
        return None
    if method == "PUT":
        return make(context, place, headers)
    if method in {"GET", "HEAD"}:
        return show(context, place, headers)
    return remove(context, place, headers) if method == "DELETE" else None


def as_blob(context: KindContext, place: BlobPlace) -> Blob:
    """A container as a blob without a name: it has an etag, a time, metadata and a lease like one."""
    blobs = context.store.blobs
    made = blobs.container(*place[:2]) or blobs.make_container(*place[:2])
    extra = blobs.extra_of(*place[:2])
    labels, at = extra.get("metadata", {}), made.changed
    return Blob(place.account, place.container, "", blobs.root, 0, None, "", labels, made.etag, at, at, extra)


def show(context: KindContext, place: BlobPlace, headers: Mapping[str, str]) -> Response:
    """Answers a GET or HEAD of a container."""
    check(context, place)
    one = as_blob(context, place)
    wire.check_read(headers, one)
    state = wire.lease_state(one) | {f"x-ms-meta-{name}": value for name, value in one.metadata.items()}
    return Response(headers={**wire.stamp(one.etag, one.changed), **state})


def label(context: KindContext, place: BlobPlace, headers: Mapping[str, str]) -> Response:
    """Puts other metadata in the place of a container's."""
    check(context, place)
    one, blobs = as_blob(context, place), context.store.blobs
    if wire.LEASE_ID in headers:
        wire.check_lease(headers, one)
    wire.check_conditions(headers, one)
    blobs.set_extra(place.account, place.container, "", {**one.extra, "metadata": wire.metadata(headers)})
    made = blobs.make_container(place.account, place.container, anew=True)
    return Response(headers=wire.stamp(made.etag, made.changed))


def remove(context: KindContext, place: BlobPlace, headers: Mapping[str, str]) -> Response:
    """Deletes a container with its blobs; one of a datastore is gone too, until somebody makes it again."""
    check(context, place)
    with context.store.transaction():
        wire.check_write(headers, as_blob(context, place))
        for blob in context.store.blobs.listed(place.account, place.container):
            wire.check_lease({}, blob)
        context.store.blobs.drop_container(place.account, place.container)
        if _of_datastore(context, place):
            context.store.blobs.set_extra(place.account, place.container, "", {"gone": True})
    return Response(status_code=202, headers=wire.common())


def all_of(context: KindContext, account: str, query: Mapping[str, str]) -> Response:
    """Answers the list of an account's containers: those with a prefix, by pages."""
    prefix, most = query.get("prefix", ""), _most(query)
    begin = query.get("marker", "").removeprefix(f"/{account}/")
    made = {each.name for each in context.store.blobs.containers(account)}
    stores = (account_and_container(row.body["properties"]) for row in context.store.resources.of_type(DATASTORES))
    names = {name for owner, name in stores if owner == account} | made
    names = {name for name in names if _exists(context, wire.BlobPlace(account, name, ""))}
    rest = sorted(name for name in names if name.startswith(prefix) and name >= begin)
    shown = "".join(_container_xml(as_blob(context, wire.BlobPlace(account, name, "")), query) for name in rest[:most])
    following = f"/{account}/{rest[most]}" if len(rest) > most else ""
    return _enumeration(query, "", f"<Containers>{shown}</Containers>", following)


def _container_xml(one: Blob, query: Mapping[str, str]) -> str:
    lease = wire.lease_state(one)
    shown = {
        "Last-Modified": wire.date(one.changed),
        "Etag": f'"{one.etag}"',
        **{name: lease[key] for name, key in LEASE.items() if key in lease},
        **({"PublicAccess": access} if (access := one.extra.get("access")) else {}),
        **CONTAINER,
    }
    labels = wire.metadata_xml(one.metadata) if "metadata" in query.get("include", "").split(",") else ""
    return f"<Container><Name>{escape(one.container)}</Name>{_xml('Properties', shown)}{labels}</Container>"


def _xml(element: str, values: Mapping[str, object]) -> str:
    inner = "".join(f"<{name}>{escape(str(value))}</{name}>" for name, value in values.items())
    return f"<{element}>{inner}</{element}>"


def check(context: KindContext, place: BlobPlace) -> None:
    """Refuses (404) what is asked of a container that does not exist."""
    if not _exists(context, place):
        raise Refused(404, "ContainerNotFound", "The specified container does not exist.")


def listing(context: KindContext, place: BlobPlace, query: Mapping[str, str]) -> Response:
    """Answers a list of blobs: those with a prefix, cut at a delimiter, ``maxresults`` of them from ``marker`` on."""
    check(context, place)
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    most, begin = _most(query), _begin(query.get("marker", ""))
    include = query.get("include", "").split(",")
    if "uncommittedblobs" in include:
        raise Refused(501, "SandboxNotEmulated", "The sandbox's lists of blobs do not emulate uncommittedblobs.")
    found: dict[str, str] = {}
    following = ""
    blobs = context.store.blobs.listed(place.account, place.container, prefix, begin=begin)
    for name, text in _entries(blobs, prefix, delimiter, include, tree=has_tree(context, place.account)):
        if name < begin or name in found:
            continue
        if len(found) == most:
            following = _marker(name)
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


def has_tree(context: KindContext, account: str) -> bool:
    """True for an account with a hierarchical namespace, whose blobs are files and directories."""
    return any(row.body["properties"].get("isHnsEnabled") for row in context.store.resources.of_type(STORAGE, account))


def account_information(context: KindContext, account: str) -> dict[str, str]:
    """The headers that say of what kind an account is."""
    row = next(row for row in context.store.resources.of_type(STORAGE, account) if row.name == account)
    tree = str(has_tree(context, account)).lower()
    named = {"sku-name": row.body["sku"]["name"], "account-kind": row.body["kind"], "is-hns-enabled": tree}
    return {f"x-ms-{name}": value for name, value in named.items()}


def _entries(
    blobs: Iterator[Blob], prefix: str, delimiter: str, include: Sequence[str], *, tree: bool
) -> Iterator[tuple[str, str]]:
    """Name and XML of the blobs and folders of a list, in the order of their names; a folder once for each blob."""
    for blob in blobs:
        head, cut, _ = blob.name[len(prefix) :].partition(delimiter) if delimiter else (blob.name, "", "")
        if cut:
            folder = prefix + head + cut
            as_folder = replace(blob, size=0, type="", md5=None, metadata={FOLDER: "true"}, extra={})
            shown = _properties(as_folder, tree=True) if tree else ""
            yield folder, f"<BlobPrefix>{_name(folder)}{shown}</BlobPrefix>"
            continue
        labels = wire.metadata_xml(blob.metadata) if "metadata" in include else ""
        if "tags" in include and (tags := blob.extra.get("tags")):
            labels += f"<Tags>{wire.tags_xml(tags)}</Tags>"
        shown = _properties(blob, tree=tree, copy="copy" in include)
        yield blob.name, f"<Blob>{_name(blob.name)}{shown}{labels}<OrMetadata /></Blob>"


_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _name(name: str) -> str:
    """The name of a blob; one with a character that XML cannot hold is percent-encoded."""
    if _NOT_XML.search(name):
        return f'<Name Encoded="true">{quote(name, safe="")}</Name>'
    return f"<Name>{escape(name)}</Name>"


def _properties(blob: Blob, *, tree: bool, copy: bool = False) -> str:
    """The properties of a blob in a list, in the service's order; a header that it does not have is empty."""
    headers, lease = blob.extra.get("headers", {}), wire.lease_state(blob)
    tier = blob.extra.get("tier")
    shown = {
        "Creation-Time": wire.date(blob.created),
        "Last-Modified": wire.date(blob.changed),
        "Etag": blob.etag,
        **({"ResourceType": "directory" if blob.folder else "file"} if tree else {}),
        "Content-Length": blob.size,
        "Content-Type": blob.type,
        "Content-Encoding": headers.get("content-encoding", ""),
        "Content-Language": headers.get("content-language", ""),
        "Content-CRC64": "",
        "Content-MD5": blob.md5 or "",
        "Cache-Control": headers.get("cache-control", ""),
        "Content-Disposition": headers.get("content-disposition", ""),
        "BlobType": wire.kind_of(blob),
        **({"AccessTier": tier or "Hot"} if wire.tier(blob) else {}),
        **({"AccessTierChangeTime": wire.date(blob.extra.get("tiered", blob.changed))} if tier else {}),
        **({} if tier or not wire.tier(blob) else {"AccessTierInferred": "true"}),
        **{name: lease[key] for name, key in LEASE.items() if key in lease},
        **{
            name: blob.extra.get("copy", {}).get(key, "") for name, key in COPY.items() if copy and "copy" in blob.extra
        },
        **({"TagCount": len(tags)} if (tags := blob.extra.get("tags")) else {}),
        "ServerEncrypted": "true",
    }
    return _xml("Properties", shown)


def _most(query: Mapping[str, str]) -> int:
    text = query.get("maxresults", "")
    if not text:
        return PAGE
    if not text.isdecimal() or len(text) > LONGEST_NUMBER or int(text) == 0:
        value = f"The value '{text[:100]}' of the query parameter maxresults"
        raise Refused(400, "OutOfRangeQueryParameterValue", f"{value} is out of range: a whole number from 1 on.")
    return min(int(text), PAGE)


_MARKER: Final = re.compile(r"2!\d+!([A-Za-z0-9+/_-]+)")
_LATEST: Final = "9999-12-31T23:59:59.9999999Z"


def _marker(name: str) -> str:
    """The marker of the next page of a list, in the service's form: the name and the snapshot, each with its length."""
    text = f"{len(name):06}!{name}!{len(_LATEST):06}!{_LATEST}!".encode()
    packed = base64.b64encode(text).decode().replace("=", "-")
    return f"2!{len(packed)}!{packed}"


def _begin(marker: str) -> str:
    if not marker:
        return ""
    found = _MARKER.fullmatch(marker)
    try:
        text = base64.b64decode(found[1].replace("-", "=")).decode() if found else ""
    except ValueError:
        text = ""
    length, _, rest = text.partition("!")
    if not length.isdecimal():
        message = "The value of the query parameter marker is none that an earlier page gave."
        raise Refused(400, "OutOfRangeQueryParameterValue", message)
    return rest[: int(length)]


def place_of(marker: str, parameter: str) -> str:
    """The last name of the page before, by what that page gave for the following one."""
    try:
        return base64.urlsafe_b64decode(marker.encode("ascii")).decode()
    except ValueError:
        message = f"The value of the query parameter {parameter} is none that an earlier page gave."
        raise Refused(400, "OutOfRangeQueryParameterValue", message) from None
