"""The command line of ``tools/engine`` and the order of the sources."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence

from . import build, release, store
from .model import SOURCES, FoundEngine, NoEngineError, Source, Unavailable, say

CHOICE = "AMLSTACK_ENGINE"
"""Environment variable: the one source to use, like ``--source``."""


def resolve(only: Source | None = None, *, here: bool = False) -> FoundEngine:
    """The engine to use: on PATH, cached, downloaded or built, in this order.

    Args:
        only: Use this source and no other.
        here: Neither download nor build.

    Raises:
        NoEngineError: None can be had; the text says why and what helps.
    """
    reasons: list[str] = []
    if only in {None, "path"}:
        try:
            return store.on_path()
        except Unavailable as missing:
            reasons.append(str(missing))
    # Both caches come before any network, so that a machine that once built needs no time-out on every run.
    if only in {None, "release"} and (engine := store.cached("release", release.recipe())):
        return engine
    if only in {None, "build"} and (engine := store.cached("build", build.recipe())):
        return engine
    if here:
        raise NoEngineError(f"No Pulumi engine is here: {'; '.join(reasons)}, and none in {store.root()}")
    for reason in reasons:
        say(f"· {reason}")
    if only in {None, "release"}:
        try:
            return release.fetch()
        except Unavailable as missing:
            reasons.append(f"no release: {missing}")
            say(f"· {reasons[-1]}")
    if only in {None, "build"}:
        return build.build()
    raise NoEngineError(f"No Pulumi engine from the only source allowed ({only}): {'; '.join(reasons)}")


def main(arguments: Sequence[str]) -> int:
    """Prints the folders to prepend to PATH; returns 0, 1 (no engine; stderr says why) or 2 (wrong use)."""
    parser = argparse.ArgumentParser(
        prog="tools/engine",
        description='Finds, fetches or builds the Pulumi engine. PATH="$(python3 tools/engine):$PATH"',
    )
    parser.add_argument("--json", action="store_true", help="version, source and folders as one JSON object")
    parser.add_argument("--source", choices=SOURCES, help=f"use this source and no other (or {CHOICE}=…)")
    parser.add_argument("--here", action="store_true", help="look on PATH and in the cache alone")
    options = parser.parse_args(arguments)
    wish = options.source or os.environ.get(CHOICE)
    only = next((source for source in SOURCES if source == wish), None)
    if wish and only is None:
        parser.error(f"{CHOICE}={wish} is none of {', '.join(SOURCES)}")
    # Ending politely runs the clean-up; the default would leave the temporary folder to the next run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        engine = resolve(only, here=options.here)
    except NoEngineError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"The cache folder {store.root()} cannot be used: {error.strerror} ({error.filename}). Set AMLSTACK_CACHE.")
        return 1
    except KeyboardInterrupt:
        say("· interrupted; nothing half done is left")
        return 130
    folders = [str(folder) for folder in engine.folders]
    if options.json:
        print(json.dumps({"version": engine.version, "source": engine.source, "path": folders}))
    else:
        print(os.pathsep.join(folders))
    return 0
