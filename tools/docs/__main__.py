"""``python -m tools.docs [--check]`` from the root of the clone: ``make docs`` and ``make docs-check``."""

from __future__ import annotations

import sys

from amlstack.base.paths import PROJECT
from tools.docs.tables import PAGES


def main(words: list[str]) -> int:
    """Write every page that has changed, or with --check name those that are not current."""
    if words not in ([], ["--check"]):
        print("usage: python -m tools.docs [--check]", file=sys.stderr)
        return 2
    stale = []
    for name, render in PAGES.items():
        path, text = PROJECT / "docs" / name, render()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not words:
                path.write_text(text, encoding="utf-8")
                print(f"docs/{name} was written")
    if words and stale:
        print(f"not current: {', '.join(f'docs/{name}' for name in stale)}. Run `make docs`.", file=sys.stderr)
    return int(bool(words and stale))


sys.exit(main(sys.argv[1:]))
