"""``amlstack schema``: the JSON Schemas of YAML job files and of stack files, for editors."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from amlstack.cli.console import say


def schema(*, settings: Annotated[bool, typer.Option("--settings", help="Of stack files instead.")] = False) -> None:
    """Print the JSON Schema of Azure ML job files in YAML, for completion and marks in an editor.

    VS Code's YAML extension, and every editor with yaml-language-server, takes it by the first line of a file:
    `# yaml-language-server: $schema=../docs/schema/job.schema.json`. A clone holds both there already. With
    `--settings` it is that of `Pulumi.<stack>.yaml`.

    Examples:
        amlstack schema > job.schema.json

        amlstack schema --settings > stack.schema.json
    """
    if settings:
        from infra.settings.model.stack import stack_file_schema

        say(printed(stack_file_schema(), "$defs"))
        return
    from jobs.azureml.schema import job_files

    say(printed(job_files(), "definitions"))


def printed(whole: dict[str, Any], definitions: str) -> str:
    """One definition a line: small, and a change of one key shows as one line."""
    import json

    blocks = [
        f"  {json.dumps({name: each}, ensure_ascii=False)[1:-1]}" for name, each in whole.pop(definitions).items()
    ]
    return f'{json.dumps(whole, ensure_ascii=False)[:-1]},\n "{definitions}": {{\n' + ",\n".join(blocks) + "\n}}"
