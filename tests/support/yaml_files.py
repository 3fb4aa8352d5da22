"""YAML by libyaml, where PyYAML has that: many times faster, and the tests read and write thousands of texts."""

from __future__ import annotations

from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def load(text: str) -> Any:
    """The value that `yaml.safe_load` reads.

    Raises:
        yaml.YAMLError: The text is no YAML.
    """
    return yaml.load(text, Loader=_LOADER)


def dump(value: Any) -> str:
    """The text that `yaml.safe_dump` writes, keys in their order; libyaml has no halves of surrogate pairs."""
    try:
        return str(yaml.dump(value, Dumper=_DUMPER, sort_keys=False, allow_unicode=True))
    except UnicodeEncodeError:
        return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
