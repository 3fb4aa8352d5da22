"""Whose tokens an identity trusts: entries of `deploy`, `plan`, `preview` and `stacks`, as issuer and subject.

Sources: docs.github.com, "OpenID Connect reference"; learn.microsoft.com/azure/aks/workload-identity-deploy-cluster and
learn.microsoft.com/azure/devops/pipelines/release/configure-workload-identity (2026-11-22).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

AUDIENCE: Final = "api://AzureADTokenExchange"
GITHUB: Final = "https://token.actions.githubusercontent.com"
FORMS: Final = """\
  github: ORGANIZATION/REPOSITORY, and one of environment: NAME, branch: NAME, pull_request: true
  kubernetes: ISSUER OF THE CLUSTER, with namespace: NAME and service_account: NAME
  issuer: ADDRESS, with subject: TEXT, as a service connection of Azure Pipelines shows them"""


class TrustError(ValueError):
    """An entry has none of the forms; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Trust:
    """One federated credential.

    Attributes:
        name: Of the credential: letters, digits and hyphens, 3 to 120 of them.
        issuer: Who signs the token.
        subject: Whom it is about.
    """

    name: str
    issuer: str
    subject: str


def joined(what: str, stack: str) -> str:
    """The name of something that a stack has of its own; the first place's names have no stack in them."""
    return f"{what}-{stack}" if stack else what


def entries(given: Any, where: str) -> list[Trust]:
    """Whose tokens one identity trusts.

    Raises:
        TrustError: An entry has none of the forms.
    """
    return [read(one, f"{where}[{at}]") for at, one in enumerate(given or [])]


def of_stacks(given: Any) -> dict[str, dict[str, list[Trust]]]:
    """Whom the identities of each stack trust; a repository alone stands for the entries that our workflows need.

    Args:
        given: The setting `stacks`: name of the stack → ORGANIZATION/REPOSITORY, or `deploy`, `plan`, `preview`.

    Raises:
        TrustError: A name cannot stand in a container, or an entry has none of the forms.
    """
    found = {}
    for stack in given or {}:
        one, where = given[stack], f"stacks.{stack}"
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", stack) or len(stack) > 40:
            raise _wrong(where, "a stack with a place of its own has small letters, digits and single `-`, 40 at most")
        if isinstance(given[stack], str):
            named = {"deploy": {"environment": stack}, "plan": {"branch": "main"}, "preview": {"pull_request": True}}
            one = {key: [{"github": given[stack], **entry}] for key, entry in named.items()}
        if not isinstance(one, dict):
            raise _wrong(where, "ORGANIZATION/REPOSITORY is expected, or `deploy`, `plan`, `preview`")
        _only(one, {"deploy", "plan", "preview"}, where)
        found[stack] = {key: entries(one.get(key), f"{where}.{key}") for key in ("deploy", "plan", "preview")}
    return found


def read(entry: Mapping[str, Any], where: str) -> Trust:
    """One entry.

    Args:
        entry: As the settings have it.
        where: Its place, for messages.

    Raises:
        TrustError: It has none of the forms.
    """
    if not isinstance(entry, dict):
        raise _wrong(where, "a mapping is expected")
    if repository := entry.get("github"):
        return _github(str(repository), entry, where)
    if issuer := entry.get("kubernetes"):
        _only(entry, {"kubernetes", "namespace", "service_account"}, where)
        subject = f"system:serviceaccount:{entry.get('namespace', '')}:{entry.get('service_account', '')}"
        if subject.count(":") != 3 or not all(subject.split(":")):
            raise _wrong(where, "`namespace` and `service_account` are needed")
        return _made(_https(str(issuer), where), subject)
    if issuer := entry.get("issuer"):
        _only(entry, {"issuer", "subject"}, where)
        if not entry.get("subject"):
            raise _wrong(where, "`subject` is needed")
        return _made(_https(str(issuer), where), str(entry["subject"]))
    raise _wrong(where, "`github`, `kubernetes` or `issuer` is needed")


def _github(repository: str, entry: Mapping[str, Any], where: str) -> Trust:
    _only(entry, {"github", "environment", "branch", "pull_request"}, where)
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise _wrong(where, f"`github` must be ORGANIZATION/REPOSITORY, got `{repository}`")
    ends = {"environment": "environment:{}", "branch": "ref:refs/heads/{}", "pull_request": "pull_request"}
    (given, *more) = [name for name in ends if entry.get(name)] or [""]
    if not given or more:
        raise _wrong(where, "exactly one of `environment`, `branch`, `pull_request` is needed")
    return _made(GITHUB, f"repo:{repository}:{ends[given].format(entry[given])}")


def _made(issuer: str, subject: str) -> Trust:
    return Trust(re.sub(r"[^A-Za-z0-9]+", "-", subject).strip("-")[-100:].strip("-"), issuer, subject)


def _https(issuer: str, where: str) -> str:
    if not issuer.startswith("https://"):
        raise _wrong(where, f"the issuer must be an https address, got `{issuer}`")
    return issuer


def _only(entry: Mapping[str, Any], known: set[str], where: str) -> None:
    if unknown := sorted(set(entry) - known):
        raise _wrong(where, f"unknown: {', '.join(f'`{name}`' for name in unknown)}")


def _wrong(where: str, what: str) -> TrustError:
    return TrustError(f"{where}: {what}. An entry has one of these forms:\n{FORMS}")
