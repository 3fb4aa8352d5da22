"""Jobs that act for the person who submits them: they bring that person's token for Azure Machine Learning itself.

azure-ai-ml 1.35 sends it with every new pipeline and every new job with ``identity: user_identity``, in the header
``x-azureml-token``, and with no schedule. What Azure answers when it is missing is not known; the sandbox refuses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.protocol import entra
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.kind import KindContext

HEADER = "x-azureml-token"
_JOB = re.compile(r"(?P<workspace>.*/workspaces/[^/]+)/jobs/(?P<name>[^/]+)", re.IGNORECASE)


def check(context: KindContext, path: str, body: Any, token: str | None) -> None:
    """Refuses (400) the PUT of a new job that acts for a person and does not bring that person's token.

    Args:
        context: State and address.
        path: Of the request.
        body: Its body.
        token: The header's value.
    """
    found = _JOB.fullmatch(path)
    kind = acts(body)
    if found is None or not kind or context.store.jobs.find(found["workspace"], found["name"]) is not None:
        return
    rule = (
        f"The PUT of {kind} carries a token for https://ml.azure.com in the header '{HEADER}', as azure-ai-ml sends it"
    )
    if not token or not token.isascii():
        raise Refused(400, "UserError", f"{rule}. The request has no such header.")
    try:
        audience = entra.audience_of(context.key, token)
    except Refused as refused:
        raise Refused(400, "UserError", f"{rule}. {refused.message}") from None
    if audience not in entra.machine_learning(context.base):
        raise Refused(400, "UserError", f"{rule}. The token of this request is for '{audience}'.")


def acts(body: Any) -> str:
    """What makes a job act for a person, in words; empty for a job that acts for itself."""
    properties = body.get("properties") if isinstance(body, dict) else None
    if not isinstance(properties, dict):
        return ""
    if properties.get("jobType") == "Pipeline":
        return "a pipeline"
    given = properties.get("identity")
    user = isinstance(given, dict) and given.get("identityType") == "UserIdentity"
    return "a job with the identity UserIdentity" if user else ""
