"""TLS on loopback: an authority of this sandbox alone, and one bundle file that keeps other https working."""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path
from typing import Any

from amlstack.sandbox.protocol import azure_hosts

HOSTS = ("127.0.0.1", "localhost", "::1", *azure_hosts.NAMES)
SYSTEM = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
"""Where Debian, Fedora and the BSDs keep their authorities; OpenSSL's own default is often a folder, not a file."""
BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def prepare(folder: Path) -> tuple[Path, Path]:
    """The server's certificate chain with its key, and the CA; both made on the first call and kept.

    Returns:
        Paths of ``server.pem`` (mode 0600) and ``ca.pem``. The authority's own key is never written down.
    """
    server, authority = folder / "server.pem", folder / "ca.pem"
    if not authority.exists() or not server.exists():
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
    blocks = dict.fromkeys(BLOCK.findall((folder / "ca.pem").read_text()))
    for source in _sources(path):
        blocks |= dict.fromkeys(BLOCK.findall(source.read_text(errors="ignore")))
    text = "\n".join(blocks) + "\n"
    if not path.exists() or path.read_text() != text:
        fresh = path.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(path)
    return path


def _sources(own: Path) -> list[Path]:
    """Files of authorities: those the environment names (a company's own, often), the system's, certifi's."""
    import certifi  # noqa: PLC0415 - comes with requests, which every Azure client here uses

    default = ssl.get_default_verify_paths()
    named = [os.environ.get("REQUESTS_CA_BUNDLE"), os.environ.get("SSL_CERT_FILE"), default.cafile, *SYSTEM]
    found = [Path(name) for name in (*named, certifi.where()) if name]
    # Another sandbox's bundle is no source: its authority may be long gone. Ours is, in a shell that was given it.
    return [path for path in found if path.is_file() and (path == own or path.name != own.name)]
