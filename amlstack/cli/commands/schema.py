"""``amlstack schema``: the JSON Schema of YAML job files, for editors."""

from __future__ import annotations

import typer

app = typer.Typer(add_completion=False)


@app.command()
def schema() -> None:
    """Print the JSON Schema of Azure ML job files in YAML, for completion and marks in an editor.

    VS Code's YAML extension, and every editor with yaml-language-server, takes it by the first line of a job file:
    `# yaml-language-server: $schema=../docs/schema/job.schema.json`. A clone holds it there already.

    Examples:
        amlstack schema > job.schema.json
    """
    import json

    from jobs.azureml.schema import job_files

    whole = job_files()
    blocks = [
        f"  {json.dumps({name: each}, ensure_ascii=False)[1:-1]}" for name, each in whole.pop("definitions").items()
    ]
    # One block a line: small, and a change of one key shows as one line.
    typer.echo(f'{json.dumps(whole, ensure_ascii=False)[:-1]},\n "definitions": {{\n' + ",\n".join(blocks) + "\n}}")
