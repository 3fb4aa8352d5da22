"""Azure's own host names under which the sandbox answers, and what of its one endpoint each of them is."""

from __future__ import annotations

from typing import Final

LOGIN: Final = "login.microsoftonline.com"
BLOB: Final = ".blob.core.windows.net"
VAULT: Final = ".vault.azure.net"
NAMES: Final = (LOGIN, f"*{BLOB}", f"*{VAULT}")
"""What the certificate has, beside the loopback's names."""


def path(host: str, raw: str) -> str:
    """The path of the sandbox's one endpoint for a path of one of Azure's hosts; other hosts' paths as they are.

    Args:
        host: The request's ``Host``.
        raw: Its path, with a leading slash, still encoded.
    """
    name = host.partition(":")[0].lower()
    for suffix, prefix in ((BLOB, "/blob/"), (VAULT, "/vault/")):
        if name.endswith(suffix):
            return prefix + name.removesuffix(suffix) + raw
    return raw


def is_known(host: str) -> bool:
    """True where the sandbox answers under this name."""
    name = host.lower()
    names = (name.removesuffix(suffix) for suffix in (BLOB, VAULT) if name.endswith(suffix))
    return name == LOGIN or any(one and "." not in one for one in names)
