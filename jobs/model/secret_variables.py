"""Variables whose value is a secret of the stack: ``WANDB_API_KEY: {secret: NAME}``.

A job holds the name alone, in its declaration, its plan and whatever is shown of it. The value is put into the rendered
body by who registers it: the stack from its encrypted settings, a rehearsal from this machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOLDERS: Final = frozenset({"environmentVariables", "environment_variables"})
"""The keys that hold variables, on the wire and in the steps of a pipeline."""


def secret_of(value: Any) -> str | None:
    """The name of the secret that a variable is to hold; None for a variable with a value of its own."""
    named = isinstance(value, dict) and value.keys() == {"secret"} and isinstance(value["secret"], str)
    return value["secret"] if named else None


def named_in(body: Any) -> Iterator[tuple[str, str]]:
    """Each variable in a body that holds a secret, with the name of that."""
    if isinstance(body, dict):
        for key, inner in body.items():
            if key in HOLDERS and isinstance(inner, dict):
                yield from ((variable, name) for variable, value in inner.items() if (name := secret_of(value)))
            else:
                yield from named_in(inner)
    elif isinstance(body, list):
        for inner in body:
            yield from named_in(inner)


def filled(body: Any, values: Mapping[str, Any]) -> Any:
    """A body with the secrets' values; it is the same object where it names none.

    Args:
        body: As it is rendered.
        values: Secret → its value, or what stands for it.

    Raises:
        KeyError: There is no such secret.
    """
    return _filled(body, values) if any(True for _ in named_in(body)) else body


def _filled(body: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(body, dict):
        return {
            key: {
                variable: value if (name := secret_of(value)) is None else values[name]
                for variable, value in inner.items()
            }
            if key in HOLDERS and isinstance(inner, dict)
            else _filled(inner, values)
            for key, inner in body.items()
        }
    return [_filled(inner, values) for inner in body] if isinstance(body, list) else body
