"""Type stubs of the typed resources, made from the provider's schema."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from amlstack.base.paths import PROJECT
from amlstack.resources import base, classes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEAD = '''"""Made from amlstack/provider/schema.json by `make docs`."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from amlstack.resources.base import OnEdit, ProviderResource, Wait
'''
_PLAIN = {"string": "str", "integer": "int", "boolean": "bool"}


def typed_resources() -> str:
    """The text of ``amlstack/resources/classes.pyi``."""
    schema = json.loads((PROJECT / "amlstack/provider/schema.json").read_text("utf-8"))["resources"]
    every = [one for one in vars(classes).values() if isinstance(one, type) and issubclass(one, base.ProviderResource)]
    found = [one for one in every if one is not base.ProviderResource]
    return "\n\n".join([_HEAD, *("\n".join(_class(one, schema[one.kind])) for one in found)])


def _class(kind: type[base.ProviderResource], declared: Mapping[str, Any]) -> Iterator[str]:
    inputs, outputs, required = declared["inputProperties"], declared["properties"], declared.get("requiredInputs", ())
    yield f"class {kind.__name__}(ProviderResource):"
    yield f'    """{kind.__doc__}'
    yield from ("", "    Args:", "        resource_name: Name in the stack.")
    yield from (f"        {_keyword(name)}: {_words(each)}" for name, each in inputs.items())
    yield from ("        opts: Pulumi's own options.", "", "    Attributes:")
    yield from (f"        {_python(name)}: {_words(each)}" for name, each in outputs.items())
    yield from ('    """', "")
    yield from (f"    {_python(name)}: pulumi.Output[{_type(each)}]" for name, each in outputs.items())
    yield from ("    def __init__(", "        self,", "        resource_name: str,", "        *,")
    for name in sorted(inputs, key=lambda each: each not in required):
        optional = "" if name in required else " | None = None"
        yield f"        {_keyword(name)}: pulumi.Input[{_type(inputs[name])}]{optional},"
    yield from ("        opts: pulumi.ResourceOptions | None = None,", "    ) -> None: ...", "")


def _python(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _keyword(name: str) -> str:
    return "content_hash" if name == "hash" else _python(name)


def _words(declared: Mapping[str, Any]) -> str:
    return str(declared.get("description") or _type(declared))


def _type(declared: Mapping[str, Any]) -> str:
    if "$ref" in declared:
        name = declared["$ref"].rpartition(":")[2]
        return name if name in {"OnEdit", "Wait"} else "Any"
    if declared["type"] == "object":
        return f"Mapping[str, {_type(declared['additionalProperties'])}]"
    if declared["type"] == "array":
        return f"Sequence[pulumi.Input[{_type(declared['items'])}]]"
    return _PLAIN[declared["type"]]
