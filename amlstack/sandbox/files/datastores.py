"""Datastores' files: the container and account, and signatures for them."""

from __future__ import annotations

import datetime as dt
import hmac
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from amlstack.sandbox.protocol.entra import sign
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = "2025-07-05"
HOURS = 24


def grant(key: str, account: str, container: str, permissions: str, *, hours: float = HOURS) -> str:
    """The query string (without ``?``) that opens one container.

    Args:
        key: The sandbox's signing key.
        account: Storage account.
        container: Container.
        permissions: Letters of r (read), a (add), c (create), w (write), d (delete), l (list).
        hours: From now to its end; a negative number gives one that has expired.
    """
    end = dt.datetime.now(dt.UTC) + dt.timedelta(hours=hours)
    words = {"sv": VERSION, "sr": "c", "sp": permissions, "se": end.strftime("%Y-%m-%dT%H:%M:%SZ"), "spr": "https"}
    return urlencode({**words, "sig": _signature(key, account, container, words)})


def check(key: str, query: Mapping[str, str], account: str, container: str, needs: str) -> None:
    """Refuses (403) a query without a good signature for this container and one of the permissions in ``needs``."""
    words = {name: query.get(name, "") for name in ("sv", "sr", "sp", "se", "spr")}
    # As bytes: a text that is not ASCII cannot be compared.
    if not hmac.compare_digest(_signature(key, account, container, words).encode(), query.get("sig", "").encode()):
        message = (
            "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
            "correctly including the signature."
        )
        raise Refused(403, "AuthenticationFailed", message)
    end = dt.datetime.fromisoformat(words["se"])
    if end < dt.datetime.now(dt.UTC):
        message = f"Server failed to authenticate the request: Signature not valid in the specified time frame: {end}."
        raise Refused(403, "AuthenticationFailed", message)
    if not set(needs) & set(words["sp"]):
        message = "This request is not authorized to perform this operation using this permission."
        raise Refused(403, "AuthorizationPermissionMismatch", message)


def _signature(key: str, account: str, container: str, words: Mapping[str, str]) -> str:
    return sign(key, "sas", account, container, *(words[name] for name in ("sv", "sr", "sp", "se", "spr")))


CONTAINER: Final[Mapping[str, str]] = {
    "AzureBlob": "containerName",
    "AzureDataLakeGen2": "filesystem",
    "AzureFile": "fileShareName",
}
"""By type: the property that names the container."""


DEFAULT: Final = "workspaceblobstore"
"""The datastore that every workspace has as its default."""
MODELS: Final[Mapping[str, str]] = {
    "custom_model": "CustomModel",
    "mlflow_model": "MLFlowModel",
    "triton_model": "TritonModel",
}
"""Types of outputs that are models: the word of a body, and that of run history. All others are data."""


def output_uri(
    job: str, output: str, declared: str | None = None, *, store: str = DEFAULT, kind: str | None = None
) -> str:
    """The location of a job's output: where it was declared to, else in a folder of its own, or as a file of its name.

    Args:
        job: Name of the job.
        output: Name of the output.
        declared: Its ``uri`` in the body; None or empty for none.
        store: Name of the datastore that the folder is in.
        kind: Its type; of a ``uri_file`` the address has no slash at its end, by which clients would list a folder.
    """
    end = "" if kind == "uri_file" else "/"
    return declared or f"azureml://datastores/{store}/paths/azureml/{job}/{output}{end}"


def account_and_container(properties: Mapping[str, Any]) -> tuple[str, str]:
    """Both names; empty where a datastore of another type has none."""
    name = CONTAINER.get(str(properties.get("datastoreType")), "")
    return str(properties.get("accountName") or ""), str(properties.get(name) or "")
