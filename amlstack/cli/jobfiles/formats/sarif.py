"""Findings as one SARIF 2.1.0 log (OASIS, errata 01 of 2023-08), as GitHub's code scanning and others take it.

What code scanning needs beyond the standard, a location with a line for each result and three texts for each rule, is
in docs.github.com, "SARIF support for code scanning" (read 2026-11).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from amlstack.base.findings import Level, in_file_order
from amlstack.cli.jobfiles.formats.places import from_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.base.findings import Finding

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT: Final = "%SRCROOT%"
FINGERPRINT: Final = "amlstackFinding/v1"
LEVELS: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "note"}
_ENFORCED: Final = {"mandatory": "error", "advisory": "warning", "disabled": "none"}


def log(findings: Iterable[Finding], root: Path, fallback: str, *, category: str = "check") -> dict[str, Any]:
    """The log of one run.

    Args:
        findings: In any order.
        root: What files are named from, links resolved.
        fallback: The file that a finding without one is shown at.
        category: What was judged; two runs of one category replace each other where results are kept.
    """
    from amlstack import __version__

    ordered = in_file_order(findings)
    by_code: dict[str, list[Finding]] = {}
    for finding in ordered:
        by_code.setdefault(finding.code, []).append(finding)
    codes = list(by_code)
    numbers: dict[str, int] = {}
    results = []
    for finding in ordered:
        uri = _uri(finding.file or fallback, root)
        named = _identity(finding, uri)
        numbers[named] = numbers.get(named, 0) + 1
        results.append(_result(finding, codes.index(finding.code), uri, f"{named}:{numbers[named]}"))
    driver = {
        "name": "amlstack",
        "semanticVersion": __version__,
        "rules": [_rule(code, of_code[0]) for code, of_code in by_code.items()],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"amlstack/{category}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"uri": f"{root.as_uri().rstrip('/')}/"}},
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _uri(file: str, root: Path) -> dict[str, str]:
    """An artifact's location: from the root on, or absolute for a file outside of it."""
    place = from_root(file, root)
    if place is not None:
        return {"uri": quote(place), "uriBaseId": ROOT}
    return {"uri": Path(file).absolute().as_uri()}


def _result(finding: Finding, index: int, uri: Mapping[str, str], fingerprint: str) -> dict[str, Any]:
    region: dict[str, int] = {"startLine": finding.line or 1}
    if finding.line and finding.column:
        region["startColumn"] = finding.column
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": dict(uri), "region": region}}
    if finding.where:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.where}]
    text = f"{finding.where}: {finding.message}" if finding.where else finding.message
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": LEVELS[finding.level],
        "message": {"text": text},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: fingerprint},
    }


def _identity(finding: Finding, uri: Mapping[str, str]) -> str:
    """Of the same finding after lines were added above it, and after its value became another wrong one."""
    what = finding.where or finding.seen
    return hashlib.sha256("\0".join((finding.code, uri["uri"], what)).encode()).hexdigest()[:32]


def _rule(code: str, example: Finding) -> dict[str, Any]:
    """What is known of a rule: of the policy pack's all, of another what its findings say."""
    from policies.config import ALL

    known = next((rule for rule in ALL if rule.code == code), None)
    if known is None:
        text = example.rule or example.seen
        return {
            "id": code,
            "shortDescription": {"text": text},
            "fullDescription": {"text": text},
            "help": {"text": " ".join(part for part in (text, example.remedy) if part)},
            "defaultConfiguration": {"level": LEVELS[example.level]},
            "properties": {"tags": ["azure-machine-learning"]},
        }
    return {
        "id": code,
        "shortDescription": {"text": known.title},
        "fullDescription": {"text": known.what},
        "help": {"text": f"{known.what}\n\n{known.why}\n\nExamples and settings: docs/policies.md, {code}"},
        "defaultConfiguration": {"level": _ENFORCED[known.level]},
        "properties": {"tags": ["azure-machine-learning", "policy"]},
    }
