"""Each type of the installed SDK that can name a VM size or hold a template is judged, or listed with the reason."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest

from policies.evaluation import type_tokens
from policies.resource_types import machines, reasons
from policies.templates.forms import FORMS
from tests.support.policies import sdk_types
from tests.support.policies.sdk_types import Property, resources

NAMED = re.compile(
    r"vm_?sizes?$|vm_size|virtual_machine_size|vm_sku|(^|_)node_(size|sku|type)s?$|instance_types?$|machine_(sku|size)|"
    r"host_sku|instance_size$|node_sku_type|multi_size"
)
DESCRIBED = re.compile(
    r"\b(VM|virtual machine) ?(size|sku)s?\b|size of (the|each|a) (VM|virtual machine)|Standard_[A-Z]+\d", re.IGNORECASE
)
TEMPLATE = re.compile(
    r"^(main_?|arm_?|managed_application_?|vm_?|network_function_?)?template(_body|_content|_json)?$|^linked_templates$"
)
JOBS = ("machinelearningservices:Job ", "machinelearningservices:Schedule properties.action.jobDefinition.")


def of_sizes() -> list[str]:
    """``module:Type path`` of every property that can name a size."""
    return [
        f"{kind} {'.'.join(one.path)}"
        for kind, properties in resources().items()
        for one in properties
        if NAMED.search(one.name) or (one.name in {"name", "size", "sku"} and DESCRIBED.search(one.text))
    ]


def judged_sizes() -> set[str]:
    plain = {
        f"{module}:{kind} {'.'.join(name for name in path if name != machines.EACH)}".lower()
        for (module, kind), known in machines.MACHINES.items()
        for path in known.paths
    }
    computes = {
        f"machinelearningservices:compute properties.properties.{name}".lower() for name in machines.COMPUTES.values()
    }
    return plain | computes


def test_the_sources_of_the_sdk_are_read() -> None:
    found = resources()

    assert len(found) > 2000
    assert (
        Property(("properties", "properties", "vmSize"), "vm_size", "Virtual Machine Size")
        in found["machinelearningservices:Compute"]
    )
    assert sdk_types.wire("node_idle_time") == "nodeIdleTime"


def test_every_property_that_can_name_a_vm_size_is_judged_or_listed_with_the_reason() -> None:
    judged, left = judged_sizes(), []
    for place in of_sizes():
        if place.lower() in judged or place.startswith(JOBS):
            continue
        if not any(fnmatchcase(place, pattern) for pattern in reasons.SIZES):
            left.append(place)

    assert left == []


def test_no_reason_is_left_of_what_is_gone() -> None:
    places = of_sizes()

    assert [pattern for pattern in reasons.SIZES if not any(fnmatchcase(one, pattern) for one in places)] == []


@pytest.mark.parametrize("kind", sorted(machines.MACHINES))
def test_every_judged_type_is_one_of_the_sdk(kind: tuple[str, str]) -> None:
    assert ":".join(kind) in resources()
    assert type_tokens.judged(f"azure-native:{kind[0]}:{kind[1]}")


def test_every_property_that_can_hold_a_template_is_judged_or_listed_with_the_reason() -> None:
    held = {f"{kind} {'.'.join(form.template)}" for kind, form in FORMS.items()}
    held |= {f"{kind} {'.'.join(form.parts)}" for kind, form in FORMS.items() if form.parts}
    held |= {f"{kind} {'.'.join((*form.parts, 'template'))}" for kind, form in FORMS.items() if form.parts}
    found = {
        f"{kind} {'.'.join(one.path)}"
        for kind, properties in resources().items()
        for one in properties
        if TEMPLATE.search(one.name)
    }
    arm = {
        f"{kind} {'.'.join(one.path)}"
        for kind, properties in resources().items()
        for one in properties
        if one.name.endswith("template") and re.search(r"ARM template|Azure Resource Manager template", one.text)
    }

    assert {one.partition(" ")[0] for one in held} <= set(resources())
    listed = {one for one in found - held if any(fnmatchcase(one, each) for each in reasons.TEMPLATES)}
    assert found - held - listed == set()
    assert arm - held == set()


def test_every_form_of_a_template_is_judged() -> None:
    for kind in FORMS:
        assert type_tokens.judged(f"azure-native:{kind}")
