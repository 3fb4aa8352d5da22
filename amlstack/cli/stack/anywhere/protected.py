"""What a stack protects from deletion, and how the protection is lifted: shown before anything is destroyed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.cli.progress import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.cli.stack.state import State


def of(state: State) -> tuple[str, ...]:
    """URNs of the resources that the engine refuses to delete."""
    return tuple(str(one["urn"]) for one in state.resources if one.get("protect") and not one.get("delete"))


def retained(state: State) -> tuple[str, ...]:
    """URNs of the resources that stay in Azure when the stack forgets them."""
    return tuple(str(one["urn"]) for one in state.resources if one.get("retainOnDelete"))


def refusal(urns: tuple[str, ...], stack: str) -> Iterator[str]:
    """Lines for a person: what is protected, and the ways to lift that."""
    yield f"{len(urns)} resource{' is' if len(urns) == 1 else 's are'} protected from deletion:"
    yield from (f"  {name_of(urn)}" for urn in urns)
    yield (
        f"all of them: `pulumi config set amlstack:protect false --stack {stack}`, `amlstack up --stack {stack}`, and "
        "this again"
    )
    yield (
        f"one of them: `pulumi state unprotect --stack {stack} 'URN'`; "
        f"`pulumi stack --stack {stack} --show-urns` lists URNs"
    )
