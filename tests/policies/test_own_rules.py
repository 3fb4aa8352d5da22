"""Rules of a repository's own in `rules/`: at the declaration, and in the pack as the real engine runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from amlstack.base import paths
from policies.checks import own
from tests.support.policies.accepting_provider import attached
from tests.support.rows import for_each
from tests.support.stack.fresh_clone import Clone

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.harness import Stack

    class MakeStack(Protocol):
        def __call__(self, program: str, *, env: dict[str, str]) -> Stack: ...


TEMPLATE = paths.PROJECT / "deploy" / "team" / "rules" / "example.py"
RULE = "".join(line.removeprefix("# ").removeprefix("#") for line in TEMPLATE.read_text().splitlines(keepends=True)[4:])
"""The example of `amlstack init`, with the marks of its comments taken away."""
SIZE = "Standard_ND96isr_H100_v5"


@for_each(
    "text, words",
    [
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("def (", "SyntaxError"),
        (RULE.replace("team-nodes", "node-ceiling"), "there is a rule `node-ceiling` already"),
        (RULE + RULE, "there is a rule `team-nodes` already"),
        (RULE.replace("team-nodes", "TeamNodes"), "a code has words of small letters"),
        (RULE.replace('"cluster", s', '"kluster", s'), "judges one or more of"),
    ],
)
def test_of_a_file_that_is_wrong_the_first_thing_is_said(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(RULE.replace("team-nodes", "team-other"))
    (tmp_path / "b.py").write_text(text)
    found, wrong = own.load(tmp_path, frozenset({"node-ceiling"}))
    assert found == ()
    assert wrong.startswith(f"{tmp_path.name}/b.py: ")
    assert words in wrong


def test_the_example_that_init_writes_is_a_rule_once_its_marks_are_gone(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(TEMPLATE.read_text())
    assert own.load(tmp_path, frozenset()) == ((), "")
    (tmp_path / "example.py").write_text(RULE)
    ((rule, _),), wrong = own.load(tmp_path, frozenset())
    assert (rule.code, set(rule.kinds), wrong) == ("team-nodes", {"cluster"}, "")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    (tmp_path / "clone" / "rules").mkdir(parents=True)
    (tmp_path / "clone" / "rules" / "nodes.py").write_text(RULE)
    return Clone.made(tmp_path / "clone")


@pytest.mark.engine
@pytest.mark.parametrize(("level", "nodes"), [("mandatory", 8), ("advisory", 8), ("mandatory", 16)])
def test_the_engine_refuses_what_an_own_rule_refuses_at_its_level_and_settings(
    level: str, nodes: int, clone: Clone, stack: MakeStack, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"team-nodes": {"enforcementLevel": level, "nodes": nodes}}))
    asked: list[dict[str, Any]] = [{"name": str(n), "as": "cluster", "nodes": n, "size": SIZE} for n in (8, 9)]
    with attached() as azure:
        program = stack("sizes_from_settings", env=azure.environ).set("ask", asked)
        pack = clone.folder / "policies" / "analyzer"
        result = program.preview("--policy-pack-config", str(config), policy_packs=[pack])
    found = [(one.urn.rpartition("::")[2], one.level) for one in result.violations if one.policy == "team-nodes"]
    assert found == ([("9", level)] if nodes == 8 else [])
    assert (result.code != 0) == (found == [("9", "mandatory")])


def test_check_shows_an_own_rule_at_its_line_and_a_rule_that_fails_lets_nothing_pass(clone: Clone) -> None:
    name = next(clone.folder.glob("Pulumi.sandbox.yaml")).name
    broken = RULE.replace("or 0", "/ 0").replace("team-nodes", "team-share")
    (clone.folder / "rules" / "share.py").write_text(broken)
    clone.set(clusters=[{"name": "abc", "size": SIZE, "nodes": {"min": 0, "max": 9}}])
    said = clone.run("up", "--stack", "sandbox", "--preview", "--sandbox")
    assert said.code == 1
    assert "[team-nodes]" in said.text
    assert f"{name}:" in next(line for line in said.text.splitlines() if "[team-nodes]" in line)
    assert "error: amlstack:clusters[0].size [team-share]\n    The rule failed: ZeroDivisionError" in said.text
    (clone.folder / "rules" / "nodes.py").write_text("import nothing_of_this_name\n")
    said = clone.run("up", "--stack", "sandbox", "--preview", "--sandbox")
    assert said.code == 1
    assert "rules/nodes.py: ModuleNotFoundError" in said.text
    assert "Traceback" not in said.text
