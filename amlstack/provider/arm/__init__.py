"""Azure Resource Manager over REST: our bytes on the wire unchanged, Entra ID, retries, long-running operations."""

from amlstack.provider.arm.answers import (
    THROTTLED,
    ArmError,
    InterruptedWaitError,
    Response,
    attended,
    error_of,
    no_answer,
    parsed,
    pause,
)
from amlstack.provider.arm.client import ACTING_HEADER, API_VERSION, ArmClient
from amlstack.provider.arm.clouds import ENDPOINT_VARIABLE, PUBLIC_ENDPOINT, endpoint
from amlstack.provider.arm.credentials import SECRET, VARIABLES, SignIn
from amlstack.provider.arm.data_plane import DataPlane, SignedFiles

__all__ = [
    "ACTING_HEADER",
    "API_VERSION",
    "ENDPOINT_VARIABLE",
    "PUBLIC_ENDPOINT",
    "SECRET",
    "THROTTLED",
    "VARIABLES",
    "ArmClient",
    "ArmError",
    "DataPlane",
    "InterruptedWaitError",
    "Response",
    "SignIn",
    "SignedFiles",
    "attended",
    "endpoint",
    "error_of",
    "no_answer",
    "parsed",
    "pause",
]
