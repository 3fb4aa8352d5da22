"""The files of a stack: its settings, with all that is wrong with them before an engine starts, and its recorded state.

The state of the sandbox's file backends is read without the engine, which takes a second. That file is the engine's
own: what is not found in the form that is known here counts as not recorded.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import paths, pulumi_wire
from amlstack.base.findings import Finding, errors
from amlstack.base.text import did_you_mean
from amlstack.engine import STACK

if TYPE_CHECKING:
    from amlstack.provider.arm import ArmClient
    from infra.settings import Reading, Settings, StackFile


class NoStackError(Exception):
    """There is no such stack, or its file cannot be read; the message is for the user."""


@dataclass(frozen=True, slots=True)
class StackSettings:
    """The settings of a stack.

    Attributes:
        name: The stack's name without organization and project.
        path: The settings file.
        file: The same as it was read.
        reading: The settings with their places.
        findings: All that is wrong or worth a look.
    """

    name: str
    path: Path
    file: StackFile
    reading: Reading
    findings: tuple[Finding, ...]

    @property
    def settings(self) -> Settings | None:
        """The values; None where they are of no use."""
        return self.reading.partial

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that refuse it."""
        return errors(self.findings)

    @property
    def rules(self) -> Path | None:
        """The configuration of the rules that the settings name, for the engine's policy pack; None for none."""
        file = paths.PROJECT / self.settings.policies if self.settings and self.settings.policies else None
        return file if file and file.is_file() else None

    @property
    def config(self) -> dict[str, str]:
        """The whole configuration as the engine hands it over, without what is encrypted."""
        return engine_config(self.file.config)


def stack_names(folder: Path) -> tuple[str, ...]:
    """The names of a folder's stacks, sorted."""
    files = (path.name for path in folder.glob("Pulumi.*.yaml") if path.is_file())
    return tuple(sorted(name.removeprefix("Pulumi.").removesuffix(".yaml") for name in files))


def settings_file(stack: str) -> Path:
    """The settings file of a stack of this project.

    Args:
        stack: Its name; organization and project may stand before it.

    Raises:
        NoStackError: There is none; near misses are in the message.
    """
    name = stack.rpartition("/")[2]
    path = paths.PROJECT / f"Pulumi.{name}.yaml"
    if path.is_file():
        return path
    known = stack_names(paths.PROJECT)
    near = did_you_mean(name, known) or f"There are: {', '.join(known)}." if known else ""
    raise NoStackError(
        f"There is no {path.name} in {paths.PROJECT}: the settings of the stack `{name}`. {near} "
        "docs/how-to/azure.md has the first steps of a stack"
    )


def read_settings(stack: str) -> StackSettings:
    """Read the settings of a stack.

    Args:
        stack: Its name; organization and project may stand before it.

    Raises:
        NoStackError: There is no file, or it is not YAML.
    """
    from infra.settings import read_file

    path = settings_file(stack)
    reading = read_file(path)
    if reading.file is None:
        raise NoStackError("; ".join(map(str, reading.findings)))
    return StackSettings(stack.rpartition("/")[2], path, reading.file, reading, reading.findings)


def judge_settings(stack: str, account: Mapping[str, str] | None = None) -> StackSettings:
    """Read and judge a stack as its program will: sizes, regions, tags, jobs and account.

    Args:
        stack: Its name; organization and project may stand before it.
        account: Environment that names subscription and tenant beside the settings; this process's when absent.

    Raises:
        NoStackError: There is no file, or it is not YAML.
    """
    from amlstack.catalog import clock
    from infra.declaration import declare
    from infra.names import resolve_account

    found = read_settings(stack)
    _, unknown = resolve_account(found.config, os.environ if account is None else account)
    declaration = declare(found.reading, on=clock.today(), root=paths.PROJECT, place=f"{found.name}::{project_name()}")
    return replace(found, findings=(*unknown, *declaration.findings))


def client_of(config: Mapping[str, str], announce: Callable[[str], None] | None = None) -> ArmClient:
    """Azure as the providers of a stack with such settings reach it.

    Args:
        config: The settings.
        announce: Takes the messages of requests that wait.

    Raises:
        ArmError: The settings name a cloud or an endpoint that there is not.
    """
    from amlstack.provider import arm

    prefix = "azure-native:"
    given = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    sign_in = arm.SignIn.read({name: value for name, value in given.items() if name in arm.VARIABLES})
    endpoint = arm.endpoint(config.get("amlstack:armEndpoint"), sign_in.cloud)
    return arm.ArmClient(endpoint, sign_in=sign_in, announce=announce)


def project_name() -> str:
    """The project's name."""
    import yaml

    content = yaml.safe_load((paths.PROJECT / "Pulumi.yaml").read_text("utf-8"))
    return str(content["name"])


def engine_config(config: Mapping[str, object]) -> dict[str, str]:
    """Settings as the engine hands them over, under their newer spelling; what is encrypted is left out."""
    found = {}
    for key, value in config.items():
        namespace, _, name = str(key).partition(":")
        if isinstance(value, str):
            found[f"{namespace}:{name.removeprefix('config:')}"] = value
    return found


_VERSION: Final = re.compile(r"/v\d{8}[^:]*(?=:)")


@dataclass(frozen=True, slots=True)
class State:
    """A stack as the backend has it.

    Attributes:
        resources: The resources, as the engine writes them (``urn``, ``type``, ``id``, ``inputs``, …).
        pending: URNs of operations that were cut off.
    """

    resources: tuple[Mapping[str, Any], ...] = ()
    pending: tuple[str, ...] = field(default=())

    def outputs(self) -> Mapping[str, Any] | None:
        """The stack's outputs; None where they are not recorded as plain values (a secret among them, say)."""
        stacks = [one for one in self.resources if one.get("type") == "pulumi:pulumi:Stack"]
        if len(stacks) != 1 or pulumi_wire.SIGNATURE in json.dumps(outputs := stacks[0].get("outputs") or {}):
            return None
        return outputs

    @property
    def protected(self) -> tuple[str, ...]:
        """URNs of the resources that the engine refuses to delete."""
        return tuple(str(one["urn"]) for one in self.resources if one.get("protect") and not one.get("delete"))

    @property
    def retained(self) -> tuple[str, ...]:
        """URNs of the resources that stay in Azure when the stack forgets them."""
        return tuple(str(one["urn"]) for one in self.resources if one.get("retainOnDelete"))


def backend_of(stack: str, home: Path | None = None) -> Path:
    """The folder of a stack's state on the sandbox of a home: the sandbox's own stack has one, each other its own."""
    root = paths.home() if home is None else home
    return root / "pulumi" if stack == STACK else root / "stacks" / stack / "state"


def state_files(backend: Path) -> dict[str, Path]:
    """Name → file of every stack of a file backend in a folder."""
    return {path.stem: path for path in sorted((backend / ".pulumi" / "stacks").rglob("*.json"))}


def read_state(backend: Path, stack: str) -> State:
    """A stack of a file backend; empty when nothing is recorded there in the form that is known."""
    file = state_files(backend).get(stack)
    if file is None:
        return State()
    try:
        return state_of(json.loads(file.read_text("utf-8"))["checkpoint"]["latest"] or {})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return State()


def state_of(latest: Mapping[str, Any]) -> State:
    """A stack as the engine writes it: a checkpoint's latest deployment, or what `pulumi stack export` prints.

    Raises:
        KeyError, TypeError, AttributeError: It has another form.
    """
    resources = tuple(latest.get("resources") or ())
    pending = tuple(one["resource"]["urn"] for one in latest.get("pending_operations") or ())
    return State(resources, pending)


def type_of(token: object) -> str:
    """A resource's type without its API version."""
    return _VERSION.sub("", str(token))
