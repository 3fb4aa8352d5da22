"""``amlstack import-ids``: the engine's import file for existing resources that a stack takes over."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from amlstack.cli.console import Progress

Stack = Annotated[str, typer.Option("--stack", "-s", metavar="NAME", help="The stack of Pulumi.NAME.yaml.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the import file is written.")]


def import_ids(*, stack: Stack, output: Output = Path("import.json")) -> int:
    """Write the file for `pulumi import --file` of what exists: group, workspace, parts, clusters, schedules.

    Azure is asked for what the settings name. What is absent is named, and so are the settings to write where they say
    another thing than what there is: these alone go to the standard output. Nothing is changed.

    Returns:
        0 when the file is written; 1 when settings have to be written first, or Azure cannot be asked; 2 for wrong use.
    """
    answer = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        return _run(stack, output, answer)


def _run(stack: str, output: Path, answer: TextIO) -> int:
    from amlstack.cli import stack_files
    from amlstack.cli.console import print_findings
    from amlstack.provider.arm import ArmError
    from infra.names import Names, resolve_account

    progress = Progress()
    try:
        given = stack_files.read_settings(stack)
    except stack_files.NoStackError as error:
        progress.fail(str(error))
        return 2
    reading, config, project = given.reading, given.config, stack_files.project_name()
    who, unknown = resolve_account(config, os.environ)
    settings = reading.settings
    if settings is None or unknown:
        print_findings((*reading.findings, *unknown))
        return 1
    names = Names.of(settings, project=project, stack=given.name, subscription=who.subscription)
    from amlstack.cli.stack import adoption
    from amlstack.cli.stack.adoption import Adoption, provider_urn

    elsewhere = names.subscription.lower() != who.subscription.lower()
    provider = provider_urn(given.name, project) if elsewhere else None
    try:
        progress.step(f"what Azure has in {names.group_id}")
        found = adoption.read_estate(stack_files.client_of(config), names)
    except ArmError as error:
        progress.fail(str(error))
        return 1
    return Adoption(progress, reading, settings, names, found, stack, answer, provider).write(output)
