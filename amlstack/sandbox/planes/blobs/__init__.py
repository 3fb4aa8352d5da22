"""The blob data plane, as azure-storage-blob speaks it: ``/blob/<account>/<container>/<name>``."""

from amlstack.sandbox.planes.blobs.service import PREFIX, STORAGE, answer, refusal

__all__ = ["PREFIX", "STORAGE", "answer", "refusal"]
