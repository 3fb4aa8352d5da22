"""TLS on loopback: an authority of this sandbox alone, and one bundle file that keeps other https working."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = ("127.0.0.1", "localhost", "::1")


def prepare(folder: Path) -> tuple[Path, Path]:
    """The server's certificate chain with its key, and the CA; both made on the first call and kept.

    Returns:
        Paths of ``server.pem`` (mode 0600) and ``ca.pem``. The authority's own key is never written down.
    """
    server, authority = folder / "server.pem", folder / "ca.pem"
    if not server.exists() or not authority.exists():
        import trustme  # noqa: PLC0415 - 0.2 s, needed once in a sandbox's life

        ca: Any = trustme.CA(organization_name="amlstack sandbox")
        chain: Any = ca.issue_cert(*HOSTS)
        authority.write_bytes(ca.cert_pem.bytes())
        fresh = folder / "server.new"
        fresh.unlink(missing_ok=True)
        fresh.touch(mode=0o600)
        fresh.write_bytes(chain.private_key_and_cert_chain_pem.bytes())
        fresh.replace(server)
    return server, authority


def bundle(folder: Path) -> Path:
    """``ca-bundle.pem``: the authorities this machine trusts already, and ours.

    Clients that take one file only (``REQUESTS_CA_BUNDLE``) reach both the sandbox and the rest of the world with it.
    """
    path = folder / "ca-bundle.pem"
    known = [_system(), (folder / "ca.pem").read_text()]
    text = "\n".join(part for part in known if part)
    if not path.exists() or path.read_text() != text:
        fresh = path.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(path)
    return path


def _system() -> str:
    context = ssl.create_default_context()
    found = [ssl.DER_cert_to_PEM_cert(der) for der in context.get_ca_certs(binary_form=True)]
    if found:
        return "".join(found)
    import certifi  # noqa: PLC0415 - only machines without system authorities

    return str(certifi.contents())
