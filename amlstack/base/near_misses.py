"""Near misses: the names somebody may have meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def near(word: str, known: Iterable[str], n: int = 3) -> tuple[str, ...]:
    """Known names close to a word in any letter case, best first; only those nearly as close as the best one.

    Where none is close, those that begin as one part of the word does: ``node_count`` may be ``nodes``.
    """
    import difflib  # noqa: PLC0415 - only a mistake needs it

    by_lower = {name.lower(): name for name in known}
    matches = difflib.get_close_matches(word.lower(), by_lower, n=n, cutoff=0.6)
    if not matches:
        parts = tuple(part for part in word.lower().split("_") if len(part) >= 4)
        return tuple(name for low, name in by_lower.items() if low.startswith(parts))[:n]
    close = [difflib.SequenceMatcher(None, match, word.lower()).ratio() for match in matches]
    return tuple(by_lower[match] for match, ratio in zip(matches, close, strict=True) if ratio > close[0] - 0.1)


def hint(word: str, known: Iterable[str], mark: str = "`") -> str:
    """`` Did you mean `epochs`?`` with a blank in front, to end a sentence with; empty when nothing is near."""
    close = " or ".join(f"{mark}{name}{mark}" for name in near(word, known))
    return f" Did you mean {close}?" if close else ""


def did_you_mean(word: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """``Did you mean `epochs`?``, else the list of all that is known, else a given sentence."""
    known = tuple(known)
    if close := hint(word, known):
        return close.lstrip()
    if known and len(known) <= 12:
        return f"There {'is' if len(known) == 1 else 'are'} {', '.join(f'`{name}`' for name in known)}."
    return otherwise
