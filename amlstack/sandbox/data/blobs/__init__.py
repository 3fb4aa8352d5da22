"""The blob data plane, as azure-storage-blob speaks it: ``/blob/<account>/<container>/<name>``."""

from amlstack.sandbox.data.blobs.service import STORAGE, answer
from amlstack.sandbox.data.blobs.wire import refusal

__all__ = ["STORAGE", "answer", "refusal"]
