"""Starts `amlcpu` in a Python that was not built here: its folder is the first of PYTHONPATH."""

import importlib.machinery
import importlib.util
import os
import sys


def _start() -> None:
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - starts with every Python of a rank
    sys.path[:] = [place for place in sys.path if place != here]
    root = os.path.dirname(os.path.dirname(here))  # noqa: PTH120 - as above
    sys.path.insert(0, root)
    try:
        import amlcpu  # noqa: F401 - the folder was put there just now
    finally:
        sys.path.remove(root)
    # The environment's own, which this file stands before.
    other = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if other is not None and other.loader is not None:
        module = importlib.util.module_from_spec(other)
        sys.modules["sitecustomize"] = module
        other.loader.exec_module(module)


_start()
