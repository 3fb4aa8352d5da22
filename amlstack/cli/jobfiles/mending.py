"""Edits of job files that answer advice: a timeout, and the version of an environment. Nothing else of a file changes.

A file is edited as text, at the places that its own syntax gives: comments, order and quotes stay.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from amlstack.base.files import read_regular, write_whole
from amlstack.base.findings import Finding, Level
from amlstack.catalog import environments
from amlstack.code_reading.code_files import tree_of

TIMEOUT: Final = 86_400
"""Seconds of a timeout that is added: a day."""
ADVICE: Final = {
    "environment-pinned": ("The environment is ", "{} jobs name an environment without its version"),
    "job-timeout": ("The job has no timeout", "{} jobs have no timeout"),
}
"""Advice that nearly every file gets, how it begins, and how it is told once."""


def told_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, where each advice stands once: with its first place, a count, and the option that mends it."""
    findings = tuple(findings)
    told: dict[str, list[Finding]] = {}
    for finding in filter(_is_advice, findings):
        told.setdefault(finding.code, []).append(finding)
    for finding in findings:
        if not _is_advice(finding):
            yield finding
            continue
        alike = told[finding.code]
        if finding is alike[0]:
            seen = finding.seen if len(alike) == 1 else ADVICE[finding.code][1].format(len(alike))
            named = [each.seen.removeprefix("The environment is ") for each in alike if each.code != "job-timeout"]
            unknown = [*dict.fromkeys(name for name in named if catalogued(name) is None)]
            how = "--fix --workspace NAME" if unknown else "--fix"
            remedy = finding.remedy if len(alike) == 1 else ""
            mends = (
                f"`amlstack check {how} FILES` writes {'it' if len(alike) == 1 else 'them'}, and shows the difference"
            )
            if unknown:
                mends += f"; the catalogue knows no version of {', '.join(unknown)}"
            yield finding.changed(seen=seen, remedy=f"{remedy.rstrip('.')}. {mends}".removeprefix(". "))


def _is_advice(finding: Finding) -> bool:
    begins = ADVICE.get(finding.code)
    known = begins is not None and finding.level is Level.WARNING and finding.seen.startswith(begins[0])
    return known and not finding.by_hand


_UNPINNED: Final = re.compile(
    r"azureml:(?P<own>[^:@/]+)(?:@latest)?"
    r"|(?:azureml://registries/azureml/environments/)?(?P<curated>[\w.-]+)(?:/labels/latest)?"
)


class TextEdit(NamedTuple):
    """A text in place of what stands between two offsets."""

    begin: int
    end: int
    text: str


def mend(file: Path, findings: Iterable[Finding], pinned: Callable[[str], str | None]) -> str:
    """Write what answers the advice on one file.

    Args:
        file: The job file.
        findings: Those on it; the others are left alone.
        pinned: From an environment's reference to one with its version; None where nobody knows it.

    Returns:
        The difference as `diff -u` shows it; empty where nothing could be answered.

    Raises:
        OSError: The file cannot be read or written.
    """
    text = read_regular(file).decode("utf-8")
    edits: list[TextEdit] = []
    for finding in filter(_is_advice, findings):
        try:
            found = [*(_of_python if file.suffix == ".py" else _of_yaml)(text, finding, pinned)]
        except (SyntaxError, ValueError):
            continue
        edits += [each for each in found if each not in edits]
    made = text
    for each in sorted(edits, reverse=True):
        made = made[: each.begin] + each.text.replace("\n", "\r\n" if "\r\n" in text else "\n") + made[each.end :]
    if made != text:
        write_whole(file, made)
    lines = difflib.unified_diff(text.splitlines(), made.splitlines(), str(file), str(file), lineterm="")
    return "\n".join(lines)


def catalogued(reference: str) -> str | None:
    """The reference of a curated environment with the version that the catalogue knows; None where it knows none."""
    if _UNPINNED.fullmatch(reference) is None:
        return None
    one = environments.curated(reference) or environments.get(reference)
    return one.version_id(one.version) if one is not None and one.version else None


def versions_of(workspace: str) -> Callable[[str], str | None]:
    """From the reference of an environment to the newest version that a workspace has of it; asks it once for each.

    Args:
        workspace: Its name, or its ARM id.

    Raises:
        NoWorkspaceError, ArmError: It is not known as a whole, or does not answer.
    """
    from amlstack.cli.workspace.options import AskedWorkspace
    from amlstack.cli.workspace.workspace_place import find

    place = find(AskedWorkspace(workspace=workspace), lambda _: None)

    @cache
    def pinned(reference: str) -> str | None:
        found = _UNPINNED.fullmatch(reference)
        if found is None:
            return None
        name = found["own"] or f"AzureML-{found['curated']}"
        answer = place.arm.get(f"{place.workspace}/environments/{name}", allow=(404,))
        version = (answer.body.get("properties") or {}).get("latestVersion") if answer.status == 200 else None
        return f"azureml:{name}:{version}" if version else None

    return pinned


def _of_yaml(text: str, finding: Finding, pinned: Callable[[str], str | None]) -> Iterator[TextEdit]:
    import yaml

    *way, last = finding.where.split(".")
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    if last == "timeout":
        way.pop()
    for name in way:
        node = value_of(node, name)
    if last == "environment":
        yield from _pin(value_of(node, last), pinned, text)
    elif isinstance(node, yaml.MappingNode) and not node.flow_style:
        limits = value_of(node, "limits")
        if limits is None:
            yield from _line_after(node, text, f"limits:\n{{0}}  timeout: {TIMEOUT}")
        elif isinstance(limits, yaml.MappingNode) and not limits.flow_style and value_of(limits, "timeout") is None:
            yield from _line_after(limits, text, f"timeout: {TIMEOUT}")


def value_of(node: Any, name: str) -> Any:
    """The node of a key of a mapping in YAML; None where there is none."""
    pairs = node.value if isinstance(getattr(node, "value", None), list) else ()
    return next((value for key, value in pairs if key.value == name), None)


def _pin(node: Any, pinned: Callable[[str], str | None], text: str) -> Iterator[TextEdit]:
    begin, end = node.start_mark.index, node.end_mark.index
    if isinstance(node.value, str) and node.value in text[begin:end] and (right := pinned(node.value)):
        yield TextEdit(begin, end, text[begin:end].replace(node.value, right))


def _line_after(node: Any, text: str, line: str) -> Iterator[TextEdit]:
    """A line below the last key of a mapping that is one line itself."""
    for key, value in reversed(node.value):
        if key.start_mark.line == value.end_mark.line and isinstance(value.value, str):
            indent = " " * key.start_mark.column
            end = text.find("\n", value.end_mark.index)
            end = len(text) if end < 0 else end - (text[end - 1] == "\r")
            yield TextEdit(end, end, f"\n{indent}{line.format(indent)}")
            return


def _of_python(text: str, finding: Finding, pinned: Callable[[str], str | None]) -> Iterator[TextEdit]:
    lines = text.splitlines(keepends=True)
    calls = [node for node in ast.walk(tree_of(text) or ast.Module([], [])) if isinstance(node, ast.Call)]
    if finding.code == "environment-pinned":
        for word in (each for call in calls for each in call.keywords if each.lineno == finding.line):
            given = word.value.value if isinstance(word.value, ast.Constant) else None
            if word.arg == "environment" and isinstance(given, str) and (right := pinned(given)):
                begin, end = _span(lines, word.value)
                yield TextEdit(begin, end, text[begin:end].replace(given, right))
        return
    call = next((each for each in calls if each.lineno == finding.line and each.keywords), None)
    if call is not None and not any(word.arg in {"limits", None} for word in call.keywords):
        last = call.keywords[-1]
        end = _span(lines, last.value)[1]
        comma, before = text[end : end + 1] == ",", lines[last.lineno - 1][: last.col_offset]
        between = f"\n{before}" if comma and not before.strip() else " "
        added = f'{between}limits={{"timeout": {TIMEOUT}}}'
        yield TextEdit(end + comma, end + comma, f"{added}," if comma else f",{added}")


def _span(lines: Sequence[str], node: ast.expr) -> tuple[int, int]:
    """The offsets of a node, whose columns are bytes."""

    def offset(line: int, column: int) -> int:
        return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode(errors="ignore"))

    return offset(node.lineno, node.col_offset), offset(node.end_lineno or 0, node.end_col_offset or 0)
