"""Code for GPUs on a machine without one: what of it a rehearsal cannot run, and how the rest is carried to the CPU."""

from amlstack.sandbox.gpu_code.carrying import LINE, Carrying, carrying, is_off, keep_off, mentioned, programs
from amlstack.sandbox.gpu_code.reading import NotCarried, read

__all__ = ["LINE", "Carrying", "NotCarried", "carrying", "is_off", "keep_off", "mentioned", "programs", "read"]
