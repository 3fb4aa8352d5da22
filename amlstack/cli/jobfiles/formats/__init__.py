"""In which form a verb prints what it found: for people, for programs, and for what shows findings beside the code."""

from __future__ import annotations

from enum import StrEnum

import typer


class Format(StrEnum):
    """A form of output. Not every verb has each of them."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"
    NAMES = "names"
    STACKS = "stacks"


def chosen(name: str | None, *allowed: Format, as_json: bool = False) -> Format:
    """The form that a person asked for.

    Args:
        name: What `--format` got; None for nothing.
        allowed: The forms that there are here; the first is taken where nothing is asked for.
        as_json: Whether `--json` was given, another spelling of `--format json`.

    Raises:
        typer.BadParameter: There is no such form here, or two were asked for.
    """
    names = [str(one) for one in allowed]
    if name is not None and name.lower() not in names:
        raise typer.BadParameter(f"`--format` is one of {', '.join(names)} here, got `{name}`.")
    if name is None:
        return Format.JSON if as_json else allowed[0]
    asked = Format(name.lower())
    if as_json and asked is not Format.JSON:
        raise typer.BadParameter(
            f"`--json` is another spelling of `--format json`, and `--format {asked}` is asked for."
        )
    return asked
