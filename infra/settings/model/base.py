"""The base of the models of settings: frozen, unknown keys forbidden."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, StringConstraints

from amlstack.base.models import described, matching

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

Refused = Mapping[str, str]
"""Keys that other tools have and these settings do not: why not, or what to write instead."""


class SettingsModel(BaseModel):
    """Frozen, without unknown keys; its errors quote no input.

    The docstrings below the fields describe the settings in the schema of the file and in the docs.

    Attributes:
        refused: Keys that are refused with a reason of their own.
        partly: The model whose fields these are too, where all of them may be absent.
    """

    refused: ClassVar[Refused] = MappingProxyType({})
    partly: ClassVar[type[BaseModel] | None] = None

    # Python's own expressions: pydantic's take 30 ms to compile a group's name, which every verb would wait for.
    # A model that is a part of another is built with it, and by itself where somebody asks for it alone.
    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, regex_engine="python-re", defer_build=True
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema with the field's descriptions."""
        shown = handler(core)
        properties = handler.resolve_ref_schema(shown)["properties"]
        for name, text in described(cls.partly or cls).items():
            if name in cls.model_fields:
                properties[cls.model_fields[name].alias or name]["description"] = text
        return shown


def refusing(*keys: tuple[str, str]) -> Refused:
    """Refused keys: each entry some names with spaces between, and why not or what to write instead."""
    return MappingProxyType({name: why for names, why in keys for name in names.split()})


def or_named(field: str, whole: Any) -> BeforeValidator:
    """Lets a bare string stand for an object of the type ``whole`` with nothing but ``field``."""
    return BeforeValidator(
        lambda value: {field: value} if isinstance(value, str) else value, json_schema_input_type=str | whole
    )


def arm_id(kind: str) -> str:
    """The pattern of ids of a type, as `Microsoft.Network/virtualNetworks/subnets`, without anchors.

    Azure's own tools print ids with `resourcegroups` and `microsoft.insights` too, so capitals may be small letters.
    """
    namespace, *types = kind.split("/")
    levels = "".join(f"/{_in_either_case(name)}/[^/]+" for name in types)
    group = f"/subscriptions/[^/]+/{_in_either_case('resourceGroups')}/[^/]+"
    return f"{group}/providers/{_in_either_case(namespace)}{levels}"


def given_by_id(kind: str) -> StringConstraints:
    """The constraint of a text that is the ARM id of a resource of a type."""
    names = "".join(f"/{name}/<name>" for name in kind.split("/")[1:])
    namespace = kind.split("/", maxsplit=1)[0]
    return matching(
        rf"^{arm_id(kind)}\Z",
        f"It is given by its ARM id, /subscriptions/…/resourceGroups/…/providers/{namespace}{names}",
    )


def _in_either_case(text: str) -> str:
    return re.sub("[A-Z]", lambda found: f"[{found[0]}{found[0].lower()}]", re.escape(text))


_PATTERNS: dict[str, tuple[str, str]] = json.loads(Path(__file__).with_name("patterns.json").read_text("utf-8"))
"""Type of text → its pattern, and what the pattern asks for in words."""


def named(text: str) -> StringConstraints:
    """The constraint of a type of text in `patterns.json`."""
    return matching(*_PATTERNS[text])


AssetName = Annotated[str, named("AssetName")]
Location = Annotated[str, named("Location")]
ObjectId = Annotated[str, named("ObjectId")]
Tags = Annotated[
    dict[
        Annotated[str, matching(r"^[^<>%&\\?/]{1,512}\Z", "A tag's name has up to 512 characters, none of <>%&\\?/")],
        Annotated[str, StringConstraints(max_length=256)],
    ],
    Field(max_length=50),
]
