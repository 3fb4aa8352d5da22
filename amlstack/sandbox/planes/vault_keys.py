"""A vault's data plane, as far as its keys: ``/vault/<vault>/keys/<key>[/<version>]``, and what they encrypt.

A key pair is made when a key is first used, kept in the sandbox's folder for its owner alone, and gone with the key.
Who may use a key is not judged: the sandbox judges no roles (`kinds/authorization.py`).
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox.kinds import neighbours
from amlstack.sandbox.protocol import entra
from amlstack.sandbox.protocol.addresses import VAULT
from amlstack.sandbox.protocol.kind import KindContext, Reply
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.store.folders import private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.padding import AsymmetricPadding
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    from amlstack.sandbox.store.store import ResourceRow

PREFIX: Final = "/vault/"
AUDIENCE: Final = "https://vault.azure.net"
CHALLENGE: Final = f'Bearer authorization="https://login.microsoftonline.com/{entra.TENANT}", resource="{AUDIENCE}"'
"""An answer to a request without a token names these: a client learns tenant and audience from it."""
ALGORITHMS: Final = ("RSA-OAEP-256", "RSA-OAEP", "RSA1_5")
_VERBS: Final = {"encrypt": True, "wrapkey": True, "decrypt": False, "unwrapkey": False}
_NEEDED: Final = {"encrypt": "encrypt", "decrypt": "decrypt", "wrapkey": "wrapKey", "unwrapkey": "unwrapKey"}


def answer(context: KindContext, method: str, path: str, authorization: str | None, body: Any) -> Reply:
    """Answers a GET of a key, or a POST of what it is to encrypt or decrypt.

    Raises:
        Refused: 401 without a good token, 404 for what is not there, 400 for a value that the key cannot take, 403 for
            an operation that the key is not for.
    """
    entra.check_bearer(context.key, authorization, (AUDIENCE,))
    vault, *words = [word for word in path.removeprefix(PREFIX).split("/") if word]
    verb = words.pop().lower() if method == "POST" and words else ""
    if not words or words[0] != "keys" or not 2 <= len(words) <= 3 or (method, verb in _VERBS) not in _CALLS:
        message = f"The sandbox's vaults do not emulate {method} {path.removeprefix(PREFIX + vault)}."
        raise Refused(501, "SandboxNotEmulated", message)
    key = _key(context, vault, words[1])
    version = neighbours.version(key)
    if len(words) == 3 and words[2] != version:
        raise Refused(
            404, "KeyNotFound", f"A key with (name/id) {words[1]}/{words[2]} was not found in this key vault."
        )
    kid = f"https://{vault}{VAULT}/keys/{key.name}/{version}"
    pair = _pair(context, key, version)
    if method == "GET":
        return Reply(200, {"key": {"kid": kid, "kty": "RSA", **_public(pair)}, "attributes": {"enabled": True}})
    return Reply(200, {"kid": kid, "value": _use(pair, key, verb, body)})


_CALLS: Final = {("GET", False), ("POST", True)}


def _key(context: KindContext, vault: str, name: str) -> ResourceRow:
    for row in context.store.resources.of_type(neighbours.Keys.type):
        if row.name.lower() == name.lower() and neighbours.vault(row) == vault.lower():
            return row
    raise Refused(404, "KeyNotFound", f"A key with (name/id) {name} was not found in this key vault.")


def _pair(context: KindContext, key: ResourceRow, version: str) -> RSAPrivateKey:
    from cryptography.hazmat.primitives import serialization as forms  # noqa: PLC0415 - 0.1 s, rarely needed
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415

    if not str(key.body["properties"]["kty"]).startswith("RSA"):
        message = f"The sandbox has no key pair for {key.body['properties']['kty']}, only RSA."
        raise Refused(501, "SandboxNotEmulated", message)
    file = _folder(context) / f"{version}.pem"
    if not file.exists():
        fresh: RSAPrivateKey = rsa.generate_private_key(65537, int(key.body["properties"].get("keySize") or 2048))
        entra.secret_file(
            file, fresh.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()).decode()
        )
        return fresh
    kept: Any = forms.load_pem_private_key(file.read_bytes(), None)
    return kept  # type: ignore[no-any-return]


def _folder(context: KindContext) -> Path:
    return private(context.store.blobs.root.parent / "vault-keys")


def _use(pair: RSAPrivateKey, key: ResourceRow, verb: str, body: Any) -> str:
    if _NEEDED[verb] not in (key.body["properties"].get("keyOps") or _NEEDED.values()):
        raise Refused(403, "Forbidden", f"Operation {_NEEDED[verb]} is not permitted on this key.")
    fields = body if isinstance(body, dict) else {}
    padding = _padding(str(fields.get("alg")))
    try:
        value = base64.b64decode(_padded(str(fields["value"])), altchars=b"-_", validate=True)
        done = pair.public_key().encrypt(value, padding) if _VERBS[verb] else pair.decrypt(value, padding)
    except (KeyError, ValueError, binascii.Error):
        message = "The parameter is incorrect: the value is none that this key and algorithm take."
        raise Refused(400, "BadParameter", message) from None
    return _word(done)


def _padding(algorithm: str) -> AsymmetricPadding:
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import padding  # noqa: PLC0415

    if algorithm not in ALGORITHMS:
        message = f"Key and algorithm do not match: '{algorithm}' is none of {', '.join(ALGORITHMS)}."
        raise Refused(400, "BadParameter", message)
    if algorithm == "RSA1_5":
        return padding.PKCS1v15()
    digest = hashes.SHA256() if algorithm == "RSA-OAEP-256" else hashes.SHA1()  # noqa: S303 - what RSA-OAEP means
    return padding.OAEP(padding.MGF1(digest), digest, None)


def _public(pair: RSAPrivateKey) -> dict[str, str]:
    numbers = pair.public_key().public_numbers()
    return {name: _word(_bytes(value)) for name, value in (("n", numbers.n), ("e", numbers.e))}


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _word(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _padded(text: str) -> str:
    return text + "=" * (-len(text) % 4)
