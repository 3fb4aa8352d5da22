"""Names of environments and images, brought from any spelling to one."""

from __future__ import annotations

import re
from dataclasses import dataclass

# azureml://registries/R/environments/NAME/versions/V and ARM ids alike; azureml:NAME:V, azureml:NAME@LABEL.
_ASSET = re.compile(r"/environments/(?P<name>[^/]+)(/(versions|labels)/[^/]+)?$", re.IGNORECASE)
_SHORT = re.compile(r"^azureml:(?P<name>[^:@/]+)([:@].*)?$", re.IGNORECASE)
_REGISTRY = re.compile(r"(^azureml://|/)registries/(?P<registry>[^/]+)/", re.IGNORECASE)
_TAG = re.compile(r"(?::(?P<tag>[^/:@]+))?(?:@(?P<digest>sha\d+:\w+))?$")
_HUB = ("docker.io/library/", "index.docker.io/library/", "docker.io/", "index.docker.io/", "library/")
AZUREML = "mcr.microsoft.com/azureml/"
"""Where Azure ML's images lie: base images, and below ``curated/`` those of the curated environments."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The thing that one reference names.

    Attributes:
        name: Of a registered environment its bare name, of an image its path without registry (of Docker Hub and of
            Azure ML), tag and digest; in lower case.
        tag: An image's tag; empty for none.
        image: Whether it is an image, not a registered environment.
        known_registry: An image of Docker Hub, of Azure ML or of NVIDIA, where a name means what it says everywhere.
    """

    name: str
    tag: str = ""
    image: bool = False
    known_registry: bool = True

    @property
    def full(self) -> str:
        """``name:tag``, or the name alone."""
        return f"{self.name}:{self.tag}" if self.tag else self.name


def read(reference: str) -> Reference:
    """Return what an environment id, an ``azureml:`` short form or a Docker image names.

    ``azureml://registries/azureml/environments/acpt-x/versions/3``, ``azureml:AzureML-acpt-x@latest`` and
    ``mcr.microsoft.com/azureml/curated/acpt-x:3`` are all ``acpt-x``.
    """
    found = _ASSET.search(reference) or _SHORT.match(reference)
    if found is not None:
        return Reference(_bare(found["name"]).lower())
    return _image(reference)


def image_name(reference: str) -> str:
    """The bare name in a reference, letter case as written."""
    found = _ASSET.search(reference) or _SHORT.match(reference)
    name = found["name"] if found else reference.rsplit("/", 1)[-1].split("@", maxsplit=1)[0].split(":", maxsplit=1)[0]
    return _bare(name)


def registry(reference: str) -> str:
    """The registry that an asset id names; empty for none."""
    found = _REGISTRY.search(reference)
    return found["registry"] if found is not None else ""


def _image(reference: str) -> Reference:
    cut = _TAG.search(reference)
    path, tag = (reference[: cut.start()], cut["tag"] or "") if cut is not None else (reference, "")
    name = path.lower()
    for prefix in _HUB:
        if name.startswith(prefix):
            return Reference(name.removeprefix(prefix), tag, image=True)
    if name.startswith(AZUREML):
        return Reference(_bare(name.removeprefix(AZUREML).removeprefix("curated/")), tag, image=True)
    host, slash, rest = name.partition("/")
    if slash and ("." in host or ":" in host):
        known = host in ("mcr.microsoft.com", "nvcr.io")
        return Reference(rest if known else name, tag, image=True, known_registry=known)
    return Reference(_bare(name), tag, image=True)


def _bare(name: str) -> str:
    return name[len("azureml-") :] if name.lower().startswith("azureml-") else name
