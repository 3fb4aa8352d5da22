"""Every relative link in the documentation names a file that is there."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
PAGES = [
    PROJECT / line
    for line in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
]


@for_each("page", PAGES)
def test_a_link_leads_to_a_file(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert missing == []
