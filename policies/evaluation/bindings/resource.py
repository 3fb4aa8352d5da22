"""Which facts of any resource the rules on all resources judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.checks.resource import region, required_tags
from policies.evaluation.binding import Binding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.evaluation.binding import Found
    from policies.evaluation.context import Context
    from policies.evaluation.subject import Subject


def _region(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    if location := subject.facts.text("location"):
        yield region.check(location, regions=config["regions"], where=subject.facts.at("location"))


def _tags(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    tags = subject.facts.mapping("tags")
    yield required_tags.check(
        tags, required=config["required"], values=config["values"], where=subject.facts.at("tags")
    )


BINDINGS: tuple[Binding, ...] = (
    Binding(region.RULE, frozenset({"resource"}), _region, ("regions",)),
    Binding(required_tags.RULE, frozenset({"resource"}), _tags, ("required",)),
)
