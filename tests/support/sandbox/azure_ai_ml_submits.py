"""Submits job files with azure-ai-ml, streams them and downloads what they left; prints one JSON object.

Run as a process of its own: the SDK takes seconds to import. It is led by a cloud that the client is given.
Where STREAMED names a pipe, a job may wait there until it is streamed.

    python azure_ai_ml_submits.py WORKSPACE FOLDER FILE…
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from azure.ai.ml import MLClient, load_job
from azure.identity import DefaultAzureCredential


class Streamed(io.StringIO):
    """The streamed text; says by a byte in the pipe of the environment that a run is being looked at."""

    def __init__(self) -> None:
        super().__init__()
        pipe = os.environ.get("STREAMED")
        self._pipe = None if pipe is None else os.open(pipe, os.O_RDWR)

    def flush(self) -> None:
        """The client flushes at each look at a run that has not ended, and not before."""
        if self._pipe is not None and "Web View" in self.getvalue():
            os.write(self._pipe, b"x")
            self._pipe = None


def submitted(client: MLClient, file: Path, folder: Path) -> dict[str, Any]:
    """The outcome of one job file: its run's status, the streamed text, and the downloaded files."""
    streamed = Streamed()
    with contextlib.redirect_stdout(streamed):
        run = client.jobs.create_or_update(load_job(file))
        failure = ""
        try:
            client.jobs.stream(run.name)
        except Exception as error:  # noqa: BLE001 - a run that failed is an answer too
            failure = f"{type(error).__name__}: {error}"[:600]
        ended = client.jobs.get(run.name)
        client.jobs.download(run.name, download_path=folder, all=True)
        children = [(each.name, each.display_name, each.status) for each in client.jobs.list(parent_job_name=run.name)]
        listed = [each.name for each in client.jobs.list()]
    files = {
        str(each.relative_to(folder)): each.read_text("utf-8", "replace")[-2000:]
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }
    return {
        "name": run.name,
        "status": str(getattr(ended.status, "value", ended.status)),
        "failure": failure,
        "streamed": streamed.getvalue(),
        "files": files,
        "children": children,
        "listed": [name for name in listed if name == run.name or name in {child for child, *_ in children}],
    }


def main(workspace: str, folder: Path, files: list[str]) -> dict[str, Any]:
    base = os.environ["AMLSTACK_ARM_ENDPOINT"] + "/"
    places = ("azure_portal", "resource_manager", "active_directory", "aml_resource_id", "registry_discovery_endpoint")
    client = MLClient(
        DefaultAzureCredential(),
        os.environ["AZURE_SUBSCRIPTION_ID"],
        workspace,
        workspace,
        cloud="amlstack-sandbox",
        cloud_metadata={**dict.fromkeys(places, base), "storage_endpoint": "core.windows.net"},
    )
    seen: dict[str, Any] = {}
    for number, file in enumerate(files):
        try:
            seen[file] = submitted(client, Path(file), folder / str(number))
        except Exception as error:  # noqa: BLE001 - the caller shows it
            seen[file] = {"status": "refused", "failure": f"{type(error).__name__}: {error}"[:600]}
    return seen


if __name__ == "__main__":
    answer = main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
    sys.stdout.write("\n" + json.dumps(answer))
