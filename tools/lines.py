"""Lines of Python by room, at one or more commits: ``python tools/lines.py [REVISION…]`` (default: HEAD).

Code, docstrings (texts that stand alone below a definition or a field) and comments are counted apart, blank lines not
at all. Files are read from git: nothing has to be checked out.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tarfile
import tokenize
from collections import Counter

INSIDE = ("amlstack", "policies", "jobs", "infra", "amlcpu", "amlnode", "amlparallel", "tools", "deploy")
BESIDE = ("tests", "examples")
_LAYOUT = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
                     tokenize.ENDMARKER})  # fmt: skip


def count(text: str) -> Counter[str]:
    """Lines of code, of docstrings and of comments of one file; a line of code with a comment is code."""
    texts: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    comments: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in _LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    return Counter(code=len(code - texts), docstrings=len(texts), comments=len(comments - code))


def rooms(revision: str) -> dict[str, Counter[str]]:
    """Room to its lines at a commit; below `amlstack` each package is a room."""
    packed = subprocess.run(["git", "archive", revision], check=True, capture_output=True).stdout
    found: dict[str, Counter[str]] = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        for member in files:
            top, *rest = member.name.split("/")
            if member.name.endswith(".py") and top in INSIDE + BESIDE and (content := files.extractfile(member)):
                room = f"{top}/{rest[0]}" if top == "amlstack" and len(rest) > 1 else top
                found.setdefault(room, Counter()).update(count(content.read().decode("utf-8")))
    return found


def main() -> None:
    """Prints a table: a row a room, a column of lines of code a commit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revisions", nargs="*", default=["HEAD"])
    revisions = parser.parse_args().revisions
    by_revision = [rooms(each) for each in revisions]
    names = sorted(set().union(*by_revision), key=lambda name: (name in BESIDE, name))
    print(f"| room | {' | '.join(revisions)} |\n| --- |{' --: |' * len(revisions)}")
    for name in names:
        lines = [found.get(name, Counter())["code"] for found in by_revision]
        print(f"| {name} | {' | '.join(f'{each:,}' for each in lines)} |")
    for kind in ("code", "docstrings", "comments"):
        sums = [sum(lines[kind] for name, lines in found.items() if name not in BESIDE) for found in by_revision]
        print(f"| all but {' and '.join(BESIDE)}: {kind} | {' | '.join(f'{each:,}' for each in sums)} |")


if __name__ == "__main__":
    main()
