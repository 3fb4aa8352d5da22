"""The answers of azure-ai-ml on job files, kept in the user's cache.

azure-ai-ml takes up to a second for a file that this project reads in a millisecond, and says the same of it each time.
An answer is kept by all that it depends on: each file and folder beside the job file, azure-ai-ml and every other
installed package by its version, Python's version, and the source of the questions. It is asked anew where one of them
differs, and always where a word of a file is a path to something outside of its folder.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import currently_in_test_context, settings

from amlstack.base.files import write_whole
from amlstack.base.paths import cache

if TYPE_CHECKING:
    from collections.abc import Callable

BETWEEN = re.compile(r"[\s'\"\[\]{}(),=:]+")
"""The characters that no path in a test's file has."""


class RefusedError(Exception):
    """azure-ai-ml does not take the file; its own message is the text."""


@functools.cache
def packages() -> tuple[str, ...]:
    """The installed packages, each with its version."""
    return tuple(sorted(path.name for path in Path(sysconfig.get_path("purelib")).glob("*.dist-info")))


@functools.cache
def sources() -> tuple[str, ...]:
    """The text of this module and of the questions."""
    return tuple(Path(__file__).with_name(name).read_text("utf-8") for name in ("answers.py", "oracle.py"))


def key_of(question: str, path: Path) -> str | None:
    """The name that an answer is kept by; None where it depends on more than the folder of the file."""
    digest = hashlib.sha256(repr((question, path.name, sys.version, packages(), sources())).encode())
    for each in sorted(path.parent.rglob("*")):
        if each.is_symlink():
            return None
        content = None if each.is_dir() else each.read_bytes()
        if content and _leads_out(content.decode("latin-1"), each.parent, path.parent):
            return None
        digest.update(repr((each.relative_to(path.parent).as_posix(), content)).encode())
    return digest.hexdigest()


def _leads_out(text: str, *folders: Path) -> bool:
    """True where a word is a path from one of the folders to something that is not in the last of them."""
    words = {word for word in BETWEEN.split(text) if word.startswith("~") or "/" in word or ".." in word}
    paths = {Path(os.path.normpath(folder / os.path.expanduser(word))) for word in words for folder in folders}  # noqa: PTH111 - of an unknown user it answers the word itself
    return any(os.path.exists(path) and not path.is_relative_to(folders[-1]) for path in paths)  # noqa: PTH110 - answers for any text


def kept(ask: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """The same question, asked where no answer is kept."""

    @functools.wraps(ask)
    def answer(path: Path) -> Any:
        # Examples that are drawn anew in each run do not come again.
        drawn = currently_in_test_context() and not settings().derandomize
        key = None if drawn else key_of(ask.__name__, path)
        if key is None:
            return ask(path)
        place = cache() / "azure-ai-ml-answers" / key[:2] / key
        if not place.exists():
            try:
                said = {"answer": ask(path)}
            except RefusedError as error:
                said = {"refused": str(error)}
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, json.dumps(said, ensure_ascii=False).replace(str(path.parent), "{FOLDER}"))
        said = json.loads(place.read_text("utf-8").replace("{FOLDER}", str(path.parent)))
        if "refused" in said:
            raise RefusedError(said["refused"])
        return tuple(said["answer"]) if isinstance(said["answer"], list) else said["answer"]

    return answer
