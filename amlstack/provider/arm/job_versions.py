"""By which api-version a job is sent: the default, unless its body says what that one has no word for.

azure-ai-ml 1.35 sends command jobs by 2025-01-01-preview and all others by 2024-01-01-preview, and puts properties
there that the models of 2025-12-01 do not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amlstack.provider.arm.client import API_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COMMAND: Final = "2025-01-01-preview"
OTHERS: Final = "2024-01-01-preview"


def of(properties: Mapping[str, Any]) -> str:
    """The api-version for a job.

    Args:
        properties: Of the job's body, or of a schedule's with the job in its action.
    """
    job = (properties.get("action") or {}).get("jobDefinition") or properties
    if not any(_beyond(job)):
        return API_VERSION
    return COMMAND if job.get("jobType") == "Command" and job is properties else OTHERS


def _beyond(job: Mapping[str, Any]) -> Iterator[bool]:
    """Whether each of the properties is there that 2025-12-01 does not know."""
    trial = job.get("trial") or {}
    yield (job.get("queueSettings") or {}).get("priority") is not None
    for resources in (job.get("resources") or {}, trial.get("resources") or {}):
        yield any(resources.get(name) is not None for name in ("locations", "maxInstanceCount"))
    yield job.get("jobType") == "Sweep" and job.get("resources") is not None
    yield (job.get("samplingAlgorithm") or {}).get("logbase") is not None
    yield any((port or {}).get("assetVersion") is not None for port in (job.get("outputs") or {}).values())
    for one in (job, trial):
        yield (one.get("distribution") or {}).get("distributionType") == "Ray"
