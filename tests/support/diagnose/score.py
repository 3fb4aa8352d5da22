"""The score of `amlstack diagnose` on a sealed set: ``python -m tests.support.diagnose.score FOLDER TRUTHS.toml …``.

A file of truths has one table for each log below the folder, which is a file or a folder itself:

    [[log]]
    file = "a.log"
    truth = "KeyError.*labels"   # a regex of the answer; a log without one is healthy
    wrong = "ChildFailedError"   # a regex of explanations that are wrong here, if they are all that is named
    visible = true               # false: something failed, and the log does not show why
    ranks = [3]                  # empty where the log does not show which
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.diagnose import diagnose

if TYPE_CHECKING:
    from amlstack.diagnose import Diagnosis


def answer(verdict: Diagnosis) -> str:
    """The text of an answer: cause, meaning and evidence, without the advice."""
    shown = (verdict.cause, verdict.means, verdict.text, verdict.source, *(event.text for event in verdict.events))
    return "\n".join(str(each) for each in shown if each)


def judged(truth: dict[str, Any], verdict: Diagnosis, *, healthy: bool) -> str:
    """The judgement of one answer: ``right``, ``wrong cause``, ``no cause``, ``alarm`` …"""
    if healthy:
        return "alarm" if verdict.fatal and (verdict.found or verdict.text) else "healthy: quiet"
    if not verdict.found:
        return "no cause" if truth["visible"] else "not shown: none named"
    named = f"{verdict.cause}\n{verdict.means}\n{verdict.text}"
    if "wrong" in truth and _matches(truth["wrong"], named) and not _matches(truth["truth"], named):
        return "wrong cause"
    if _matches(truth["truth"], answer(verdict)):
        return "right"
    return "wrong cause" if truth["visible"] else "wrong cause where none is shown"


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None


def rank_judged(truth: dict[str, Any], verdict: Diagnosis) -> str | None:
    """The same of the rank; None where the truth has none and the answer names none."""
    if not (wanted := truth.get("ranks")):
        return None
    named = set(verdict.ranks) if verdict.rank is None else {verdict.rank}
    if named and named <= set(wanted):
        return "rank right"
    return "rank missing" if verdict.rank is None else "rank wrong"


def score(folder: Path, files: list[Path]) -> tuple[Counter[str], list[str]]:
    """Counts of all judgements, and a line for each miss."""
    counts: Counter[str] = Counter()
    misses = []
    for file in files:
        for truth in tomllib.loads(file.read_text()).get("log", []):
            path = folder / truth["file"]
            if not path.exists():
                counts["missing file"] += 1
                misses.append(f"{truth['file']}: does not exist")
                continue
            verdict = diagnose([path])
            results = [judged(truth, verdict, healthy="truth" not in truth), rank_judged(truth, verdict)]
            counts.update(each for each in results if each)
            wrong = [each for each in results if each and each.split()[-1] not in ("right", "quiet", "named")]
            if wrong:
                got = f"{verdict.cause} rank {verdict.rank}: {(verdict.text or verdict.reason)[:160]}"
                misses.append(
                    f"{truth['file']}: {', '.join(wrong)}; "
                    f"wanted {truth.get('cause', 'nothing')} {truth.get('ranks', '')}; got {got}"
                )
    return counts, misses


if __name__ == "__main__":
    found, lines = score(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]])
    print("\n".join([*(f"{number:4} {what}" for what, number in sorted(found.items())), "", *lines]))  # noqa: T201
