"""pydantic's errors in words: what a value must be. One wording for settings and for job files in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

_INTEGER: Final = "be an integer"
_BOOLEAN: Final = "be true or false"
_OBJECT: Final = "be an object with keys"
_MUST: Final = {
    "int_parsing": _INTEGER,
    "int_type": _INTEGER,
    "int_from_float": _INTEGER,
    "float_parsing": "be a number",
    "float_type": "be a number",
    "finite_number": "be a finite number",
    "bool_parsing": _BOOLEAN,
    "bool_type": _BOOLEAN,
    "greater_than": "be above {gt}",
    "greater_than_equal": "be at least {ge}",
    "less_than": "be below {lt}",
    "less_than_equal": "be at most {le}",
    "string_type": "be a string",
    "string_too_short": "have at least {min_length} characters",
    "string_too_long": "have at most {max_length} characters",
    "too_short": "have at least {min_length} entries",
    "too_long": "have at most {max_length} entries",
    "list_type": "be a list",
    "tuple_type": "be a list",
    "dict_type": "be a mapping of names to values",
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
}


def must(error: ErrorDetails) -> str:
    """What the value must be, as the end of a sentence: ``be at least 1``; empty for an error of no such form."""
    if error["type"] == "literal_error":
        return f"be one of {listed(allowed(error))}"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error" and message.startswith("Input should be "):
        return message.removeprefix("Input should ")
    return _MUST.get(error["type"], "").format_map(error.get("ctx") or {})


def allowed(error: ErrorDetails) -> tuple[str, ...]:
    """The words that a value of a fixed choice may be."""
    words = str((error.get("ctx") or {})["expected"]).replace(" or ", ", ").split(", ")
    return tuple(word.strip().strip("'") for word in words)


def listed(names: Iterable[str]) -> str:
    """Names in one sentence."""
    return ", ".join(f"`{name}`" for name in names)
