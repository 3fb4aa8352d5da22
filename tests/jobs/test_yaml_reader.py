"""Reading YAML: what PyYAML's safe loader reads, with places, bounded, and a finding for everything else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from amlstack.base import yamltext
from amlstack.base.findings import Level
from tests.support.examples import examples
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Co")), max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc<=.~", max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.booleans())
def test_values_are_those_of_the_safe_loader(value: object, flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    read = yamltext.parse(text)
    assert read.findings == ()
    assert read.data == yaml.safe_load(text)


@settings(max_examples=examples(3))
@given(st.text("ab:-?[]{}&*!|>'\"#%@, \n\t<0.~", max_size=60))
@example("? [a]\n: b")
@example("&a [*a]")
@example("a: &b {<<: *b}")
@example("{a: <<}")
@example("- <<: [1]")
@example("a: !!int x")
@example("a: 0b")
def test_any_text_is_a_value_or_findings(text: str) -> None:
    read = yamltext.parse(text)
    for finding in read.findings:
        assert finding.seen
        assert finding.rule
    try:
        theirs = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, KeyError):
        return  # the C parser is laxer in corners like `|#x`
    assert read.findings or read.data == theirs


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_findings(content: bytes) -> None:
    read = yamltext.parse(content, "job.yml")
    assert read.data is None or not [finding for finding in read.findings if finding.code != "yaml-duplicate-key"]


def test_a_repeated_key_has_its_last_value_and_a_finding_with_both_places() -> None:
    read = yamltext.parse("a: 1\nb: 2\na: 3\n", "job.yml")
    (finding,) = read.findings
    assert read.data == {"a": 3, "b": 2}
    assert (finding.level, finding.line, finding.seen) == (Level.WARNING, 3, "`a` is given here and in line 1")


@for_each(
    "text, code, line, column",
    [
        ("a: 1\nb: 2\na: 3\n", "yaml-duplicate-key", 3, 1),
        ("a:\n\tb: 1\n", "yaml-tab", 2, 1),
        ("a: b: c\n", "yaml-syntax", 1, 5),
        ("a: [1\nb: 2\n", "yaml-syntax", 2, 2),
        ("a: 1\n---\nb: 1\n", "yaml-documents", 2, 1),
        ("a: !mine 1\n", "yaml-tag", 1, 4),
        ("a: *x\n", "yaml-alias", 1, 4),
        ("a: &x [*x]\n", "yaml-alias", 1, 8),
        ("a: &x 1\nb: &x 2\n", "yaml-alias", 2, 4),
        ("a: 2024-13-40\n", "yaml-value", 1, 4),
        ("a: !!int +\n", "yaml-value", 1, 4),
        ("a: b\x07\n", "yaml-syntax", 1, None),
        ("? {a: 1}\n: 2\n", "yaml-key", 1, 3),
        ("a: {<<: 3}\n", "yaml-merge", 1, 9),
        (b"a: \xff\n", "file-encoding", 1, None),
        ("a: 1\n".encode("utf-16"), "file-encoding", 1, None),
    ],
)
def test_faults_are_placed(text: str | bytes, code: str, line: int, column: int | None) -> None:
    (finding,) = yamltext.parse(text, "job.yml").findings
    assert (finding.code, finding.file, finding.line) == (code, "job.yml", line)
    assert column is None or finding.column == column


@for_each("text, code", [
        ("[" * 200_000, "yaml-nesting"),
        ("- " * 200_000, "yaml-nesting"),
        ("? " * 200_000, "yaml-nesting"),
        ("a: " + "9" * 100_000, "yaml-value"),
        ("a: " + "9" * 400, "yaml-value"),
        ("a: " + ":".join(["1"] * 2500), "yaml-value"),
        ("a: " + ":".join(["1"] * 2500) + ".5", "yaml-value"),
        ("x" * 10_000_000, "file-too-large"),
        ("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
        ), "yaml-aliases"),
])  # fmt: skip
def test_bombs_end_in_a_finding_at_once(text: str, code: str) -> None:
    start = time.process_time()
    assert [finding.code for finding in yamltext.parse(text).findings] == [code]
    assert time.process_time() - start < 5


def test_a_repeated_key_with_the_same_value_only_warns() -> None:
    (finding,) = yamltext.parse("a: 1\na: 1\n").findings
    assert finding.level == "warning"


def test_places_lead_to_keys_items_and_the_nearest_parent() -> None:
    read = yamltext.parse("a:\n  b: [1, 22]\n  c:\n    d: 1\n")
    assert read.spot(("a", "b")) == (2, 3)
    assert read.spot(("a", "b", 1)) == (2, 10)
    assert read.spot(("a", "c", "d", "nowhere", 4)) == (4, 5)
    assert read.spot(("nowhere",)) == (1, 1)


def test_what_only_one_of_the_two_parsers_takes_is_what_pyyaml_takes() -> None:
    assert yamltext.parse("a: {c:}\n").data == {"a": {"c": None}}
    assert [finding.code for finding in yamltext.parse("a: b\t\n").findings] == ["yaml-tab"]


def test_merged_keys_are_placed_where_they_were_written() -> None:
    read = yamltext.parse("x: &x {a: 1}\ny: {<<: *x, b: 2}\n")
    assert read.data["y"] == {"a": 1, "b": 2}
    assert read.spot(("y", "a")) == (1, 8)


def test_a_file_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    assert [finding.code for finding in yamltext.read(tmp_path / "no.yml").findings] == ["file-unreadable"]
    assert [finding.code for finding in yamltext.read(tmp_path).findings] == ["file-unreadable"]


def test_a_large_file_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "big.yml"
    with path.open("wb") as file:
        file.truncate(10_000_000_000)
    assert [finding.code for finding in yamltext.read(path).findings] == ["file-too-large"]
