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

    typer.echo(json.dumps(job_files(), indent=1, ensure_ascii=False))
