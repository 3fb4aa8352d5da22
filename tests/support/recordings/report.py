"""The outcome of stories: facts that are equal, that differ with a reason and without one, and what was not played."""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.support.recordings.answers import ComparedFact
    from tests.support.recordings.play import Outcome
    from tests.support.recordings.stories import Story

DIFFERENCES: Final = PROJECT / "tests" / "recordings" / "differences.toml"
"""Rows of patterns of kind, path and what either side says, each with the reason of all facts that match it."""
_OF_USERS: Final = re.compile(
    r"((?:^|\.)(?:inputs|outputs|jobs|tags|environmentVariables|identities|userAssignedIdentities|services|searchSpace"
    r"|search_space|metadata))\.[^.\[]+|((?:^|\.)properties\.properties)\.(?!azureml|_azureml)[^.\[]+"
)
_SIDES: Final = "kind", "path", "azure", "sandbox"
COUNTS: Final = "equal", "with a reason", "without a reason"
Key = tuple[str, str, str]


@dataclass(frozen=True)
class _Reason:
    patterns: tuple[re.Pattern[str], ...]
    text: str
    newer: bool

    def holds(self, kind: str, fact: ComparedFact) -> bool:
        said = kind, fact.path, fact.azure, fact.other
        return all(pattern.fullmatch(text) for pattern, text in zip(self.patterns, said, strict=True))


@dataclass
class Table:
    """Distinct facts by kind: of one kind of request, at one path, what Azure said there.

    A fact is equal if it is wherever it was met, and else differs for its reason, or for none. One that a newer answer
    of Azure contradicts is equal where the sandbox answers as the newer one (``newer``).
    """

    exchanges: Counter[str] = field(default_factory=Counter)
    alike: Counter[str] = field(default_factory=Counter)
    facts: dict[Key, str] = field(default_factory=dict)
    open: dict[Key, tuple[int, str, str]] = field(default_factory=dict)
    newer: set[Key] = field(default_factory=set)
    why: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    met: Counter[bool] = field(default_factory=Counter)

    def counts(self, kind: str | None = None) -> tuple[int, int, int]:
        """Facts that are equal, that differ for a reason, and that differ for none."""
        found = Counter(said for (of, _, _), said in self.facts.items() if kind in {None, of})
        equal, unexplained = found.pop("", 0), found.pop("?", 0)
        return equal, sum(found.values()), unexplained


_PLACE: Final = re.compile(r"(?<=\s)/\S*")
"""An address in a refusal: refusals are counted without."""


def table(outcomes: Iterable[Outcome]) -> Table:
    """Counts of outcomes, by kind and in all."""
    found, known = Table(), reasons()
    for one in outcomes:
        kind = one.exchange.kind
        if one.why:
            found.why[kind][_PLACE.sub("…", re.sub(r"'[^']*'", "'…'", one.why))] += 1
            continue
        found.exchanges[kind] += 1
        found.alike[kind] += one.equal
        for fact in one.facts:
            key = kind, general(kind, fact.path), fact.azure
            found.met[fact.equal] += 1
            why = None if fact.equal else next((each for each in known if each.holds(kind, fact)), None)
            if why is not None and why.newer:
                found.newer.add(key)
            said = "" if fact.equal or (why and why.newer) else why.text if why else "?"
            before = found.facts.get(key, "")
            found.facts[key] = "?" if "?" in {said, before} else said or before
            if said == "?":
                times, _, name = found.open.get(key, (0, "", one.story.name))
                found.open[key] = times + 1, fact.other, name
    return found


def general(kind: str, path: str) -> str:
    """A path without what only its user has named, and without numbers of rows."""
    if kind.endswith("computes"):  # whose own properties have properties
        return re.sub(r"\[\d+\]", "[]", path)
    return re.sub(r"\[\d+\]", "[]", _OF_USERS.sub(lambda found: f"{found[1] or found[2]}.*", path))


def reasons() -> list[_Reason]:
    """The reasons of the data file."""
    rows = tomllib.loads(DIFFERENCES.read_text("utf-8")).get("difference", [])
    return [
        _Reason(
            tuple(re.compile(row.get(name, ".*"), re.DOTALL) for name in _SIDES), row["reason"], row.get("newer", False)
        )
        for row in rows
    ]


def sources(stories: Iterable[Story]) -> tuple[Counter[str], Counter[str], dict[str, Counter[str]]]:
    """Kind → exchanges in the sources, exchanges in stories, and why the others are in none."""
    distilled: Counter[str] = Counter()
    left: dict[str, Counter[str]] = defaultdict(Counter)
    for story in stories:
        distilled.update(one.kind for one in story.exchanges)
        for text, times in story.left.items():
            kind, _, why = text.partition(": ")
            left[kind][why] += times
    every = Counter(distilled)
    for kind, whys in left.items():
        every[kind] += sum(whys.values())
    return every, distilled, left


def page(stories: list[Story], shown: Table, held_out: Table) -> Iterator[str]:
    """The counts as Markdown."""
    every, distilled, _ = sources(stories)
    equal, explained, unexplained = shown.counts()
    yield (
        f"{sum(every.values()):,} exchanges in {len(stories):,} recordings; {sum(distilled.values()):,} are in "
        f"stories, {sum(shown.exchanges.values()) + sum(held_out.exchanges.values()):,} of them played."
    )
    yield ""
    yield "| stories | distinct facts | equal | differ, with a reason | differ | equal where met |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name, one in (("known", shown), ("held out", held_out)):
        equal, explained, unexplained = one.counts()
        every_fact = equal + explained + unexplained
        yield (
            f"| {name} | {every_fact:,} | {_share(equal, every_fact)} | {explained:,} | {unexplained:,} "
            f"| {_share(one.met[True], sum(one.met.values()))} |"
        )
    yield ""
    newer = sum(not shown.facts[key] for key in shown.newer)
    yield f"{newer:,} of the equal known facts are so by a newer answer of Azure than their recording's."
    yield ""
    alike, unplayed = Counter[str](), Counter[str]()
    yield "| kind that differs | in sources | in stories | played | distinct facts | equal | with a reason | without |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for kind, times in sorted(every.items(), key=lambda row: (-row[1], row[0])):
        equal, explained, unexplained = shown.counts(kind)
        played = shown.exchanges[kind] + held_out.exchanges[kind]
        if not explained + unexplained:
            (alike if played else unplayed)[kind] = times
            continue
        yield (
            f"| {kind} | {times:,} | {distilled[kind]:,} | {played:,} | {equal + explained + unexplained:,} "
            f"| {equal:,} | {explained:,} | {unexplained:,} |"
        )
    yield ""
    yield (
        f"{len(alike)} further kinds, met {sum(alike.values()):,} times, are equal in every fact. {len(unplayed)}, "
        f"met {sum(unplayed.values()):,} times, are not played: sign-in, repetition, or not emulated."
    )
    yield ""
    yield "| reason | facts |"
    yield "| --- | ---: |"
    for text, number in Counter(text for text in shown.facts.values() if text not in {"", "?"}).most_common():
        yield f"| {_cell(text)} | {number:,} |"


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / max(whole, 1):.1f} %)"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace(" See docs/reference/sandbox.md.", "")[:120]


def differing(shown: Table) -> Iterator[str]:
    """Each fact that differs without a reason, the most frequent first."""
    for (kind, path, azure), (times, other, name) in sorted(shown.open.items(), key=lambda row: -row[1][0]):
        yield f"{times:5} {kind} | {path} | {azure[:120]} | sandbox: {other[:160]} | {name.rpartition('/')[2][-60:]}"
