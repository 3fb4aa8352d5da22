"""Mistakes of a text as YAML, as findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding

if TYPE_CHECKING:
    import yaml


class RefusalError(Exception):
    """An error that ends the reading, with its finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def refusal(event: Any, code: str, seen: str, rule: str, remedy: str) -> RefusalError:
    """The refusal of a parser event, placed where it begins."""
    return refusal_at(event.start_mark, code, seen, rule, remedy)


def refusal_at(mark: Any, code: str, seen: str, rule: str, remedy: str) -> RefusalError:
    """The same for a place in the text."""
    return RefusalError(Finding(code, "", seen, rule, remedy, line=mark.line + 1, column=mark.column + 1))


def syntax(error: yaml.YAMLError, content: str) -> Finding:
    """The parser's own error as a finding; a tab that indents is called by its name."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).split("\n")[0]
    lines = content.split("\n")
    written = lines[mark.line] if mark and mark.line < len(lines) else ""
    if "\t" in written[: len(written) - len(written.lstrip())] or (mark and "character '\\t'" in problem):
        return Finding(
            "yaml-tab",
            "",
            "The line is indented with a tab",
            "YAML is indented with spaces",
            "Replace the tab by spaces.",
            line=line,
            column=column,
        )
    if position := getattr(error, "position", None):  # the reader's own errors name an offset instead
        line = content.count("\n", 0, position) + 1
        problem = f"a character that YAML does not allow stands at offset {position}"
    return Finding(
        "yaml-syntax",
        "",
        f"This is not YAML: {problem}",
        "A job file is one YAML mapping",
        "Mind indentation, quotes and colons around this place.",
        line=line,
        column=column,
    )
