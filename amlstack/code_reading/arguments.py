"""Arguments that a script takes, read from its text: argparse, transformers' HfArgumentParser, click, typer and fire.

What cannot be read for certain (subcommands, parents, options in a loop, a parser that other code gets) counts as
unknown: then a script takes whatever it is given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

MANY: Final = 1 << 20
"""Words without an end."""
_EXPANDS: Final = re.compile(r"BOUND|[$*?`\[{~]")
"""Words of a command that may be none or several when it runs."""
_NUMBER: Final = re.compile(r"-\d+(\.\d*)?(e[-+]?\d+)?|-\.\d+", re.IGNORECASE)


class Option(NamedTuple):
    """One option: the least and the most words that follow it, and whether the script ends without it."""

    least: int = 1
    most: int = 1
    required: bool = False
    line: int = 0


@dataclass(slots=True)
class Interface:
    """The arguments of one script.

    Attributes:
        reads: The library that reads them, as people call it.
        options: By each spelling.
        groups: Spellings of one and the same option.
        least: Positional arguments that it must get.
        most: Positional arguments that it may get.
        open: It may take further options.
        prefixes: How further options begin.
        abbreviated: An option may be cut short.
        by_place: What options name may stand without them, too.
        sure: The arguments are read whenever the script runs.
    """

    reads: str
    options: dict[str, Option] = field(default_factory=dict)
    groups: list[tuple[str, ...]] = field(default_factory=list)
    least: int = 0
    most: int = 0
    open: bool = False
    prefixes: tuple[str, ...] = ()
    abbreviated: bool = False
    by_place: bool = False
    sure: bool = True

    def add(self, names: Sequence[str], option: Option) -> None:
        """Take an option over."""
        self.groups.append(tuple(names))
        self.options |= dict.fromkeys(names, option)

    def add_positional(self, least: int, most: int) -> None:
        """Take a positional argument over."""
        self.least, self.most = self.least + least, self.most + most

    def named(self, word: str) -> str | None:
        """The option that a word names; None for none that is known."""
        name = word.partition("=")[0]
        if name in self.options:
            return name
        if self.reads in {"HfArgumentParser", "fire"}:
            plain = f"--{name.lstrip('-').replace('-', '_')}"
            if plain in self.options:
                return plain
            if self.reads == "fire" and (plain.startswith("--no") or len(plain) == len("--x")):
                return next(
                    (each for each in self.options if each in {f"--{plain[4:]}", name} or each[:3] == plain), None
                )
        if name.startswith("--"):
            return next((each for each in self.options if each.startswith(name)), None) if self.abbreviated else None
        return name[:2] if name[:2] in self.options else None  # -n4, and flags together


class Fault(NamedTuple):
    """One thing that a script would refuse.

    Attributes:
        kind: ``unknown``, ``missing``, ``value`` (an option without its value) or ``extra`` (a word too many).
        word: The word of the command, or the option that is missing.
        line: The line of the script that requires it; 0 for none.
    """

    kind: str
    word: str
    line: int = 0


def faults(interface: Interface, words: Sequence[str]) -> Iterator[Fault]:
    """The faults of the words that follow a script; BOUND stands for a binding."""
    if interface.reads == "HfArgumentParser" and len(words) == 1 and not words[0].startswith("-"):
        return  # a file of JSON or YAML in place of all arguments
    waiting, given, loose, opaque, before = list(words), set[str](), list[str](), False, ""
    vague = interface.open
    while waiting:
        word = waiting.pop(0)
        stem, equals, _ = word.partition("=")
        if not _is_option(word):
            opaque |= word == "--" or _EXPANDS.search(word) is not None
            loose.append(f"{before} {word}".strip())
        elif (name := interface.named(word)) is not None:
            option, joined = interface.options[name], bool(equals or (name[:2] != "--" and len(stem) > len(name)))
            given.add(name)
            taken, before = int(joined), name if option.most == 0 else ""
            while taken < option.most and not joined and waiting and not _is_option(waiting[0]):
                opaque |= _EXPANDS.search(waiting.pop(0)) is not None and option.most > 1
                taken += 1
            if taken < option.least and not opaque:
                yield Fault("value", name, option.line)
        else:
            vague = True
            opaque |= _EXPANDS.search(stem) is not None
            if not (interface.open or opaque or stem.startswith(interface.prefixes)):
                yield Fault("unknown", stem)
            while waiting and not _is_option(waiting[0]):
                waiting.pop(0)
    if not opaque:
        yield from _of_the_whole(interface, given, loose, vague=vague)


def _of_the_whole(
    interface: Interface, given: Collection[str], loose: Sequence[str], *, vague: bool
) -> Iterator[Fault]:
    """Words too many, and options and positional arguments that are not there."""
    if len(loose) > interface.most and not vague:
        yield Fault("extra", loose[interface.most])
    for names in interface.groups:
        option = interface.options[names[0]]
        if option.required and not {*given} & {*names} and not (interface.by_place and loose):
            yield Fault("missing", names[-1], option.line)
    if len(loose) < interface.least and not vague:
        yield Fault("missing", "a positional argument")


def _is_option(word: str) -> bool:
    return word.startswith("-") and word not in {"-", "--"} and not _NUMBER.fullmatch(word)
