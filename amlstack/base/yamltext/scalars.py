"""Scalars: which tag one without a tag has, and the value of each, as PyYAML's safe loader has them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

_NODE: Any = yaml.ScalarNode
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_CONSTRUCTOR = SafeConstructor()
TAG = "tag:yaml.org,2002:"
STR, MERGE = f"{TAG}str", f"{TAG}merge"
_MAKERS: dict[str, Any] = {
    STR: lambda node: node.value,
    f"{TAG}null": lambda _: None,
    f"{TAG}bool": _CONSTRUCTOR.construct_yaml_bool,
    f"{TAG}int": _CONSTRUCTOR.construct_yaml_int,
    f"{TAG}float": _CONSTRUCTOR.construct_yaml_float,
    f"{TAG}timestamp": _CONSTRUCTOR.construct_yaml_timestamp,
    f"{TAG}binary": _CONSTRUCTOR.construct_yaml_binary,
    f"{TAG}value": lambda node: node.value,
}
_WRONG = (ValueError, OverflowError, LookupError, TypeError, AttributeError, yaml.YAMLError)
"""What PyYAML's constructors raise for a text that only looks like one of theirs."""

MOST_BITS = 1023
"""Of a whole number: a larger one is no float either, and has no decimal digits that Python prints."""

SHORT = 40


def known(tag: str) -> bool:
    """Whether scalars of that tag are plain values."""
    return tag in _MAKERS


def made(tag: str, text: str) -> Any:
    """The value of a scalar.

    Raises:
        ValueError: It is none of that tag's.
    """
    try:
        value = _MAKERS[tag](_NODE(tag, text))
    except _WRONG as error:
        raise ValueError(text) from error
    if type(value) is int and value.bit_length() > MOST_BITS:
        raise ValueError(text)
    return value


def implicit(text: str) -> str:
    """The tag of a scalar that has neither a tag nor quotes."""
    return _implicit_short(text) if len(text) < SHORT else _implicit(text)


def _implicit(text: str) -> str:
    for tag, pattern in _RESOLVERS.get(text[:1], ()):
        if pattern.match(text):
            return str(tag)
    return STR


# Of keys and words all job files have the same few.
_implicit_short = lru_cache(maxsize=8192)(_implicit)
