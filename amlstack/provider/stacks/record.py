"""``amlstack:stack:Record``: a random id by which a stack knows its runs, whatever it is called."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from amlstack.provider.resource import (
    Call,
    Difference,
    InputField,
    Services,
    Values,
    shape_of,
)
from amlstack.rpc import UNKNOWN, Failures, ProviderError, bare

if TYPE_CHECKING:
    from typing import Any

_RULE = (
    re.compile(r"[A-Za-z0-9-]{8,64}"),
    "8 to 64 letters, digits and '-', as a run's property amlstack.stack has it",
)
SHAPE = shape_of("amlstack:stack:Record", {"stackId": InputField(pattern=_RULE, in_id=True)})


class Records:
    """Makes the id once. It lives in the stack's state; Azure knows it from the runs that bear it."""

    shape = SHAPE

    def __init__(self, services: Services) -> None:
        pass

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:  # noqa: ARG002
        """An id may be given, to take over the runs of a state that was lost."""
        return SHAPE.check(inputs, failures)

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another id that is given takes the place of the one there is; one that is no longer given stays."""
        wanted = bare(new.get("stackId"))
        return Difference(replaces=("stackId",)) if wanted not in (None, bare(old.get("stackId"))) else Difference()

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """The given id, or a random one; at preview a random one is not known yet."""
        given: Any = inputs.get("stackId")
        if call.preview:
            return "", {"stackId": UNKNOWN if given is None else given}
        stack_id = given if given is not None else secrets.token_hex(16)
        return str(bare(stack_id)), {"stackId": stack_id}

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:  # noqa: ARG002
        """Return the state's own record."""
        if not old:
            raise ProviderError(
                "a stack's id is not imported: set amlstack:stack_id to the value that the runs have in amlstack.stack"
            )
        return resource_id, old

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """The id stays."""
        return dict(old)

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:
        """Nothing outside the state is deleted."""
