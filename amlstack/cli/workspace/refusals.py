"""Errors on the way to a workspace: one line with its remedy, and the exit status."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from amlstack.base.text import did_you_mean
from amlstack.cli.console import end, say
from amlstack.cli.workspace import workspace_place
from amlstack.cli.workspace.job_search import UnknownRunError
from amlstack.cli.workspace.workspace_place import NoWorkspaceError, WorkspacePlace
from amlstack.provider.arm import ArmError
from amlstack.provider.runs import WorkspaceMissingError

if TYPE_CHECKING:
    from amlstack.cli.workspace.options import AskedWorkspace

FAILED: Final = 1
USAGE: Final = 2
_OTHER_TENANT: Final = ("InvalidAuthenticationTokenTenant", "AADSTS50020", "AADSTS90072", "wrong issuer")


class Reached:
    """The progress of a verb, for messages about a later failure.

    Attributes:
        place: The place that it has found.
        interrupted: What a Ctrl-C at this moment leaves behind, in one line.
    """

    def __init__(self) -> None:
        self.place: WorkspacePlace | None = None
        self.interrupted = "interrupted; nothing was changed"


@contextlib.contextmanager
def answered() -> Iterator[Reached]:
    """Turns what the service and its absence say into a line, and ends the verb: 2 for wrong use, 1 otherwise.

    After a Ctrl-C one line says what is left, and the exit status is 130.
    """
    reached = Reached()
    try:
        yield reached
    except (NoWorkspaceError, UnknownRunError) as error:
        end(str(error), USAGE)
    except WorkspaceMissingError as error:
        end(missing(reached.place, error.workspace), USAGE)
    except ArmError as error:
        end(words(error, reached.place), FAILED)
    except KeyboardInterrupt:
        say(reached.interrupted, err=True)
        raise


@contextlib.contextmanager
def opened(asked: AskedWorkspace) -> Iterator[tuple[WorkspacePlace, Reached]]:
    """The workspace that options name, announced in one line, and the progress on the way; `answered` ends the verb."""
    with answered() as reached:
        reached.place = where = workspace_place.find(asked, lambda message: say(message, err=True))
        say(where.line, err=True)
        yield where, reached


def words(error: ArmError, place: WorkspacePlace | None) -> str:
    """One of the service's refusals with what helps."""
    tenant = f" The tenant that is named here is {place.arm.tenant}." if place is not None and place.arm.tenant else ""
    if any(mark in error.code or mark in error.message for mark in _OTHER_TENANT):
        return (
            f"The sign-in is of another tenant than the subscription: {error.message.rstrip('.')}.{tenant} Set "
            "azure-native:tenantId or ARM_TENANT_ID to the subscription's tenant, or `az login --tenant ID`."
        )
    if error.code == "NoCredential":
        return f"Not signed in: {error.message.rstrip('.')}."
    if error.status == 401:
        return f"Azure refused the sign-in ({error.code}): {error.message.rstrip('.')}.{tenant} `az login` renews it."
    if error.status == 403:
        return f"Not allowed ({error.code}): {error.message.rstrip('.')}."
    if error.code == "SubscriptionNotFound":
        seen = f"{error.message.rstrip('.')}.{tenant}"
        return f"{seen} A subscription of another tenant is not seen: `az account show` names both."
    if error.status == 429:
        return f"Azure throttles and went on doing so: {error.message.rstrip('.')}. Try again in some minutes."
    if error.code == "ConnectionFailed":
        return (
            f"{error.message[:1].upper()}{error.message[1:].rstrip('.')}. Is the network there, and HTTPS_PROXY right?"
        )
    return f"{error.message.rstrip('.')} ({error.code})."


def missing(place: WorkspacePlace | None, workspace: str) -> str:
    """That a workspace is not there, and which ones are."""
    _, _, subscription, _, group, *_, name = workspace.split("/")
    seen = f"There is no workspace `{name}` in the resource group `{group}` of the subscription {subscription}."
    if place is None:
        return seen
    if place.stack is not None:
        return f"{seen} `amlstack up --stack {place.stack}` makes it."
    try:
        near = did_you_mean(name, workspace_place.names_in(place.arm, subscription))
    except ArmError:  # who may not list them is not helped by that
        return seen
    return f"{seen} {near}".rstrip()
