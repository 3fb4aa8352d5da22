"""Azure Resource Manager over REST: our bytes on the wire unchanged, Entra ID, retries, long-running operations."""

from amlstack.base.api_versions import MACHINE_LEARNING as API_VERSION
from amlstack.provider.arm.client import ACTING_HEADER, ArmClient
from amlstack.provider.arm.data_plane import DataPlane, SignedFiles
from amlstack.provider.arm.exchange import (
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
from amlstack.provider.arm.sign_in import ENDPOINT_VARIABLE, PUBLIC_ENDPOINT, SECRET, VARIABLES, SignIn, endpoint
