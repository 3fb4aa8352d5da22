"""Attributes and methods of SDK v1's objects: what they give, as far as a job follows from it."""

from __future__ import annotations

from typing import Any, Final

from amlstack.migrate.values import Made, known

_MODES: Final = {"as_mount": "mount", "as_download": "download", "as_direct": "direct", "as_upload": "upload",
                 "as_hdfs": "hdfs"}  # fmt: skip
_SAME: Final = frozenset(
    ("register", "register_on_complete", "as_dataset", "read_delimited_files", "read_parquet_files", "as_file_dataset",
     "parse_delimited_files", "parse_parquet_files", "create_new_version", "unregister", "get_outputs", "label")
)  # fmt: skip
"""Methods after which an object stands for the same data or software."""
_GROUPS: Final = {"compute_targets": "Compute", "datastores": "Datastore", "datasets": "Dataset",
                  "environments": "Environment.get", "experiments": "Experiment"}  # fmt: skip
"""The objects that a workspace holds by name."""


def attribute(owner: Made, name: str, file: str, line: int) -> Any:
    """An attribute: what was set, or the part of that name, whose own attributes may be set."""
    if owner.kind == "Published" and name in ("id", "pipeline_id"):
        return owner.fields["pipeline"]
    if owner.kind == "module":
        return owner.fields.get(name, NotImplemented)
    found = owner.fields.get(name)
    if found is None:
        found = owner.fields[name] = Made("CondaDependencies" if name == "conda_dependencies" else name, {}, file, line)
    return found


def called(owner: Made, name: str, args: list[Any], words: dict[str, Any], place: tuple[str, int]) -> Any:
    """The outcome of a method."""
    file, line = place
    first = args[0] if args else next(iter(words.values()), None)
    if owner.kind in _GROUPS and name in ("[]", "get"):
        return Made(_GROUPS[owner.kind], {"name": first}, file, line)
    if name in _MODES:
        mode = {"mode": _MODES[name], "path_on_compute": args[0] if args else words.get("path_on_compute")}
        if owner.kind.endswith("Datastore"):
            return Made("DataReference", {"datastore": owner, "path_on_datastore": "", **mode}, file, line)
        return _consumed(owner, **mode) if owner.kind in ("Dataset", "Tabular", "Uploaded") else owner.copy(**mode)
    if name in ("as_named_input", "as_input"):
        named = owner.kind in ("Consumption", "DataReference")
        return owner.copy(name=first) if named else _consumed(owner, name=first)
    if name == "path" and owner.kind.endswith(("Datastore", "DataReference")):
        return Made("DataReference", {"datastore": owner, "path_on_datastore": first, **words}, file, line)
    if name in ("get_default_datastore", "get_default_compute_target"):
        return Made("DefaultDatastore" if name.endswith("store") else "DefaultCompute", {}, file, line)
    if name == "submit":
        return _submitted(owner, args, words)
    if name in ("publish", "publish_pipeline"):
        return Made("Published", {"pipeline": owner, "name": first})
    if name == "clone":
        return Made(owner.kind, {**owner.fields, "cloned_as": first}, file, line)
    if name in _SAME:
        registered = words.get("name", first)
        return owner.copy(registered=registered) if name.startswith("register") and known(registered) else owner
    if owner.kind != "Compute":
        owner.fields["_calls"] = (*owner.calls, (name, dict(enumerate(args)) | words))
    return NotImplemented


def _consumed(dataset: Made, **how: Any) -> Made:
    return Made("Consumption", {"dataset": dataset, **how}, dataset.file, dataset.line)


def _submitted(owner: Made, args: list[Any], words: dict[str, Any]) -> Any:
    """A submission: its object knows the experiment and the tags."""
    config = owner if owner.kind == "Pipeline" else args[0] if args else words.get("config")
    if not isinstance(config, Made):
        return NotImplemented
    given = words.get("experiment_name", args[0] if args else None)
    experiment = owner.get("name") if owner.kind == "Experiment" else given
    config.fields |= {"_experiment": experiment, "_tags": words.get("tags"), "_submitted": True}
    return Made("Submitted", {"config": config})
