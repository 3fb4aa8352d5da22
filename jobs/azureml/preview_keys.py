"""Words of the CLI's preview that are still found in public files, and what they became.

Only the remedy of a finding changes: whether a key is known is decided where it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amlstack.base.findings import Finding

ANY = "*"


@dataclass(frozen=True, slots=True)
class Former:
    """One former spelling.

    Attributes:
        path: The last keys that lead to it; ``*`` is any name.
        code: Of the finding that it gives today.
        remedy: What to write instead.
        seen: What the finding has to say for this to apply: a key may be there in its new form, with another fault.
    """

    path: tuple[str, ...]
    code: str
    remedy: str
    seen: str = ""


_DATA = "Write `type: uri_folder` (or `uri_file`) and `path: …`; a data asset is `path: azureml:NAME:VERSION`."
TABLE = (
    Former(("code",), "value-kind", "Write the folder itself: `code: src`, without `local_path`.", "a mapping"),
    Former(
        ("compute",),
        "value-kind",
        "Write `compute: azureml:NAME`, and the number of nodes as `resources: {instance_count: …}`.",
        "a mapping",
    ),
    *(
        Former(("inputs", ANY, key), "key-unknown", _DATA)
        for key in ("data", "dataset", "file", "folder", "local_path")
    ),
    Former(("environment", "docker"), "key-unknown", "Write `image` directly under `environment`."),
    Former(("build", "local_path"), "key-unknown", "It is called `path` now."),
    Former(("services", ANY, "job_service_type"), "key-unknown", "It is called `type` now."),
    Former(("distribution", "type"), "value-unknown", "In a job it is called `pytorch`.", "`torch.distributed`"),
    Former(("jobs", ANY, "type"), "value-unknown", "A step with a component is of type `command`.", "`component`"),
    Former(
        ("schedule",),
        "key-unknown",
        "A schedule is a file of its own, with `trigger` and with this file as `create_job`.",
    ),
    *(
        Former((key,), "key-unknown", f"It stands in a block: `resources: {{{key}: …}}`.")
        for key in ("instance_count", "instance_type", "shm_size", "docker_args")
    ),
    Former(
        ("process_count_per_instance",),
        "key-unknown",
        "It stands in a block: `distribution: {type: pytorch, process_count_per_instance: …}`.",
    ),
)


def remedied(found: Iterable[tuple[tuple[Any, ...], Finding]]) -> Iterator[tuple[tuple[Any, ...], Finding]]:
    """The findings of a file, each that a former spelling gave with what is written today."""
    for path, finding in found:
        entry = next((entry for entry in TABLE if _is(entry, path, finding)), None)
        yield path, replace(finding, remedy=entry.remedy) if entry else finding


def _is(entry: Former, path: tuple[Any, ...], finding: Finding) -> bool:
    tail = path[-len(entry.path) :]
    return (
        finding.code == entry.code
        and entry.seen in finding.seen
        and len(tail) == len(entry.path)
        and all(want in (ANY, key) for want, key in zip(entry.path, tail, strict=True))
        # One word alone is a key of the file or of a step, never of a deeper block.
        and (len(entry.path) > 1 or len(path) == 1 or path[0] == "jobs")
    )
