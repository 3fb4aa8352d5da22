"""A job file with some values added or changed, everything else left as it was written: comments, order, quotes."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

_MISSING: Any = object()


def rewritten(text: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """The text of a job file with the difference of two renderings of its job put in.

    Args:
        text: The file as it was written.
        before: The job of the file as file content (`write.files.file_of`).
        after: The same job with what is to be changed.

    Returns:
        The new text; the old one when nothing differs. None when the file's form cannot hold the change in place
        (a value that several keys share by an alias).
    """
    if before == after:
        return text
    from ruamel.yaml import YAML  # noqa: PLC0415 - only a file that is changed needs it
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415
    from ruamel.yaml.util import load_yaml_guess_indent  # noqa: PLC0415

    mark, body = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    plain = body.replace("\r\n", "\n")
    try:
        _, indent, offset = load_yaml_guess_indent(plain)
        writer = YAML()
        writer.preserve_quotes = True
        writer.width = 100_000
        writer.indent(mapping=indent or 2, sequence=(offset or 0) + 2, offset=offset or 0)
        written = writer.load(plain)
    except (YAMLError, ValueError):
        return None
    _change(written, before, after)
    stream = StringIO()
    writer.dump(written, stream)
    result = stream.getvalue()
    if yaml.safe_load(result) != _changed(yaml.safe_load(plain), before, after):
        return None
    return mark + (result.replace("\n", "\r\n") if "\r\n" in body else result)


def _change(written: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Put the difference into a mapping of ruamel's, in place."""
    for key in before:
        if key not in after and key in written:
            del written[key]
    ahead: list[str] = []  # keys that stand before this one, for the place of a new one
    for key, value in after.items():
        old = before.get(key, _MISSING)
        if old == value and type(old) is type(value):
            pass
        elif isinstance(old, dict) and isinstance(value, dict) and isinstance(written.get(key), dict):
            _change(written[key], old, value)
        elif key in written:
            written[key] = _node(value)
        else:
            found = [index for index, name in enumerate(written) if name in ahead]
            place = max(found, default=len(written) - 1)
            neighbour = list(written)[place] if written else None
            written.insert(place + 1, key, _node(value))
            if neighbour is not None:
                _hand_on(_leaf(written, neighbour), _leaf(written, key))
        ahead.append(key)


def _leaf(parent: Any, key: Any) -> tuple[Any, Any]:
    """The place of the last value below a key: ruamel keeps with it what follows, up to the next key."""
    while isinstance(parent[key], (dict, list)) and parent[key] and not parent[key].fa.flow_style():
        parent = parent[key]
        key = list(parent)[-1] if isinstance(parent, dict) else len(parent) - 1
    return parent, key


def _hand_on(old: tuple[Any, Any], new: tuple[Any, Any]) -> None:
    """Empty lines and comments after a value's own line belong to what follows: behind the value put in between."""
    from ruamel.yaml.tokens import CommentToken  # noqa: PLC0415

    (parent, key), (other, last) = old, new
    slot = 2 if isinstance(parent, dict) else 0
    token = (parent.ca.items.get(key) or [None] * 4)[slot]
    if token is None or isinstance(token, list):
        return
    own, _, rest = token.value.partition("\n")
    if not rest:
        return
    token.value = f"{own}\n" if own else ""
    moved = CommentToken(f"\n{rest}", token.start_mark, None)
    other.ca.items[last] = [None, None, moved, None] if isinstance(other, dict) else [moved, None]
    if not own:
        del parent.ca.items[key]


def _changed(written: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> Any:
    """The content that a file must have after the change: the same on plain values."""
    result = {key: value for key, value in written.items() if key not in before or key in after}
    for key, value in after.items():
        old = before.get(key, _MISSING)
        if old == value and type(old) is type(value):
            continue
        nested = isinstance(old, dict) and isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = _changed(result[key], old, value) if nested else value
    return result


def _node(value: Any) -> Any:
    """A new value as ruamel writes it so that PyYAML, which reads YAML 1.1, reads the same."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq  # noqa: PLC0415
    from ruamel.yaml.scalarstring import LiteralScalarString, SingleQuotedScalarString  # noqa: PLC0415

    if isinstance(value, dict):
        return CommentedMap((key, _node(inner)) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return CommentedSeq(_node(inner) for inner in value)
    if not isinstance(value, str):
        return value
    if "\n" in value:
        return LiteralScalarString(value)
    return value if _reads_as_text(value) else SingleQuotedScalarString(value)


def _reads_as_text(value: str) -> bool:
    try:
        return bool(yaml.safe_load(f"a: {value}") == {"a": value})
    except (yaml.YAMLError, ValueError):
        return False
