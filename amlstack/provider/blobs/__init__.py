"""The provider's way into the blob storage of a workspace."""

from amlstack.provider.blobs.transfer import upload

__all__ = ["upload"]
