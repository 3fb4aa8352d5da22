"""The walls of the house: which room may import which, and what may not be loaded at module level."""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from amlstack.base.paths import PROJECT
from tests.support.source_trees import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OURS = ("amlstack", "amlcpu", "amlnode", "amlparallel", "infra", "jobs", "policies")

# Room → rooms of ours that it may import, itself included. What is not listed is forbidden.
BASE = "amlstack.base"
READING = "amlstack.code_reading"
MAY = {
    BASE: (BASE,),
    "amlnode": ("amlnode",),
    "amlcpu": ("amlcpu",),
    "amlparallel": ("amlparallel",),
    "amlstack.catalog": ("amlstack.catalog", BASE),
    READING: (READING, "amlstack.catalog", BASE),
    "policies.checks": ("policies.checks", "amlstack.catalog", BASE),
    "jobs": ("jobs", READING, "policies.checks", "amlstack.catalog", "amlstack.snapshot", BASE),
    "infra": (
        "infra",
        "jobs",
        "policies.checks",
        "policies.azure_policy",
        "policies.config",
        "policies.gate",
        "amlstack.catalog",
        "amlstack.snapshot",
        "amlstack.run_identity",
        "amlstack.resources",
        BASE,
    ),
    "policies": ("policies", "amlstack.catalog", BASE),
    "amlstack.provider": ("amlstack.provider", "amlstack.run_identity", "amlstack.rpc", "amlstack.snapshot", BASE),
    "amlstack.sandbox": (
        "amlstack.sandbox",
        "amlstack.images",
        READING,
        "amlstack.rpc",
        "amlstack.catalog",
        "amlstack.processes",
        BASE,
    ),
    "amlstack.images": ("amlstack.images", READING, "amlstack.processes", BASE),
    "amlstack.diagnose": ("amlstack.diagnose", READING, "amlstack.catalog", BASE),
    "amlstack.report": ("amlstack.report", "amlstack.diagnose", "amlstack.sandbox", "amlstack.catalog", BASE),
    "amlstack.migrate": ("amlstack.migrate", READING, "amlstack.catalog", BASE),
    "amlstack.prove": (
        "amlstack.prove",
        "amlstack.engine",
        "amlstack.provider",
        "amlstack.sandbox",
        "amlstack.catalog",
        BASE,
    ),
    "amlstack.program": ("infra",),
    "amlstack.snapshot": ("amlstack.snapshot", BASE),
    "amlstack.rpc": ("amlstack.rpc", BASE),
    "amlstack.resources": ("amlstack.resources",),
    "amlstack.run_identity": (),
    "amlstack.engine": ("amlstack.engine", "amlstack.processes", BASE),
    "amlstack.processes": ("amlstack.processes", BASE),
}
JOBS = {
    "jobs.launchers": ("jobs.launchers", "jobs.values"),
    "jobs.model": ("jobs.model", "jobs.launchers", "jobs.values"),
    "jobs.wire": ("jobs.wire", "jobs.model", "jobs.launchers", "jobs.values"),
    "jobs.planning": ("jobs.planning", "jobs.wire", "jobs.model", "jobs.launchers", "jobs.values"),
    "jobs.kinds": ("jobs.planning", "jobs.wire", "jobs.model", "jobs.values"),
    "jobs.azureml": ("jobs.azureml", "jobs.wire", "jobs.model", "jobs.launchers", "jobs.values"),
    "jobs.pythonfiles": ("jobs.pythonfiles", "jobs.model", "jobs.launchers", "jobs.values"),
    "jobs.loading": ("jobs.azureml", "jobs.pythonfiles", "jobs.model", "jobs.values"),
}
"""Within `jobs`, room → rooms that it may import: what is declared < the wire < plans; files < loading."""
READS_FILES = "amlstack.base.yamltext"
MAY_READ_FILES = ("jobs.azureml", "jobs.loading")
CIRCLES: list[list[str]] = []
"""Import circles that are still to be broken; a new one fails, and so does one that is broken and left here."""
CIRCLES_OF_TYPES: list[list[str]] = []
"""The same where at least one import serves annotations alone."""
FOLDER_CIRCLES: list[list[str]] = []
"""Folders and modules of one parent that cannot be understood without each other; still to be taken apart."""
SHARED_CLASS_NAMES: dict[str, list[str]] = {}
"""Names that classes of several modules have in common, with a reason for each."""
VERBS = "amlstack.cli.commands"
"""A verb is a function, named as it is typed, and nothing imports it but the table of verbs."""
NEITHER_PULUMI_NOR_AZURE = (
    BASE,
    "amlstack.catalog",
    "jobs",
    "policies.checks",
    "amlnode",
    "amlstack.diagnose",
    "amlstack.run_identity",
    "amlstack.snapshot",
)


def modules() -> Iterator[tuple[str, Path]]:
    for top in OURS:
        for path in sorted((PROJECT / top).rglob("*.py")):
            dotted = ".".join(path.relative_to(PROJECT).with_suffix("").parts)
            yield dotted.removesuffix(".__init__"), path


class Import(NamedTuple):
    """An absolute name that a file imports, and where."""

    name: str
    in_function: bool
    typing: bool
    """Under TYPE_CHECKING."""


@functools.cache
def imports(path: Path) -> tuple[Import, ...]:
    """All imports of a file. They are statements: what is inside expressions, most of a tree, is not looked at."""
    found: list[Import] = []
    todo: list[tuple[ast.AST, bool, bool]] = [(tree_of(path), False, False)]
    while todo:
        node, in_function, typing = todo.pop()
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, in_function, typing) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports fail in programs that Pulumi runs by path"
            found.extend(Import(f"{node.module}.{alias.name}", in_function, typing) for alias in node.names)
        in_function |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        typing |= isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            todo.extend((statement, in_function, typing) for statement in getattr(node, block, ()))
    return tuple(found)


def imported(path: Path, *, module_level: bool = False, typing: bool = True) -> set[str]:
    """Absolute names that a file imports.

    With module_level, not those inside functions or under TYPE_CHECKING; without typing, not those under TYPE_CHECKING.
    """
    return {
        one.name
        for one in imports(path)
        if not (one.typing and (module_level or not typing)) and not (one.in_function and module_level)
    }


def test_an_import_is_found_wherever_a_statement_may_be(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        "import a\nif TYPE_CHECKING:\n    import b\nelse:\n    import c\n"
        "try:\n    import d\nexcept ValueError:\n    import e\nfinally:\n    import f\n"
        "class C:\n    async def f(self):\n        with g:\n            from h import i\n"
        "match x:\n    case 1:\n        import j\n"
    )
    assert imported(file) == {"a", "b", "c", "d", "e", "f", "h.i", "j"}
    assert imported(file, typing=False) == {"a", "d", "e", "f", "h.i", "j"}
    assert imported(file, module_level=True) == {"a", "d", "e", "f", "j"}


def within(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


def room_of(module: str) -> str | None:
    return max((room for room in MAY if within(module, room)), key=len, default=None)


def outside(names: set[str], *rooms: str) -> set[str]:
    """Those of the names that are in none of the rooms."""
    return {name for name in names if not any(within(name, room) for room in rooms)}


def test_a_module_imports_only_what_its_room_may() -> None:
    wrong = {}
    for module, path in modules():
        room = room_of(module)
        if room is None:  # the package marker and the command line, which may import all and is imported by no module
            assert module == "amlstack" or within(module, "amlstack.cli")
            continue
        ours = {name for name in imported(path) if name.split(".")[0] in OURS}
        wrong[module] = outside(ours, *MAY[room], "amlstack.__version__")
    assert len(wrong) > 300
    assert {module: names for module, names in wrong.items() if names} == {}


def test_a_module_of_jobs_imports_only_what_its_stage_may() -> None:
    staged = {module: path for module, path in modules() if any(within(module, room) for room in JOBS)}
    wrong = {}
    for module, path in staged.items():
        stage = next(room for room in JOBS if within(module, room))
        wrong[module] = outside({name for name in imported(path) if within(name, "jobs")}, *JOBS[stage])
    assert len(wrong) > 30
    assert {module: names for module, names in wrong.items() if names} == {}

    reads = {module for module, path in staged.items() if any(within(name, READS_FILES) for name in imported(path))}
    assert outside(reads, *MAY_READ_FILES) == set()


def test_rooms_of_facts_and_jobs_load_neither_pulumi_nor_azure() -> None:
    heavy = {"pulumi", "azure", "pulumi_azure_native"}
    loads = {
        module: {name for name in imported(path, module_level=True) if name.split(".")[0] in heavy}
        for module, path in modules()
        if any(within(module, room) for room in NEITHER_PULUMI_NOR_AZURE)
    }
    assert len(loads) > 80
    assert {module: names for module, names in loads.items() if names} == {}


def test_what_runs_on_the_nodes_needs_the_standard_library_only() -> None:
    import sys

    for module, path in modules():
        if within(module, "amlnode"):
            foreign = (
                {name.split(".")[0] for name in imported(path, module_level=True)}
                - sys.stdlib_module_names
                - {"amlnode"}
            )
            assert foreign == set(), module


@functools.cache
def loaded(*, typing: bool = False) -> dict[str, set[str]]:
    """Module to the modules of ours that it imports, inside functions too; with typing, for annotations as well."""
    paths = dict(modules())
    return {
        module: {
            name if name in paths else name.rpartition(".")[0]
            for name in imported(path, typing=typing)
            if name in paths or name.rpartition(".")[0] in paths
        }
        - {module}
        for module, path in paths.items()
    }


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Sets of modules of which each reaches each other one."""
    while ends := {module for module, names in graph.items() if not names & graph.keys()}:
        graph = {module: names & graph.keys() for module, names in graph.items() if module not in ends}
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for found in graph[todo.pop()] - seen:
                seen.add(found)
                todo.append(found)
        reached[start] = seen
    return {
        frozenset(other for other in reached[start] if start in reached[other])
        for start in graph
        if start in reached[start]
    }


def test_a_circle_is_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {frozenset({"b", "c"})}


def circles_of_the_house(*, typing: bool) -> list[list[str]]:
    # A package's own module stands for all that it exports, so what it imports is no way back to it.
    graph = {module: names for module, names in loaded(typing=typing).items() if module != "jobs"}
    graph = {module: {name for name in names if name in graph} for module, names in graph.items()}
    return sorted(map(sorted, circles(graph)))


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles_of_the_house(typing=False) == CIRCLES


def test_no_modules_import_each_other_for_their_types() -> None:
    assert circles_of_the_house(typing=True) == CIRCLES_OF_TYPES


def circles_of_folders() -> list[list[str]]:
    """Sets of folders below one parent whose modules import each other in a circle, for types as well."""
    graphs: dict[str, dict[str, set[str]]] = {}
    for module, names in loaded(typing=True).items():
        for name in names:
            ours, theirs = module.split("."), name.split(".")
            depth = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
            if not depth:  # a package and a module in it, or two rooms, which `MAY` judges
                continue
            graph = graphs.setdefault(".".join(ours[:depth]), {})
            here, there = ".".join(ours[: depth + 1]), ".".join(theirs[: depth + 1])
            graph.setdefault(here, set()).add(there)
            graph.setdefault(there, set())
    return sorted(sorted(circle) for graph in graphs.values() for circle in circles(graph))


def test_no_folders_import_each_other_in_a_circle() -> None:
    assert circles_of_folders() == FOLDER_CIRCLES


def public_classes() -> dict[str, list[str]]:
    """Name to the modules that define a public class of it."""
    found: dict[str, list[str]] = {}
    for module, path in modules():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(module)
    return found


def test_no_two_public_classes_have_one_name() -> None:
    assert {name: where for name, where in public_classes().items() if len(where) > 1} == SHARED_CLASS_NAMES


def test_no_docstring_begins_with_a_relative_clause() -> None:
    clause = re.compile(r'^ *r?"""(What|Which|Whether|Where|How|Who|When|Why)\b.*', re.MULTILINE)
    files = [path for top in (*OURS, "deploy", "tests", "tools") for path in (PROJECT / top).rglob("*.py")]
    assert len(files) > 800
    assert [found[0] for path in files for found in clause.finditer(path.read_text("utf-8"))] == []


def test_no_module_is_called_like_its_only_public_function() -> None:
    # Which of the two `package.name` is would depend on what was imported first.
    alike = set()
    for module, path in modules():
        functions = [
            node.name
            for node in tree_of(path).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        ]
        if functions == [module.rpartition(".")[2]]:
            alike.add(module)
    assert {module for module in alike if not within(module, VERBS)} == set()
    assert {module for module in alike if within(module, VERBS)}
