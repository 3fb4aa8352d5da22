"""Access to the sandbox: its Entra ID tenant, its principals, two subscriptions, tokens signed by one key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox.protocol.addresses import by_name
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow, Store

CLOUD = "amlstack-sandbox"
"""The name of the cloud, for clients that want one."""
TENANT = "0a3c1f6e-52b0-4f59-9d0e-7d1c5a4b2e10"
CLIENT = "1b7d2c48-8a61-4e0b-b6a5-3f2e9c1d7a20"
SUBSCRIPTION = "2c5e9a70-1d34-4b8f-a2c7-6e0f4d8b3c30"
OTHER_SUBSCRIPTION = "4e7fbc92-3f56-4da1-84e9-80216fad5e50"
"""Another one that the same client may use, for what lies in another subscription than the stack's own."""
SUBSCRIPTIONS = (SUBSCRIPTION, OTHER_SUBSCRIPTION)
PRINCIPAL = "3d6fab81-2e45-4c90-b3d8-7f105e9c4d40"

PERSON = "5f80cda3-4067-4eb2-95fa-91327c0fae60"
"""Object id of whoever signs in with a name and a password."""
_CALLER: Final[ContextVar[str]] = ContextVar("caller", default="")
"""The name of the person whose request is answered; empty for an application."""

TOKEN_SECONDS = 3600
_OF_OPENID = frozenset({"openid", "offline_access", "profile"})


def secret_file(path: Path, make: str | None = None) -> str:
    """The text of a file only its owner reads; made with fresh randomness (or ``make``) when it is missing."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        fresh.touch(mode=0o600)
        fresh.write_text(make or secrets.token_urlsafe(32))
        fresh.replace(path)
    return path.read_text()


def sign(key: str, *words: str) -> str:
    """HMAC-SHA256 over words that hold no line breaks, base64 without padding, safe in a URL."""
    digest = hmac.digest(key.encode(), "\n".join(words).encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def issue(
    key: str,
    audience: str,
    *,
    now: float | None = None,
    seconds: int = TOKEN_SECONDS,
    tenant: str = TENANT,
    person: str = "",
) -> str:
    """An access token (a JWT, HS256) for an audience, good for so many seconds; of a person, with the name."""
    at = int(time.time() if now is None else now)
    who = {"oid": PERSON, "idtyp": "user", "upn": person} if person else {"oid": PRINCIPAL, "idtyp": "app"}
    claims = {"aud": audience, "iss": tenant, "tid": tenant, "appid": CLIENT, **who, "iat": at}
    head = _word({"alg": "HS256", "typ": "JWT"})
    body = _word({**claims, "exp": at + seconds})
    return f"{head}.{body}.{sign(key, head, body)}"


def resource_manager(base: str) -> tuple[str, ...]:
    """Whom a token for the resource manager is for: this sandbox, or Azure's own, which some clients always name."""
    return (base, by_name(base), "https://management.azure.com", "https://management.core.windows.net")


def machine_learning(base: str) -> tuple[str, ...]:
    """Whom a token for Azure Machine Learning itself is for."""
    return (base, by_name(base), "https://ml.azure.com")


def storage(account: str) -> tuple[str, ...]:
    """Whom a token for the blobs of an account is for."""
    return ("https://storage.azure.com", f"https://{account}.blob.core.windows.net")


def check_bearer(key: str, authorization: str | None, audiences: Collection[str]) -> None:
    """Refuses (401) a call without a good bearer token of this sandbox for one of these audiences.

    What the call makes or changes is `signed` by whom the token is of.
    """
    if not authorization or not authorization.lower().startswith("bearer "):
        raise Refused(
            401, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing or invalid."
        )
    claims = _claims(key, authorization[7:].strip())
    _CALLER.set(claims.get("upn", ""))
    if (audience := _audience(claims)) not in audiences:
        allowed = ",".join(f"'{one}'" for one in audiences)
        message = (
            f"The access token has been obtained for wrong audience or resource '{audience}'. It should exactly match "
            f"with one of the allowed audiences {allowed}."
        )
        raise Refused(401, "InvalidAuthenticationTokenAudience", message)


def signed(body: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """A body as it is stored: with who has made it and who has changed it last, as far as that is a person."""
    known = (before or {}).get("systemData", {})
    kept = {key: value for key, value in known.items() if key.startswith("created")}
    for did in ("lastModified",) if before is not None else ("created", "lastModified"):
        kept |= {f"{did}By": _CALLER.get(), f"{did}ByType": "User"} if _CALLER.get() else {}
    rest = {key: value for key, value in body.items() if key != "systemData"}
    return {**rest, "systemData": kept} if kept else rest


def known(body: Mapping[str, Any]) -> dict[str, Any]:
    """The author of a resource, as run history says it."""
    name = body.get("systemData", {}).get("createdBy")
    user = {"userObjectId": PERSON if name else PRINCIPAL, "userName": name or "sandbox", "upn": None}
    issuer = {"userIss": f"https://sts.windows.net/{TENANT}/", "userTenantId": TENANT}
    return {**user, **issuer, **dict.fromkeys(("userPuId", "userIdp", "userAltSecId"))}


def audience_of(key: str, token: str) -> str:
    """Whom a token is for, without a slash at the end.

    Raises:
        Refused: 401; it is not of this sandbox, of another tenant, or over.
    """
    return _audience(_claims(key, token))


def _audience(claims: Mapping[str, Any]) -> str:
    return str(claims["aud"]).rstrip("/")


def _claims(key: str, token: str) -> dict[str, Any]:
    head, _, rest = token.partition(".")
    body, _, signature = rest.partition(".")
    if not hmac.compare_digest(sign(key, head, body), signature):
        raise Refused(401, "InvalidAuthenticationToken", "The access token is invalid: this sandbox did not issue it.")
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    if claims["tid"] != TENANT:
        message = (
            f"The access token is from the wrong issuer '{claims['iss']}'. It must match the tenant '{TENANT}' "
            "associated with this subscription."
        )
        raise Refused(401, "InvalidAuthenticationTokenTenant", message)
    if claims["exp"] < time.time():
        raise Refused(401, "ExpiredAuthenticationToken", "The access token expired.")
    return claims


def token_answer(key: str, federated: str, tenant: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """Answers ``POST /{tenant}/oauth2/v2.0/token``: the federated token as assertion, as secret, or as a password.

    Returns:
        Status and body as Entra ID gives them: ``access_token`` and ``expires_in``, or ``error`` with its AADSTS text.
    """
    if tenant != TENANT:
        return 400, _entra("invalid_request", f"AADSTS90002: Tenant '{tenant}' not found.")
    if form.get("client_id") != CLIENT:
        return 400, _entra("unauthorized_client", "AADSTS700016: Application with this identifier was not found.")
    person = form.get("username", "") if form.get("grant_type") == "password" else ""
    if person:
        if not hmac.compare_digest(form.get("password", "").encode(), federated.encode()):
            text = "AADSTS50126: Error validating credentials due to invalid username or password."
            return 400, _entra("invalid_grant", text)
    elif form.get("client_secret"):
        if not hmac.compare_digest(form["client_secret"].encode(), federated.encode()):
            return 401, _entra("invalid_client", "AADSTS7000215: Invalid client secret provided.")
    elif not hmac.compare_digest(form.get("client_assertion", "").encode(), federated.encode()):
        return 401, _entra("invalid_client", "AADSTS700213: No matching federated identity record found.")
    # MSAL for Go asks for openid, offline_access and profile beside what the token is for.
    scopes = form.get("scope", "").split()
    audience = next((one for one in scopes if one not in _OF_OPENID), "").removesuffix("/.default")
    token = issue(key, audience, person=person)
    seconds = {"expires_in": TOKEN_SECONDS, "ext_expires_in": TOKEN_SECONDS}
    return 200, {"token_type": "Bearer", **seconds, "access_token": token}


def _entra(error: str, text: str) -> dict[str, Any]:
    return {"error": error, "error_description": text}


def _word(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


_VERSION = 5
"""Of the UUIDs that stand for principals here; Entra ID's are random ones, of version 4."""
_PLACEHOLDERS = 256
"""Ids below it are zeros and a digit: placeholders."""
TYPE = "Microsoft.ManagedIdentity/userAssignedIdentities"


def principal(resource: ResourceRow) -> str:
    """Object id of a user-assigned identity, or of a resource's system-assigned one: another after it was made anew."""
    return object_id(resource, "principal")


def check(store: Store, body: Mapping[str, Any]) -> None:
    """Refuses user-assigned identities that do not exist."""
    for identity_id in (body.get("identity") or {}).get("userAssignedIdentities") or {}:
        if store.resources.get(identity_id, TYPE) is None:
            message = f"The user-assigned identity '{identity_id}' could not be found."
            raise Refused(400, "FailedIdentityOperation", message, "identity.userAssignedIdentities")


def shown(store: Store, resource: ResourceRow, identity: Mapping[str, Any]) -> dict[str, Any]:
    """An identity as an answer has it: with the principals behind it."""
    result = {**identity, **({} if identity["type"] == "None" else {"tenantId": TENANT})}
    if "SystemAssigned" in identity["type"]:
        result["principalId"] = principal(resource)
    if users := identity.get("userAssignedIdentities"):
        result["userAssignedIdentities"] = {name: _user(store, name) for name in users}
    return result


def all_of(store: Store) -> Iterator[str]:
    """Every principal of the sandbox."""
    for resource in store.resources.all():
        if resource.type == TYPE or "SystemAssigned" in (resource.body.get("identity") or {}).get("type", ""):
            yield principal(resource)


def is_ours(object_id: str) -> bool:
    """True where the sandbox gives such an object id, or it is a placeholder; those of people are random."""
    try:
        found = uuid.UUID(object_id)
    except ValueError:
        return True
    return found.version == _VERSION or found.int < _PLACEHOLDERS


def _user(store: Store, identity_id: str) -> dict[str, Any]:
    found = store.resources.get(identity_id, TYPE)
    return {} if found is None else {"principalId": principal(found), "clientId": object_id(found, "client")}


def object_id(resource: ResourceRow, what: str) -> str:
    """An id of a resource: another one after it was deleted and made anew."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{what}:{resource.key}:{resource.created}"))
