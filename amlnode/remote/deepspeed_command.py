"""DeepSpeed's command line: separated from our options, with another configuration, without the tuner; pure."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own options, which come first, and DeepSpeed's command line."""
    end = 0
    while end < len(words) and words[end].split("=")[0] in ("--nproc", "--wait", "--port", "-h", "--help"):
        end += 1 if "=" in words[end] or words[end].startswith("-h") or words[end] == "--help" else 2
    return list(words[:end]), list(words[end:])


def tuned(words: Sequence[str]) -> tuple[str, list[str]]:
    """DeepSpeed's command line without ``--autotuning``, and what that was: tune or run."""
    left, mode = list(words), "tune"
    for place, word in enumerate(left):
        if word.split("=")[0] == "--autotuning":
            mode = word.partition("=")[2] or left[place + 1]
            del left[place : place + (1 if "=" in word else 2)]
            break
    return mode, left


def configured(words: Sequence[str], config: dict[str, Any]) -> list[str]:
    """A command line with another configuration, which goes along in it: other nodes have no such file."""
    place, _ = _config(words)
    if place is None:
        return list(words)
    text = base64.urlsafe_b64encode(json.dumps(config).encode()).decode()
    option, equals, _ = words[place].partition("=")
    return [*words[:place], f"{option}={text}" if equals else text, *words[place + 1 :]]


def results_folder(words: Sequence[str]) -> Path:
    """The tuner's folder: the configuration names it, else it is DeepSpeed's own."""
    folder = None
    with contextlib.suppress(OSError, ValueError, AttributeError):
        folder = json.loads(Path(_config(words)[1]).read_text()).get("autotuning", {}).get("results_dir")
    return Path(folder or "autotuning_results")


def _config(words: Sequence[str]) -> tuple[int | None, str]:
    """The place of the configuration's file in a command line, and its path."""
    for option in ("--deepspeed_config", "--deepspeed"):
        for place, word in enumerate(words):
            if word.startswith(f"{option}=") and word.endswith(".json"):
                return place, word.partition("=")[2]
            if word == option and place + 1 < len(words) and words[place + 1].endswith(".json"):
                return place + 1, words[place + 1]
    return None, ""
