"""Distils recordings, plays the stories, and writes what they show (docs/maintain/recordings.md)."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from amlstack.base.paths import PROJECT
from amlstack.sandbox.server import daemon
from tests.support.recordings import distill, report, sources, stories
from tests.support.recordings.play import Player

PAGE = PROJECT / "docs/maintain/recordings.md"
RESULTS = PROJECT / "tests" / "recordings" / "results.json"
BEGIN, END = "<!-- counts: make recordings WRITE=1 -->", "<!-- end of counts -->"


def main() -> int:
    """Runs one of the two verbs."""
    parser = argparse.ArgumentParser(prog="tests.support.recordings", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("distill", help="recordings as stories")
    one.add_argument("--repository", type=Path, help="a bare copy of azure-sdk-for-python that still has recordings")
    one.add_argument("distributions", nargs="*", type=Path, help="source distributions of azure-mgmt-*")
    two = verbs.add_parser("play", help="every story against a sandbox of its own")
    two.add_argument("--only", default="", help="stories whose name has this in it")
    two.add_argument(
        "--kind", default="", help="a regular expression: stories with such a kind, and what differs there"
    )
    two.add_argument("--every", type=int, default=1, help="every n-th story")
    two.add_argument("--write", action="store_true", help="write the counts into the page and the file of results")
    given = parser.parse_args()
    return _distill(given) if given.verb == "distill" else _play(given)


def _distill(given: argparse.Namespace) -> int:
    found = [*sources.of_repository(given.repository)] if given.repository else []
    for file in sorted(given.distributions):
        found += sources.of_distribution(file)
    made = [distill.story(one) for one in sorted(found, key=lambda each: each.source)]
    size = stories.write(made)
    exchanges = sum(len(one.exchanges) for one in made)
    _say(f"{len(made):,} stories with {exchanges:,} exchanges: {size:,} bytes in {stories.FILE}")
    return 0


def _play(given: argparse.Namespace) -> int:
    every = stories.read()
    kind = re.compile(given.kind)
    chosen = [
        one
        for one in every
        if given.only in one.name and (not given.kind or any(kind.search(each.kind) for each in one.exchanges))
    ][:: given.every]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["AMLSTACK_HOME"] = folder
        endpoint = daemon.up(home, hold_jobs=True)
        try:
            player = Player(endpoint, stories.polled(every))
            played = (outcome for one in chosen for outcome in player.play(one))
            outcomes = [outcome for outcome in played if kind.search(outcome.exchange.kind)]
        finally:
            daemon.down(home, remove=True)
    shown = report.table(one for one in outcomes if not one.story.held_out)
    hidden = report.table(one for one in outcomes if one.story.held_out)
    lines = list(report.page(chosen, shown, hidden))
    _say(*lines, *report.differing(shown), f"{time.monotonic() - begun:.0f} s")
    if given.write and not given.kind and len(chosen) == len(every):
        quick = {one.name for one in stories.quick(every)}
        _write(lines, shown, hidden, report.table(one for one in outcomes if one.story.name in quick))
    return 0


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _write(lines: list[str], shown: report.Table, hidden: report.Table, quick: report.Table) -> None:
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text("\n".join([f"{before}{BEGIN}", "", *lines, "", f"{END}{after}"]), "utf-8")
    tables = {"known": shown, "held out": hidden, "quick": quick}
    results = {key: dict(zip(report.COUNTS, one.counts(), strict=True)) for key, one in tables.items()}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
