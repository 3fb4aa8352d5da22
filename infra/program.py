"""The program: settings, their judgement, and only then resources (`infra/components/stack.py`)."""

from __future__ import annotations

import os
from pathlib import Path

import pulumi
from pulumi.runtime import config as engine_config

from amlstack.base.findings import errors
from amlstack.base.paths import PROJECT
from amlstack.catalog import clock
from amlstack.catalog.overlay import OverlayError
from infra import names
from infra.components import registration
from infra.components.registration import end, show
from infra.declaration import declare
from infra.settings import from_engine, stackfile
from infra.settings.checks import hidden


def main() -> None:
    """Read and judge the stack, then declare its resources and outputs.

    Raises:
        pulumi.RunError: Something is wrong; each finding has been shown by the engine before.
    """
    try:
        _declare()
    except (clock.ClockError, OverlayError) as error:
        raise pulumi.RunError(str(error)) from None


def _declare() -> None:
    registration.leave_out_unread()
    registration.leave_at_once()
    config = registration.config()
    path = _stack_file()
    file, _ = stackfile.read(path)
    reading = from_engine(config, file, engine_config.get_config_secret_keys_env(), root=path.parent)
    who, unknown = names.resolve_account(config, os.environ)
    place = f"{pulumi.get_stack()}::{pulumi.get_project()}"
    declaration = declare(reading, on=clock.today(), place=place)
    found = [hidden(finding, reading.secret) for finding in (*declaration.findings, *unknown)]
    show(found)
    if wrong := errors(found):
        end(wrong)
    if (settings := reading.settings) is not None:
        # Its modules are loaded for a stack that nothing is wrong with.
        from infra.components.stack import StackDeclaration, build  # noqa: PLC0415

        declared = StackDeclaration(settings, declaration.runs, who, declaration.config, declaration.data, reading)
        # The engine waits for it: names depend on the group that the stack has, which only the engine knows.
        pulumi.run(lambda: build(declared))


def _stack_file() -> Path:
    """The settings' file, for saying where things stand; the engine's word on the project's folder may be missing."""
    name = f"Pulumi.{pulumi.get_stack()}.yaml"
    folders = [pulumi.get_root_directory(), os.environ.get("PWD"), PROJECT]
    files = [Path(folder) / name for folder in folders if folder]
    return next((file for file in files if file.is_file()), files[-1])
