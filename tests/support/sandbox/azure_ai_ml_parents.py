"""A sweep or a pipeline through azure-ai-ml, against the sandbox of the environment; prints one JSON object.

Run as a process of its own: the SDK takes seconds to import and warns about its own deprecations.
"""

from __future__ import annotations

import json
import os
import sys

from azure.ai.ml import MLClient, load_job
from azure.identity import DefaultAzureCredential


def main(name: str, files: list[str]) -> dict[str, object]:
    base = os.environ["AMLSTACK_ARM_ENDPOINT"] + "/"
    places = ("azure_portal", "resource_manager", "active_directory", "aml_resource_id", "registry_discovery_endpoint")
    cloud = {**dict.fromkeys(places, base), "storage_endpoint": "core.windows.net"}
    client = MLClient(
        DefaultAzureCredential(),
        os.environ["AZURE_SUBSCRIPTION_ID"],
        name,
        name,
        cloud="amlstack-sandbox",
        cloud_metadata=cloud,
    )
    seen: dict[str, object] = {}
    for file in files:
        job = client.jobs.create_or_update(load_job(file))
        client.jobs.stream(job.name)
        ended = client.jobs.get(job.name)
        children = [
            (child.name, child.display_name, child.status) for child in client.jobs.list(parent_job_name=job.name)
        ]
        seen[str(ended.type)] = {"name": job.name, "status": ended.status, "children": children}
    seen["listed"] = sorted(str(job.type) for job in client.jobs.list())
    return seen


if __name__ == "__main__":
    answer = main(sys.argv[1], sys.argv[2:])
    sys.stdout.write("\n" + json.dumps(answer))
