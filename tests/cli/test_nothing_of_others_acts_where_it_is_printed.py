"""Names, logs and messages of others: what a terminal or a CI's runner acts on is shown, and does nothing."""

from __future__ import annotations

import ast
import functools
import io
import json
import os
import socket
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base import text as text_module
from amlstack.base.findings import Finding
from amlstack.cli import console, doctor
from amlstack.cli.console import Progress
from amlstack.cli.logs.files import Tail
from amlstack.cli.main import main
from tests.support.cli.hostile import HOSTILE, acting
from tests.support.rows import for_each
from tests.support.source_trees import tree_of

if TYPE_CHECKING:
    from collections.abc import Callable

CLI = Path(console.__file__).parent


@pytest.mark.parametrize("name", HOSTILE)
def test_what_acts_is_shown_by_say_json_findings_progress_and_tables(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = HOSTILE[name]
    finding = Finding("some-code", f"at {hostile}", f"message {hostile}", "", file=f"f{hostile}.yml")
    progress = Progress()
    progress._coloured = True
    console.say(f"a {hostile} b")
    console.say(hostile, err=True, colours=True)
    console.say(console.style(hostile, "red", bold=True))
    console.say("\n".join(console.columns([[hostile, "x"], ["y", hostile]])))
    console.print_findings([finding])
    console.print_json({hostile: [hostile]})
    progress.step(hostile)
    progress.console.print(hostile, markup=False)
    console.tables().print(hostile, markup=False)
    shown = capsys.readouterr()
    assert acting(shown.out) == acting(shown.err) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_json_says_the_same_by_its_own_escapes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    value = {HOSTILE[name]: [HOSTILE[name], "häßlich ✓"]}
    console.print_json(value)
    shown = capsys.readouterr().out
    assert json.loads(shown) == value
    assert "häßlich ✓" in shown
    assert acting(shown) == []


def test_our_own_colours_stay_and_those_of_others_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    console.say(f"{console.style('ours', 'red')} \x1b[32mtheirs\x1b[0m", colours=True)
    assert capsys.readouterr().out == "\x1b[31mours\x1b[0m \\x1b[32mtheirs\\x1b[0m\n"


def test_letters_that_join_and_emoji_and_line_ends_stay() -> None:
    text = "\u0645\u06cc\u200c\u062e 👩\u200d👩 naïve\ttab\r\nnext\n"
    assert text_module.text(text) == text


def test_a_name_with_a_line_end_stays_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_findings([Finding("c", "k\nl", "first\nsecond.yml: error: other", "", file="a\nb.yml")])
    assert capsys.readouterr().out == "a\\nb.yml: error: k\\nl [c]\n    first\n    second.yml: error: other.\n"


@for_each(
    "hostile, shown",
    [
        ("::error::x", ": :error::x"),
        ("a\n \t::set-output name=a::b", "a\n \t: :set-output name=a::b"),
        ("in a line ##vso[task.setvariable]", "in a line # #vso[task.setvariable]"),
        ("##\u00adv\u200dso[task]", "# #\u00adv\u200dso[task]"),
        ("##[add-mask]x ##[warning]", "# #[add-mask]x # #[warning]"),
        ("## a heading, a::b and #[attribute]", "## a heading, a::b and #[attribute]"),
    ],
)
def test_no_line_is_a_command_of_a_ci(hostile: str, shown: str) -> None:
    assert text_module.output(hostile) == shown


def test_what_writes_to_the_stream_itself_is_shielded() -> None:
    stream = io.StringIO()
    shield = text_module.Shield(stream)
    print("\x1b[31mred\x1b[0m \x1b]52;c;AAAA\x07 \x9b2J", file=shield)
    assert stream.getvalue() == "\x1b[31mred\x1b[0m \\x1b]52;c;AAAA\\x07 \\x9b2J\n"


def test_of_a_bar_of_progress_the_last_state_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\r 10%|#   |\r 90%|### |\r100%|####|\r\nnext\r\n\r\x1b]0;x\x07\n")
    assert Tail(log).lines() == ["100%|####|", "next", "\x1b]0;x\x07"]


def test_no_module_of_the_command_line_prints_past_the_console() -> None:
    past = [
        f"{path.relative_to(CLI)}:{node.lineno}: {ast.unparse(node.func)}"
        for path in sorted(CLI.rglob("*.py"))
        if path.name not in {"console.py", "main.py"}
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and _prints(ast.unparse(node.func))
    ]
    assert past == [], "print by amlstack.cli.console: say, print_json, print_findings, tables"


def _prints(function: str) -> bool:
    last = function.rpartition(".")[2]
    of_typer = function.startswith(("typer.", "click.")) and last in {"echo", "secho", "style"}
    of_streams = last == "write" and ("stdout" in function or "stderr" in function)
    return of_typer or of_streams or function in {"print", "pprint", "Console", "rich.print"} or last == "Console"


def check(folder: Path, hostile: str) -> list[list[str]]:
    name = "".join(c for c in hostile if c not in "/\0")
    fields = {"command": f"echo {hostile}", hostile: 1, "display_name": hostile, "compute": f"azureml:{hostile}"}
    file = folder / f"j{name}.yml"
    file.write_text(yaml.safe_dump(fields), "utf-8")
    return [["check", str(file)], ["check", str(file), "--format", "sarif"], ["check", str(folder / f"no{name}.yml")]]


def show(folder: Path, hostile: str) -> list[list[str]]:
    fields = {
        "command": f"echo '{hostile}'", "display_name": hostile, "environment": "azureml:a:1",
        "tags": {hostile: hostile},
        "compute": "azureml:gpu", "environment_variables": {"A": hostile},
    }  # fmt: skip
    file = folder / "job.yml"
    file.write_text(yaml.safe_dump(fields, allow_unicode=True), "utf-8")
    size = ["--size", "Standard_ND96isr_H100_v5"]
    return [["show", str(file), *size, "--as", form] for form in ("plan", "arm", "yaml", "command")]


def diagnose(folder: Path, hostile: str) -> list[list[str]]:
    logs = folder / "user_logs"
    logs.mkdir()
    trace = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: {hostile}\n{hostile}\n'
    (logs / "std_log_process_00.txt").write_bytes(trace.encode("utf-8", "surrogatepass"))
    packed = folder / "logs.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        data = trace.encode("utf-8", "surrogatepass")
        entry = tarfile.TarInfo(f"user_logs/{hostile}/std_log_process_00.txt")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return [
        ["diagnose", str(logs)],
        ["diagnose", str(packed)],
        ["diagnose", str(logs), "--json"],
        ["diagnose", hostile],
    ]


def report(folder: Path, hostile: str) -> list[list[str]]:
    return [["report", diagnose(folder, hostile)[0][1], "--output", str(folder / "page.html")]]


def migrate(folder: Path, hostile: str) -> list[list[str]]:
    program = f"from azureml.core import ScriptRunConfig\nScriptRunConfig({hostile!r}, command={hostile!r})\n"
    (folder / "old.py").write_bytes(program.encode("utf-8", "surrogatepass"))
    return [["migrate", str(folder / "old.py"), *form] for form in ([], ["--json"], ["--markdown"])] + [
        ["migrate", hostile]
    ]


def rehearse(folder: Path, hostile: str) -> list[list[str]]:
    file = show(folder, hostile)[0][1]
    return [["rehearse", file, "--dry-run"], ["rehearse", f"{file}{hostile}", "--dry-run"]]


def named(verb: str, *rest: str) -> Callable[[Path, str], list[list[str]]]:
    """A verb that is told a hostile name."""
    return lambda _folder, hostile: [[verb, *rest, hostile]]


OFFLINE: dict[str, Callable[[Path, str], list[list[str]]]] = {
    "check": check, "show": show, "diagnose": diagnose, "report": report, "rehearse": rehearse, "migrate": migrate,
    "sizes": named("sizes"), "environments": named("environments"), "schema": named("schema"),
    "policy": named("policy", "list", "--config"), "gitops": named("gitops", "comment"),
    "prove": named("prove", "--only"),
    "sandbox": named("sandbox", "evict"), "import-ids": named("import-ids"), "drift": named("drift"),
    "init": named("init", "--yes", "--name"), "upgrade": named("upgrade"), "graph": named("graph", "--stack"),
    "add": named("add", "stack", "more", "--like"), "doctor": named("doctor", "--stack"),
    "up": named("up", "--stack"), "down": named("down", "--stack"), "submit": named("submit"),
}  # fmt: skip
OF_A_WORKSPACE = {"status", "compare", "resubmit", "logs", "cancel", "download", "open", "shell", "forward"}
"""Asked of a service, with hostile answers, in ``test_jobs_of_a_workspace``."""


def test_every_verb_is_tried() -> None:
    from amlstack.cli.main import VERBS

    assert set(OFFLINE) | OF_A_WORKSPACE == set(VERBS)


@pytest.mark.parametrize("verb", OFFLINE)
def test_no_verb_lets_hostile_text_act(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    machine = functools.cache(lambda looks=doctor.machine: list(looks()))
    monkeypatch.setattr(doctor, "machine", machine)  # the same for each text: it starts half a dozen tools
    for number, hostile in enumerate(HOSTILE.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        for words in OFFLINE[verb](folder, hostile.replace("\0", "")):
            main([word.encode("utf-8", "replace").decode() for word in words])
            shown = capsys.readouterr()
            assert acting(shown.out) == acting(shown.err) == [], words


@pytest.mark.parametrize("suffix", [".yml", ".py"])
@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "folder"])
def test_what_is_no_file_is_a_finding_and_not_waited_for(
    kind: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(f"job{suffix}")
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "pipe":
            os.mkfifo(file)
        elif kind == "device":
            file.symlink_to("/dev/zero")
        elif kind == "socket":
            listener.bind(str(file))
        else:
            file.mkdir()
        for words in (["check", str(file)], ["show", str(file)], ["rehearse", str(file), "--dry-run"]):
            assert main(words) in {1, 2}
            shown = capsys.readouterr()
            assert "[file-unreadable]" in shown.out + shown.err


def test_findings_beside_the_code_stay_commands_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "job.yml"
    file.write_text(yaml.safe_dump({"command": "x", "a\n::stop-commands::x\x1b]0;t\x07": 1}), "utf-8")
    assert main(["check", str(file), "--format", "github"]) == 1
    lines: list[Any] = capsys.readouterr().out.splitlines()
    assert any(line.startswith("::error ") for line in lines)
    assert not any(line.startswith("::stop") or "\x1b" in line for line in lines)
