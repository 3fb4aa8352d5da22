"""The door of the pack: properties in the spelling of its readers, as Azure reads names without letter case."""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache
from typing import Any

from policies.evaluation.compute_subjects import CLASSIC, COMPUTES, INNER, MACHINES, OUTER
from policies.evaluation.facts import Unknown
from policies.evaluation.job_subjects import OWN, STRUCTURE

TWICE = "is written more than once, and Azure reads names without letter case"
_WORDS = """
    action apiVersion body computeLocation computeName computeType condition conda condaFile copy count defaultValue
    dependsOn deployment deploymentProperties details existing expressionEvaluationOptions id image
    environmentVersionProperties componentVersionProperties componentSpec input jobBaseProperties jobDefinition
    languageVersion library linkedTemplates location mainTemplate managedApplicationTemplate mode name
    nullable output outputs parameters parametersContent parametersBody parametersLink parentId parentResourcePath path
    policyRule properties reference relativePath resourceGroup resourceGroupName resourceId resourceName
    resourceProviderNamespace resourceType resources scheduleProperties scope sensitiveBody subscriptionId tags
    targetVMSize template templateBody templateContent templateLink templateSpecVersionId then type uri value variables
    version virtualNetworkName addressSpace addressPrefixes workspaceName machineLearningWorkspaceId
    artifacts identity method workspace uri jobInputType jobOutputType jobLimitsType distributionType codeId displayName
    experimentName description applicationDefinitionId blueprintId plan versionId
"""
"""Names that say where something stands; those of facts come from the tables of their readers."""

_AS_THEY_ARE = frozenset({"environmentvariables", "environment_variables"})
"""Maps of a program's own names, which differ by letter case on the nodes."""
_NAMED = frozenset({"tags", "inputs", "outputs", "jobs"})
"""Maps whose names are a person's own, and whose values are read."""


def _fold(key: str) -> str:
    return key.lower() if key.isascii() else unicodedata.normalize("NFKC", key).casefold()


@lru_cache(maxsize=1)
def spellings() -> dict[str, str]:
    """The readers' spelling of each name that they look for, by the name in small letters."""
    tables = [
        *INNER.values(), *OUTER.values(), *CLASSIC.values(), *(path for paths in OWN.values() for path in paths),
        *(path for _, paths in MACHINES.values() for path in paths),
    ]  # fmt: skip
    words = {*_WORDS.split(), *STRUCTURE, *COMPUTES.values(), *(word for path in tables for word in path)}
    return {_fold(word): word for word in sorted(words)}


def spelled(name: str) -> str:
    """A name in the readers' spelling, or as it is where none looks for it."""
    return spellings().get(_fold(name), name)


def canonical(props: Any) -> tuple[Any, tuple[Unknown, ...]]:
    """Properties in the readers' spelling, and the places at which a name stands twice.

    Args:
        props: Plain Python off the wire. What is spelled so already is given back as it is.
    """
    twins: list[Unknown] = []
    try:
        return _spelled(props, (), twins), tuple(twins)
    except RecursionError:
        return {}, (Unknown("properties", "are nested too deep to be read here", unresolved=True),)


def _spelled(value: Any, path: tuple[str, ...], twins: list[Unknown]) -> Any:
    if type(value) is dict:
        return _object(value, path, twins)
    if type(value) is list:
        made = None
        for index, inner in enumerate(value):
            if type(inner) is dict or type(inner) is list:
                new = _spelled(inner, (*path, str(index)), twins)
                if new is not inner:
                    made = list(value) if made is None else made
                    made[index] = new
        return value if made is None else made
    return value


def _object(value: dict[str, Any], path: tuple[str, ...], twins: list[Unknown]) -> dict[str, Any]:
    around = path[-1].lower() if path else ""
    if around in _AS_THEY_ARE:
        return value
    made: dict[str, Any] | None = None
    if not value.keys() <= _read():
        made = _renamed(value, path, twins, keep=around in _NAMED)
        made = None if made.keys() == value.keys() else made
    for key, inner in (value if made is None else made).items():
        if type(inner) is dict or type(inner) is list:
            new = _spelled(inner, (*path, key), twins)
            if new is not inner:
                made = dict(value) if made is None else made
                made[key] = new
    return value if made is None else made


def _renamed(value: dict[str, Any], path: tuple[str, ...], twins: list[Unknown], *, keep: bool) -> dict[str, Any]:
    known = spellings()
    made: dict[str, Any] = {}
    folded: set[str] = set()
    for key, inner in value.items():
        low = _fold(key)
        if low in folded:
            twins.append(Unknown(".".join((*path, key)), TWICE, unresolved=True))
        else:
            folded.add(low)
            made[key if keep else known.get(low, key)] = inner
    return made


@lru_cache(maxsize=1)
def _read() -> frozenset[str]:
    return frozenset(spellings().values())


def read_json(text: str) -> Any:
    """The value of a JSON text in the readers' spelling.

    Raises:
        ValueError: It is no JSON, is nested too deep, or names something twice in one object.
    """
    try:
        made, twins = canonical(json.loads(text, object_pairs_hook=_once))
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if twins:
        raise ValueError(f"{twins[0].path} {twins[0].why}")
    return made


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return made
