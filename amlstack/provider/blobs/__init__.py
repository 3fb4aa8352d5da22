"""The provider's way into the blob storage of a workspace."""

from amlstack.provider.blobs.containers import ContainerAccess
from amlstack.provider.blobs.transfer import upload

__all__ = ["ContainerAccess", "upload"]
