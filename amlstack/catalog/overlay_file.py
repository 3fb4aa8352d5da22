"""Reads a team's catalogue file: values that the catalogue can take, and a finding at its line for everything else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import near_misses, yamltext
from amlstack.base.findings import Finding
from amlstack.catalog.files import load as load_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from amlstack.base.yamltext import Text

CODE: Final = "catalogue-overlay"

PARTS: Final = ("sizes", "prices", "discounts", "regions")
LIKE: Final = "like"

Place = tuple[str | int, ...]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _day(value: Any) -> bool:
    if isinstance(value, str):
        try:
            date.fromisoformat(value)
        except ValueError:
            return False
        return True
    return type(value) is date


Kind = tuple["Callable[[Any], bool]", str]

NUMBER: Final[Kind] = (_number, "a number, 0 or more")
TEXT: Final[Kind] = (_text, "a text")
WHOLE: Final[Kind] = (_whole, "an integer, 0 or more")
DAY: Final[Kind] = (_day, "a day such as 2026-11-01")
YES: Final[Kind] = (lambda value: isinstance(value, bool), "true or false")

PRICE: Final[dict[str, Kind]] = {
    "size": TEXT, "usd": NUMBER, "region": TEXT, "checked": DAY,
    "source": TEXT, "low_priority": NUMBER, "spot": NUMBER,
}  # fmt: skip
PRICE_NEEDS: Final = ("size", "usd", "region", "checked")

SIZE: Final[dict[str, Kind]] = {
    "name": TEXT, LIKE: TEXT, "family": TEXT, "series": TEXT, "vcpus": WHOLE, "memory_gib": NUMBER,
    "architecture": (lambda value: value in {"x64", "arm64"}, "x64 or arm64"), "gpus": WHOLE, "gpu_vendor": TEXT,
    "gpu_model": TEXT, "gpu_memory_gib": NUMBER, "gpu_share": TEXT, "rdma": YES, "sriov": YES, "infiniband": TEXT,
    "gbps_per_node": NUMBER, "retired": DAY, "azureml_supported": YES, "note": TEXT, "checked": DAY,
}  # fmt: skip
SIZE_NEEDS: Final = ("name",)
WITHOUT_LIKE: Final = ("vcpus", "memory_gib", "checked")


def load(file: Path) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """What a file says, by part, and what is wrong with it.

    A size takes from the one it is ``like`` whatever it does not say itself. With findings the values are not to be
    used.
    """
    text = yamltext.read(file)
    found: dict[str, Any] = {"sizes": [], "prices": [], "discounts": {}, "regions": []}
    if text.findings:
        return found, text.findings
    findings = list(_read(text, found))
    return found, tuple(finding.at(str(file)) for finding in findings)


def _read(text: Text, found: dict[str, Any]) -> Iterator[Finding]:
    data = {} if text.data is None else text.data
    if not isinstance(data, Mapping):
        parts = ", ".join(f"`{part}:`" for part in PARTS)
        yield _finding(text, (), f"The file must be a mapping, got `{data}`", "", f"Write {parts}.")
        return
    for key in data:
        if key not in PARTS:
            yield _unknown(text, (key,), str(key), PARTS)
    if not data:
        return
    yield from _rows(text, "prices", PRICE, PRICE_NEEDS, found["prices"])
    for row in found["prices"]:
        row.setdefault("source", "the team's catalogue")
    written: list[dict[str, Any]] = []
    yield from _rows(text, "sizes", SIZE, SIZE_NEEDS, written)
    yield from _completed(text, written, found["sizes"])
    yield from _discounts(text, data.get("discounts"), found["discounts"])
    yield from _regions(text, data.get("regions"), found["regions"])


def _rows(
    text: Text, part: str, kinds: Mapping[str, Kind], needs: Sequence[str], into: list[dict[str, Any]]
) -> Iterator[Finding]:
    rows = text.data.get(part)
    if rows is None:
        return
    if not isinstance(rows, list):
        yield _wrong(text, (part,), f"`{part}`", "a list", rows)
        return
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            yield _wrong(text, (part, index), f"An entry of `{part}`", "a mapping", row)
            continue
        found = list(_row(text, (part, index), row, kinds, needs))
        yield from found
        if not found:
            into.append({key: value for key, value in row.items() if value is not None} | {"_place": (part, index)})


def _row(
    text: Text, place: Place, row: Mapping[Any, Any], kinds: Mapping[str, Kind], needs: Sequence[str]
) -> Iterator[Finding]:
    for key, value in row.items():
        if key not in kinds:
            yield _unknown(text, (*place, key), str(key), tuple(kinds))
        elif value is not None and not kinds[key][0](value):
            yield _wrong(text, (*place, key), f"`{key}`", kinds[key][1], value)
    for key in needs:
        if row.get(key) is None:
            what = {"prices": "A price", "sizes": "A size"}[str(place[0])]
            yield _finding(text, place, f"{what} must have `{key}`", "", f"Write `{key}: …`.")


def _completed(text: Text, written: Sequence[dict[str, Any]], into: list[dict[str, Any]]) -> Iterator[Finding]:
    """Rows that have every key: what a size does not say is that of the size that it is like."""
    known = {row["name"].lower(): row for row in load_rows("sizes")}
    for row in written:
        place = row.pop("_place")
        like = row.pop(LIKE, None)
        base = known.get((like or "").lower())
        if like is not None and base is None:
            yield _finding(
                text,
                (*place, LIKE),
                f"The catalogue has no size `{like}`",
                "A size is like one of the catalogue",
                near_misses.hint(like, {each["name"] for each in known.values()}).strip(),
            )
            continue
        missing = [] if base else [key for key in WITHOUT_LIKE if key not in row]
        for key in missing:
            yield _finding(text, place, f"A size that is `like` no other must have `{key}`", "", f"Write `{key}: …`.")
        if not missing:
            into.append({**(base or _plain(row["name"])), **_as_text(row), "source": ["team"]})


def _plain(name: str) -> dict[str, Any]:
    """A CPU size on Ethernet of which nothing else is known."""
    nothing = ("family", "gpu_vendor", "gpu_model", "gpu_memory_gib", "infiniband", "gbps_per_node", "retired")
    return {
        **dict.fromkeys((*nothing, "azureml_supported")), "name": name, "series": name.removeprefix("Standard_"),
        "architecture": "x64", "gpus": 0, "rdma": False, "sriov": False, "note": "",
    }  # fmt: skip


def _as_text(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, date) else value for key, value in row.items()}


def _discounts(text: Text, given: Any, into: dict[str, float]) -> Iterator[Finding]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        yield _wrong(text, ("discounts",), "`discounts`", 'a mapping of sizes, series or "*"', given)
        return
    rows = load_rows("sizes")
    known = {"*", *(row["name"] for row in rows), *(row["series"] for row in rows)}
    lower = {name.lower() for name in known}
    for name, share in given.items():
        place = ("discounts", name)
        if not _number(share) or share >= 1:
            yield _wrong(text, place, f"`discounts.{name}`", "a share of the list price such as 0.15", share)
        elif str(name).lower() not in lower:
            near = near_misses.hint(str(name), known).strip()
            yield _finding(text, place, f"No size or series is named `{name}`", "A discount is of something", near)
        else:
            into[str(name).lower()] = float(share)


def _regions(text: Text, given: Any, into: list[str]) -> Iterator[Finding]:
    if given is None:
        return
    if not isinstance(given, list):
        yield _wrong(text, ("regions",), "`regions`", "a list of names", given)
        return
    for index, name in enumerate(given):
        if not _text(name):
            yield _wrong(text, ("regions", index), f"`regions[{index}]`", "a name such as westeurope", name)
        else:
            into.append("".join(name.lower().split()))


def _wrong(text: Text, place: Place, what: str, kind: str, value: Any) -> Finding:
    return _finding(text, place, f"{what} must be {kind}, got `{value}`", "", "")


def _unknown(text: Text, place: Place, key: str, known: Sequence[str]) -> Finding:
    near = near_misses.did_you_mean(key, known, otherwise=f"Known are {', '.join(known)}.")
    return _finding(text, place, f"There is no key `{key}` here", "", near)


def _finding(text: Text, place: Place, seen: str, rule: str, remedy: str) -> Finding:
    spot = text.spot(place)
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
    found = Finding(CODE, where, seen, rule, remedy)
    return found.at(None, *spot) if spot else found
