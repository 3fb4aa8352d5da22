"""Stories: recordings without what is new in each, small enough to be kept, in the order in which they are played."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.paths import PROJECT
from tests.support.recordings.answers import GivenAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable

FILE: Final = PROJECT / "tests" / "recordings" / "stories.jsonl.xz"
POLL: Final = "POLL"


@dataclass(frozen=True)
class Exchange:
    """One request of a story and Azure's answer.

    Attributes:
        method: Of HTTP, or ``POLL``: the operation of an earlier exchange is followed to its end.
        path: With ``<sub>``, ``<group>``, ``<workspace>``, ``<account>`` and ``<blobstore>`` for the story's own; of
            storage, ``/blob/ACCOUNT/…``.
        query: Parameters.
        sent: The body; of a blob its length.
        headers: Those of the request that matter.
        answer: As a template.
        ids: Those of the resources in the answer, as Azure wrote them, where they are not the path.
        given: Headers of the answer, as Azure wrote them, that a later request repeats.
        of: Of a poll, the exchange whose operation it is.
        by: Of a poll, the header that was followed.
    """

    method: str
    path: str
    query: dict[str, str]
    sent: Any
    headers: dict[str, str]
    answer: GivenAnswer
    ids: tuple[str, ...] = ()
    given: dict[str, str] = field(default_factory=dict)
    of: int = -1
    by: str = ""

    @property
    def kind(self) -> str:
        """Method and type: ``PUT jobs``, ``POST jobs/cancel``, ``HEAD blob``."""
        return kind_of(self.method, self.path)


@dataclass(frozen=True)
class Story:
    """A recording as it is played.

    Attributes:
        name: The source, and the file in it.
        date: Day on which Azure answered so.
        exchanges: In their order.
        left: Kind and reason → exchanges of the source that are none of these.
    """

    name: str
    date: str
    exchanges: list[Exchange]
    left: dict[str, int] = field(default_factory=dict)

    @property
    def held_out(self) -> bool:
        """True for every fifth, by a hash of its name: what is mended is never looked up in these."""
        return int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % 5 == 0


def kind_of(method: str, path: str) -> str:
    """Method and type of a request."""
    if path.startswith("/blob/"):
        return f"{method} {'container' if path.count('/') == 3 else 'blob'}"
    if path.startswith("/history/"):
        return f"{method} run history"
    rest = re.split(r"(?i)/providers/Microsoft\.", path)
    if len(rest) == 1:
        parts = path.strip("/").split("/")
        return f"{method} {parts[0] if len(parts) < 3 else parts[2].lower()}"
    namespace, *parts = rest[-1].split("/")
    if parts[:1] == ["locations"]:
        return f"{method} locations/{parts[-1] if len(parts) < 4 else parts[2]}"
    words = [*parts[::2]] + ([parts[-1]] if len(parts) % 2 and len(parts) > 1 and method == "POST" else [])
    if words[:1] == ["workspaces"] and len(words) > 1 and namespace.lower().startswith("machinelearning"):
        words = words[1:]
    kind = "/".join(dict.fromkeys(words))
    return f"{method} {kind}{' (list)' if len(parts) % 2 and method == 'GET' else ''}"


def write(stories: Iterable[Story], file: Any = FILE) -> int:
    """Writes stories, the same bytes for the same stories; the size of the file."""
    lines = [json.dumps(_row(one), ensure_ascii=False, separators=(",", ":")) for one in stories]
    packed = lzma.compress(("\n".join(lines) + "\n").encode(), preset=9 | lzma.PRESET_EXTREME)
    file.write_bytes(packed)
    return len(packed)


def read(file: Any = FILE) -> list[Story]:
    """All stories of a file; regions of Microsoft's own call the registry azureml-dev that is azureml elsewhere."""
    text = lzma.decompress(file.read_bytes()).decode().replace("/registries/azureml-dev/", "/registries/azureml/")
    return [_story(json.loads(line)) for line in text.splitlines()]


def polled(stories: Iterable[Story]) -> dict[str, frozenset[str]]:
    """Kind of poll → all states that recordings show of it: one that is missing from another was not asked for then."""
    found: dict[str, frozenset[str]] = {}
    for one in (each for story in stories if not story.held_out for each in story.exchanges):
        if one.method == POLL:
            found[one.kind] = found.get(one.kind, frozenset()) | {*one.answer.states}
    return found


def quick(stories: list[Story]) -> list[Story]:
    """The part that is played at each change: every fiftieth that is not held out, and more of machine learning."""
    known = [one for one in stories if not one.held_out]
    return [one for at, one in enumerate(known) if at % (15 if "azure-ai-ml" in one.name else 50) == 0]


def _row(story: Story) -> dict[str, Any]:
    rows = [
        {
            key: value
            for key, value in {
                "m": one.method, "p": one.path, "q": one.query, "b": one.sent, "r": one.headers,
                "s": one.answer.status, "h": dict(one.answer.headers), "a": one.answer.body,
                "t": list(one.answer.states), "i": list(one.ids),
                "g": one.given, "of": one.of if one.of >= 0 else None, "by": one.by,
            }.items()
            if value not in (None, {}, [], "")
            or (key in {"b", "a"} and value is not None)
        }
        for one in story.exchanges
    ]  # fmt: skip
    return {"name": story.name, "date": story.date, "exchanges": rows, "left": story.left}


def _story(row: dict[str, Any]) -> Story:
    exchanges = [
        Exchange(
            one["m"],
            one.get("p", ""),
            one.get("q", {}),
            one.get("b"),
            one.get("r", {}),
            GivenAnswer(one["s"], one.get("h", {}), one.get("a"), tuple(one.get("t", ()))),
            tuple(one.get("i", ())),
            one.get("g", {}),
            one.get("of", -1),
            one.get("by", ""),
        )
        for one in row["exchanges"]
    ]
    return Story(row["name"], row["date"], exchanges, row["left"])
