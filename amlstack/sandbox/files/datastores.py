"""The container and account of a datastore's files, for every type of datastore.

The sandbox stores blobs alone, so that a file share or a file system is a container of that name here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTAINER: Final[Mapping[str, str]] = {
    "AzureBlob": "containerName",
    "AzureDataLakeGen2": "filesystem",
    "AzureFile": "fileShareName",
}
"""By type: the property that names the container."""


DEFAULT: Final = "workspaceblobstore"
"""The datastore that every workspace has as its default."""
MODELS: Final[Mapping[str, str]] = {
    "custom_model": "CustomModel",
    "mlflow_model": "MLFlowModel",
    "triton_model": "TritonModel",
}
"""Types of outputs that are models: the word of a body, and that of run history. All others are data."""


def output_uri(
    job: str, output: str, declared: str | None = None, *, store: str = DEFAULT, kind: str | None = None
) -> str:
    """Where a job's output lies: where it was declared to, else in a folder of its own, or as a file of its name.

    Args:
        job: Name of the job.
        output: Name of the output.
        declared: Its ``uri`` in the body; None or empty for none.
        store: Name of the datastore that the folder is in.
        kind: Its type; of a ``uri_file`` the address has no slash at its end, by which clients would list a folder.
    """
    end = "" if kind == "uri_file" else "/"
    return declared or f"azureml://datastores/{store}/paths/azureml/{job}/{output}{end}"


def account_and_container(properties: Mapping[str, Any]) -> tuple[str, str]:
    """Both names; empty where a datastore of another type has none."""
    name = CONTAINER.get(str(properties.get("datastoreType")), "")
    return str(properties.get("accountName") or ""), str(properties.get(name) or "")
