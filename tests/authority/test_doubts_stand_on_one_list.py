"""Whatever is not proven of Azure is a row of docs/reference/unproven.md; others link to it."""

from __future__ import annotations

import re
import subprocess
from functools import cache

from amlstack.base.paths import PROJECT
from amlstack.prove.walk import STEPS

PAGE = "docs/reference/unproven.md"
DOUBT = re.compile(
    r"\bundocumented\b|\b(not|nowhere) documented\b|\b(documented|written) nowhere\b|\bdoes not document\b"
    r"|\bdocuments? no\b|\bnot (been )?(measured|proven)\b|\b(is|are) assumed\b|\bassumptions?\b"
    r"|\bsources disagree\b|\bno recording says\b|\bunknown whether\b|\bnobody has run\b"
    r"|\bwhether Azure\b(?!-)[^.|]*\b(unknown|not known)\b|\bAzure's\b[^.|]*\bis not known\b",
    re.IGNORECASE,
)
"""Words of doubt about Azure; what is only not known before an update is said in others."""
LINK = re.compile(r"(?:docs/)?unproven\.md(?:#([a-z-]+))?")
NEAR = 3
"""The link stands so many lines before or behind the words, at most."""
OF_FACTS = (
    "amlstack/catalog/data/",
    "policies/tenant/data/",
    "docs/schema/",
    "docs/adr/",
    "docs/reference/findings.md",
    "docs/reference/policies.md",
)
"""Facts that say of themselves what is unknown, decisions of their day, and pages made from the source."""
NO_DOUBT = {
    "amlstack/base/arm_language/expressions.py": "OpenError says it to people; its docstring has the link",
    "amlstack/base/arm_language/functions.py": "the same",
    "jobs/azureml/read/pipeline.py": "a finding, of which docs/reference/unproven.md#no-environment says the rest",
    "amlstack/cli/commands/catalogue.py": "of a size that no page names, in the catalogue's own words",
}


@cache
def texts() -> list[tuple[str, list[str]]]:
    """Pages and sources with their lines."""
    command = ["git", "-C", str(PROJECT), "ls-files", "--cached", "--others", "--exclude-standard", "*.md", "*.py"]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    skipped = ("tests/", "examples/", "CHANGELOG.md", PAGE, *OF_FACTS)
    return [(file, (PROJECT / file).read_text("utf-8").splitlines()) for file in files if not file.startswith(skipped)]


def test_words_of_doubt_have_a_link_to_the_list() -> None:
    alone = []
    for file, lines in texts():
        if file in NO_DOUBT:
            continue
        for number, line in enumerate(lines):
            around = " ".join(lines[max(0, number - NEAR) : number + NEAR + 1])
            if DOUBT.search(line) and not LINK.search(around):
                alone.append(f"{file}:{number + 1}: {line.strip()}")
    assert alone == []


def test_every_link_leads_to_a_row_or_a_section() -> None:
    page = (PROJECT / PAGE).read_text("utf-8")
    rows = set(re.findall(r'<a id="([a-z-]+)"></a>', page))
    sections = {title.lower().replace(" ", "-") for title in re.findall(r"^## (.+)$", page, re.MULTILINE)}
    linked = {found for _, lines in texts() for found in LINK.findall("\n".join(lines)) if found}
    assert linked <= rows | sections
    assert len(rows) == page.count("<a id=")


def test_every_row_says_what_is_done_until_then_and_what_answers_it() -> None:
    rows = [line for line in (PROJECT / PAGE).read_text("utf-8").splitlines() if line.startswith('| <a id="')]
    assert len(rows) > 20
    for row in rows:
        question, until, answer = row.strip("| ").split(" | ")
        assert "?" in question
        assert until
        assert answer
        for steps in re.findall(r"prove --only ([a-z ]+)`", answer):
            assert set(steps.split()) <= set(STEPS), row


def test_words_of_doubt_are_found() -> None:
    for text in ("Its form is not documented.", "It is unknown whether", "Sources disagree.", "This is assumed."):
        assert DOUBT.search(text)
    for text in ("its size is not known before the update", "the documents show it", "assume a role"):
        assert not DOUBT.search(text)
