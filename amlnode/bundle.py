"""Writes ``aml_mpienv.py`` and ``launch.py`` as single files, to put beside code written after the guides.

``python -m amlnode write src`` puts both there; they need nothing else. Made of this package's own modules, joined.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Sequence
from pathlib import Path

_TAIL = """

if __name__ == "__main__":
    try:
        sys.exit(main(guides=True))
    except NodeError as error:
        sys.exit(str(error))
"""
FILES = {
    "aml_mpienv.py": (("rank", "environment", "aml_mpienv"), ""),
    "launch.py": (("rank", "environment", "gpus", "processes", "launch"), _TAIL),
}
"""File → the modules that it is made of, in order of their imports, and what follows them."""


def text(name: str) -> str:
    """The text of one of `FILES`."""
    modules, tail = FILES[name]
    running: list[ast.stmt] = []
    typing: list[ast.stmt] = []
    bodies, head = [], ""
    for module in modules:
        source = _source(module)
        tree = ast.parse(source)
        head = ast.get_docstring(tree) or ""
        start = 0
        for node in tree.body:
            # A module is its docstring, its imports, then its own: the joined file keeps that order.
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                running.append(node)
            elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                typing += node.body
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                break
            start = node.end_lineno or start
        bodies.append("\n".join(source.splitlines()[start:]).strip("\n"))
    under = _imports(typing, "    ")
    block = _imports(running, "") + (f"\n\nif TYPE_CHECKING:\n{under}" if under else "")
    made = "# Made by `python -m amlnode write`: write it again instead of editing it.\n"
    joined = "\n\n\n".join(bodies)
    return f'{made}"""{head}\n"""\n\nfrom __future__ import annotations\n\n{block}\n\n\n{joined}\n{tail}'


def _imports(nodes: Sequence[ast.stmt], indent: str) -> str:
    """The imports of what is not ours, each name once, in the usual order."""
    plain: set[str] = set()
    names: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            plain.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(("amlnode", "__future__")):
            names.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
    lines = [f"import {name}" for name in sorted(plain)]
    # Constants first, then classes, then functions, as linters want them.
    for module in sorted(names):
        listed = sorted(names[module], key=lambda name: (not name.isupper(), not name[0].isupper(), name))
        lines.append(f"from {module} import {', '.join(listed)}")
    return "\n".join(indent + line for line in lines)


def write(folder: Path, names: Sequence[str] = tuple(FILES)) -> tuple[Path, ...]:
    """Write files into a folder; returns their paths."""
    paths = []
    for name in names:
        path = folder / name
        path.write_text(text(name), encoding="utf-8")
        paths.append(path)
    return tuple(paths)


def main(arguments: Sequence[str]) -> int:
    """``python -m amlnode write FOLDER [NAME…]``."""
    options = argparse.ArgumentParser(prog="python -m amlnode write", description=__doc__)
    options.add_argument("folder", type=Path, help="the job's code folder")
    options.add_argument("names", nargs="*", help=f"of {', '.join(FILES)}; both when none is named")
    parsed = options.parse_args(arguments)
    unknown = [name for name in parsed.names if name not in FILES]
    if unknown:
        options.error(f"names must be of {', '.join(FILES)}, got {', '.join(unknown)}")
    if not parsed.folder.is_dir():
        options.error(f"there is no folder {parsed.folder}")
    for path in write(parsed.folder, parsed.names or tuple(FILES)):
        print(path)
    return 0


def _source(module: str) -> str:
    return (Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8")
