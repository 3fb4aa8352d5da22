"""The settings of a stack, and all that is wrong with them before an engine starts."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from amlstack.base import paths
from amlstack.base.findings import errors
from amlstack.base.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.base.findings import Finding
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
    known = sorted(
        each.name.removeprefix("Pulumi.").removesuffix(".yaml") for each in paths.PROJECT.glob("Pulumi.*.yaml")
    )
    near = did_you_mean(name, known) or f"There are: {', '.join(known)}." if known else ""
    raise NoStackError(
        f"There is no {path.name} in {paths.PROJECT}: the settings of the stack `{name}`. {near} "
        "docs/azure.md has the first steps of a stack"
    )


def read(stack: str) -> StackSettings:
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


def judge(stack: str, account: Mapping[str, str] | None = None) -> StackSettings:
    """Read and judge a stack as its program will: sizes, regions, tags, jobs and account.

    Args:
        stack: Its name; organization and project may stand before it.
        account: Environment that names subscription and tenant beside the settings; this process's when absent.

    Raises:
        NoStackError: There is no file, or it is not YAML.
    """
    from amlstack.catalog import clock
    from infra.account import resolve
    from infra.declaration import declare

    found = read(stack)
    _, unknown = resolve(found.config, os.environ if account is None else account)
    declaration = declare(found.reading, on=clock.today(), root=paths.PROJECT, place=f"{found.name}::{project_name()}")
    return replace(found, findings=(*unknown, *declaration.findings))


def client_of(config: Mapping[str, str]) -> ArmClient:
    """Azure as the providers of a stack with such settings reach it.

    Raises:
        ArmError: The settings name a cloud or an endpoint that there is not.
    """
    from amlstack.provider import arm

    prefix = "azure-native:"
    given = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    sign_in = arm.SignIn.read({name: value for name, value in given.items() if name in arm.VARIABLES})
    return arm.ArmClient(arm.endpoint(config.get("amlstack:armEndpoint"), sign_in.cloud), sign_in=sign_in)


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
