"""What all clusters of a list have in common: the fields of a cluster but its name, none of them required."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Optional, cast

from pydantic import Field, create_model

from amlstack.base.models import models_in
from infra.settings.cluster_defaults import BY_KEY
from infra.settings.model.base import SettingsModel
from infra.settings.model.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Collection

    from pydantic.fields import FieldInfo


def _partial(model: type[SettingsModel], name: str, inside: Collection[str] = (), without: str = "") -> Any:
    """A model with the fields of another one, all of which may be absent.

    Args:
        model: The other one.
        name: Of the new one.
        inside: Fields that hold objects, of which the same is true.
        without: A field that it does not have.
    """
    fields: dict[str, Any] = {}
    for key, field in model.model_fields.items():
        if key != without:
            fields[key] = (Optional[_type(field, name, partly=key in inside)], _field(field))  # noqa: UP045 - at run time
    made = create_model(name, __base__=SettingsModel, __doc__=model.__doc__, **fields)
    made.refused = model.refused
    return made


def _type(field: FieldInfo, name: str, *, partly: bool) -> Any:
    if partly and (inner := models_in(field.annotation)):
        return _partial(cast("type[SettingsModel]", inner[0]), f"{name}{inner[0].__name__}")
    annotation: Any = field.annotation
    return Annotated[(annotation, *field.metadata)] if field.metadata else annotation


def _field(field: FieldInfo) -> Any:
    return Field(None, description=field.description)


if TYPE_CHECKING:
    ClusterDefaults = Cluster
else:
    ClusterDefaults = _partial(Cluster, "ClusterDefaults", BY_KEY, without="name")
    ClusterDefaults.refused = MappingProxyType({**Cluster.refused, "name": "Each cluster has a name of its own"})
