"""The console script: help at once, wrong use reported, verbs found in a table."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from importlib import import_module

import pytest
from typer.testing import CliRunner

from amlstack.cli.main import VERBS, app_of, main
from tests.support.rows import for_each


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    result = capsys.readouterr().out
    for name, verb in VERBS.items():
        assert f"  {name} " in result
        assert verb.help in result


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_is_there_and_helps(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module, _, attribute = VERBS[name].target.partition(":")
    assert hasattr(import_module(module), attribute)
    assert main([name, "--help"]) == 0
    assert "Usage:" in capsys.readouterr().out


@for_each("name", VERBS)
def test_80_columns_without_colour_say_what_a_wide_screen_says(name: str) -> None:
    """Lines are broken, words may be; nothing is cut off."""
    app = app_of(VERBS[name])
    several = len(app.registered_commands) > 1
    for below in [
        [],
        *([one.name or getattr(one.callback, "__name__", "")] for one in app.registered_commands if several),
    ]:
        narrow, wide = (
            CliRunner().invoke(app, [*below, "--help"], env={"COLUMNS": f"{columns}", "NO_COLOR": "1"}).output
            for columns in (80, 400)
        )
        assert [line for line in narrow.splitlines() if len(line) > 80] == []
        assert "\x1b" not in narrow
        assert Counter(re.sub(r"[\s─-╿]", "", narrow)) == Counter(re.sub(r"[\s─-╿]", "", wide)), narrow


def test_the_short_option_helps_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-h"]) == main(["sandbox", "up", "-h"]) == 0
    assert capsys.readouterr().out.count("Usage:") == 2


def test_an_unknown_verb_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chek"]) == 2
    assert "Did you mean `check`?" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["check"], ["check", "--nonsense"], ["show", "a.yml", "--as", "xml"]])
def test_wrong_use_is_two_without_a_traceback(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    result = capsys.readouterr()
    assert "Usage:" in result.err
    assert "Traceback" not in result.err + result.out


def test_help_imports_neither_typer_nor_a_verb() -> None:
    code = (
        "import sys\nfrom amlstack.cli.main import main\nassert main(['--help']) == 0\n"
        "loaded = {'typer', 'rich', 'pydantic', 'jobs', 'yaml'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_verbs_help_imports_the_models_of_jobs() -> None:
    code = (
        "import sys\nfrom amlstack.cli.main import VERBS, main\n"
        "for verb in VERBS:\n    assert main([verb, '--help']) == 0\n    assert 'pydantic' not in sys.modules, verb\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
