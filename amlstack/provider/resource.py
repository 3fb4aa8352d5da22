"""The interface between the server and a resource type, in plain Python."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from amlstack.base import text
from amlstack.rpc import NOTHING, UNKNOWN, Failures, Host, ProviderError, Secrecy, Secret, unknown_paths
from amlstack.run_identity import slow_digest

if TYPE_CHECKING:
    import threading

    from amlstack.provider.arm import ArmClient
    from amlstack.provider.runs import Runs

Values = dict[str, Any]

WORKSPACE = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.MachineLearningServices/workspaces/[^/]+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Call:
    """The circumstances of one request.

    Attributes:
        urn: Of the resource.
        preview: Nothing may be changed.
        timeout: Seconds that the person gave (``custom_timeouts``); ``None`` for no limit.
        secrecy: What of the resource's values is secret. The values themselves are plain: the server takes the engine's
            marks off before a resource sees them, and marks again what it answers, its messages included.
    """

    urn: str
    preview: bool = False
    timeout: float | None = None
    secrecy: Secrecy = NOTHING

    def hashable(self, values: Mapping[str, Any], name: str) -> Any:
        """The stand-in for an input in a digest that others can see: itself, its secrets replaced by a slow digest."""
        plain, secrets = self.secrecy.parted(values.get(name), (name,))
        return plain if not secrets else [plain, slow_digest(secrets, self.urn.split("::")[-2])]


@dataclass(slots=True)
class Course:
    """The questions of the engine in one deployment so far, as far as a deletion depends on them.

    Attributes:
        program: A program declares resources. Without one all that is deleted was named: a plain ``destroy``.
        stack_ends: The stack's keeper, which goes before everything else, has agreed to the end of the stack.
        left_out: Names of jobs whose removal the guard has judged.
        every_other: The guard has judged every job that is not declared.
    """

    program: bool = False
    stack_ends: bool = False
    left_out: set[str] = field(default_factory=set)
    every_other: bool = False

    def unasked(self, job: str) -> bool:
        """True where nobody was asked about the removal of a job: an update that left the guard out deletes it."""
        return self.program and not self.stack_ends and not self.every_other and job not in self.left_out


@dataclass(frozen=True, slots=True)
class Services:
    """The services that resources work with.

    Attributes:
        arm: Azure Resource Manager.
        runs: Job records in it.
        host: The engine's log.
        cancelled: Set when waits must end.
        course: What the deployment has asked so far.
    """

    arm: ArmClient
    runs: Runs
    host: Host
    cancelled: threading.Event
    course: Course = field(default_factory=Course)


@dataclass(frozen=True, slots=True)
class Difference:
    """The meaning of an edit.

    Attributes:
        updates: Property paths that are changed in place.
        replaces: Property paths that need a new resource.
        delete_first: The old resource must end before the new one begins.
    """

    updates: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    delete_first: bool = False


@dataclass(frozen=True, slots=True)
class InputField:
    """One input property. Type, default, choices and whether it is required are those of the schema, by `shape_of`.

    Attributes:
        kind: The Python type of its JSON value.
        required: Whether it must be given.
        default: What is recorded when it is not.
        choices: The allowed words, when they are few.
        pattern: What text must look like, with the rule in words.
        in_id: Whether the resource's id shows it. The engine keeps ids in clear text.
    """

    kind: type = object
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    pattern: tuple[re.Pattern[str], str] | None = None
    in_id: bool = False


_JSON_NAMES: Mapping[type, str] = {
    str: "a text",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    object: "a JSON value",
}

NAME = InputField(
    pattern=(re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}"), "letters, digits, '-' and '_', a letter or digit first"),
    in_id=True,
)
WORKSPACE_ID = InputField(
    pattern=(
        WORKSPACE,
        "an ARM id, /subscriptions/…/resourceGroups/…/providers/Microsoft.MachineLearningServices/workspaces/NAME",
    )
)
WORKSPACE_IN_ID = replace(WORKSPACE_ID, in_id=True)
"""Of resources whose id is their ARM id."""


@dataclass(frozen=True, slots=True)
class InputShape:
    """The inputs of a resource type.

    Attributes:
        fields: Its inputs by name.
        digests: Its outputs that hold digests, with the names of the inputs that these are made of.
        inputs_alone: Inputs that the state does not hold a second time as outputs: nothing reads them there, and the
            engine writes the state after every step.
    """

    fields: Mapping[str, InputField]
    digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inputs_alone: frozenset[str] = frozenset()

    def sealed(self, values: Mapping[str, Any], secrecy: Secrecy) -> Values:
        """Inputs or state with the engine's marks on what is secret."""
        return secrecy.seal(values, self.fields, self.digests)

    def recorded(self, state: Mapping[str, Any], secrecy: Secrecy) -> Values:
        """The outputs that the state holds, `sealed`.

        Args:
            state: All that is known of the resource.
            secrecy: What of it is secret.
        """
        kept = {name: value for name, value in state.items() if name not in self.inputs_alone}
        return self.sealed(kept, secrecy)

    def bared(self, state: Mapping[str, Any], wanted: Secrecy) -> tuple[str, ...]:
        """The property paths of inputs that are secret now and that a recorded state shows, or shows a digest of."""
        shown = [path for path in wanted.unmarked(state) if path.split(".", 1)[0].split("[", 1)[0] in self.fields]
        digests = [
            source
            for name, sources in self.digests.items()
            if state.get(name) is not None and not isinstance(state[name], Secret)
            for source in sources
            if wanted.covers(source)
        ]
        return (*shown, *digests)

    def check(self, inputs: Values, failures: Failures) -> Values:
        """The inputs with defaults filled in; what is wrong goes to ``failures``."""
        for key in inputs:
            if key not in self.fields and key != "__defaults":
                failures.add(key, f"there is no property {key}.{text.hint(key, self.fields)}")
        result: Values = {}
        for name, rule in self.fields.items():
            value = inputs.get(name)
            if value is None:
                if rule.required:
                    failures.add(name, f"{name} is required")
                elif rule.default is not None:
                    result[name] = rule.default
                continue
            result[name] = value
            self._judge(name, rule, value, failures)
        return result

    def _judge(self, name: str, rule: InputField, value: Any, failures: Failures) -> None:
        if value is UNKNOWN:
            return
        if not isinstance(value, rule.kind):
            failures.add(name, f"{name} must be {_JSON_NAMES[rule.kind]}, not {type(value).__name__}")
        elif rule.choices and value not in rule.choices:
            failures.add(name, f"{name} is {value!r}; it must be one of {', '.join(rule.choices)}")
        elif rule.pattern and isinstance(value, str) and not rule.pattern[0].fullmatch(value):
            failures.add(name, f"{name} is {value!r}; it must be {rule.pattern[1]}")


class Resource(ABC):
    """One resource type. Values are plain JSON, at preview also `UNKNOWN`; errors are raised as `ProviderError`.

    A type defines what differs from one that is never imported and whose state is what was recorded.

    Attributes:
        shape: Its inputs.
        refused_import: The sentence for who would import it.
    """

    shape: ClassVar[InputShape]
    refused_import: ClassVar[str]

    def __init__(self, services: Services) -> None:
        self._services = services
        self._host = services.host

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:  # noqa: ARG002
        """Completes and judges the inputs."""
        return self.shape.check(inputs, failures)

    @abstractmethod
    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:
        """Compares the new inputs with the recorded inputs and state."""

    @abstractmethod
    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Makes it (or at preview foretells it): its id and its state."""

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:  # noqa: ARG002
        """Its present state; an empty id when it is gone and may be made again.

        An import finds ``inputs`` empty and fills them in.
        """
        if not old:
            raise ProviderError(self.refused_import)
        return resource_id, old

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """Changes it in place (or at preview foretells it): its state."""
        return {**old, **new}

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:  # noqa: B027
        """Ends it. What others may refer to stays, as does what goes with its workspace."""


_KINDS: Mapping[str, type] = {"string": str, "boolean": bool, "object": dict, "array": list}


@cache
def package() -> dict[str, Any]:
    """The package schema, without its version: the one declaration of what resources take and give."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "schema.json").read_bytes())
    return found


def shape_of(
    token: str,
    limits: Mapping[str, InputField],
    *,
    digests: Mapping[str, tuple[str, ...]] | None = None,
    inputs_alone: frozenset[str] = frozenset(),
) -> InputShape:
    """The inputs of a type of the schema.

    Args:
        token: The type.
        limits: What the schema cannot say of an input: its pattern, its place in the id, a default of ours.
        digests: See `InputShape`.
        inputs_alone: See `InputShape`.
    """
    declared = package()["resources"][token]
    fields = {
        name: _field(each, limits.get(name, InputField()), required=name in declared.get("requiredInputs", ()))
        for name, each in declared["inputProperties"].items()
    }
    return InputShape(fields, digests or {}, inputs_alone)


def _field(declared: Mapping[str, Any], limits: InputField, *, required: bool) -> InputField:
    own = package()["types"].get(declared.get("$ref", "").removeprefix("#/types/"), declared)
    words = tuple(str(each["value"]) for each in own.get("enum", ()))
    kind = _KINDS.get(own.get("type"), object)
    default = limits.default if limits.default is not None else declared.get("default")
    return replace(limits, kind=kind, required=required, default=default, choices=limits.choices or words)


def text_of(values: Values, name: str) -> str:
    """A text among values; empty where it is none, or not known yet."""
    value = values.get(name)
    return value if isinstance(value, str) else ""


def known(*values: Any) -> bool:
    """True where nothing in these is still open."""
    return not any(True for value in values for _ in unknown_paths(value))


def changed_inputs(names: Iterable[str], before: Values, after: Values) -> tuple[str, ...]:
    """The named inputs that are others now, and the workspace where that is another."""
    found = tuple(name for name in names if before.get(name) != after.get(name))
    return found if same_arm_id(before.get("workspace"), after.get("workspace")) else (*found, "workspace")


def same_arm_id(one: Any, other: Any) -> bool:
    """ARM ids are compared without regard to letter case."""
    return isinstance(one, str) and isinstance(other, str) and one.casefold() == other.casefold()
