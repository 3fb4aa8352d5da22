"""A Python job file runs in the process that reads it, and neither ends it nor takes its input and output."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

import jobs
from jobs.pythonfiles.refusals import CREDENTIALS, NETWORK, PROCESS
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

JOB = "from jobs import Job\njob = Job(command='echo', environment='azureml:e:1')\n"
ENDS = {
    "os._exit": "import os\nos._exit(0)\n",
    "os.abort": "import os\nos.abort()\n",
    "os.kill": "import os\nos.kill(os.getpid(), 9)\n",
    "os.killpg": "import os\nos.killpg(0, 9)\n",
    "os.execv": "import os\nos.execv('/bin/true', ['true'])\n",
    "os.execve": "import os\nos.execlpe('true', 'true', {})\n",
    "signal.raise_signal": "import signal\nsignal.raise_signal(9)\n",
}


def codes(path: Path, text: str) -> list[str]:
    path.write_text(text)
    return [finding.code for finding in jobs.load(path).findings]


@for_each("call", ENDS)
def test_a_call_that_would_end_the_process_is_a_finding_with_its_line(call: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(ENDS[call])
    (found,) = jobs.load(tmp_path / "job.py").findings
    assert (found.code, found.line) == ("python-ends-process", 2)
    assert f"`{call}`" in found.seen


def test_a_call_that_the_file_catches_is_a_finding_all_the_same(tmp_path: Path) -> None:
    text = f"import os\ntry:\n    os._exit(0)\nexcept BaseException:\n    pass\n{JOB}"
    assert codes(tmp_path / "job.py", text) == ["python-ends-process"]


def test_a_signal_that_only_asks_is_none(tmp_path: Path) -> None:
    assert codes(tmp_path / "job.py", f"import os\nos.kill(os.getpid(), 0)\n{JOB}") == []


REFUSED = {
    "import socket\nsocket.create_connection(('127.0.0.1', 9))": NETWORK,
    "import socket\nwith socket.socket(type=socket.SOCK_DGRAM) as s: s.sendto(b'x', ('127.0.0.1', 9))": NETWORK,
    "import urllib.request\nurllib.request.urlopen('http://localhost:9')": NETWORK,
    "import subprocess\nsubprocess.run(['touch', MARK])": PROCESS,
    "import os\nos.system(f'touch {MARK}')": PROCESS,
    "import os\nos.fork() or os._exit(3)": PROCESS,
    "import os\nos.posix_spawn('/bin/touch', ['touch', MARK], {})": PROCESS,
    "import _posixsubprocess, subprocess\nsubprocess.Popen(['touch', MARK])": PROCESS,
    "open('/proc/self/environ').read()": CREDENTIALS,
    "import os\nopen(f'/proc/{os.getppid()}/environ').read()": CREDENTIALS,
    "open(TOKEN).read()": CREDENTIALS,
    "import pathlib\n(pathlib.Path.home() / '.azure' / 'msal_token_cache.json').read_text()": CREDENTIALS,
}


@pytest.mark.parametrize("call", REFUSED)
def test_a_file_reaches_nothing_while_it_is_read(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, mark = tmp_path / "federated", tmp_path / "mark"
    token.write_text("secret")
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(token))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "job.py").write_text(f"MARK, TOKEN = {str(mark)!r}, {str(token)!r}\n{call}\n")
    (found,) = jobs.load(tmp_path / "job.py").findings
    assert (found.code, found.line) == (REFUSED[call], 2 + call.count("\n"))
    assert '`if __name__ == "__main__":`' in found.remedy
    assert not mark.exists()


def test_a_refused_call_that_the_file_catches_is_named_and_not_made(tmp_path: Path) -> None:
    tried = "try:\n    {}\nexcept BaseException:\n    pass\n"
    process = tried.format(f"__import__('os').system('touch {tmp_path / 'mark'}')")
    loaded = jobs.load(written(tmp_path, process + JOB))
    assert ([one.code for one in loaded.findings], len(loaded.jobs), loaded.ok) == (["python-starts-process"], 1, True)
    assert not (tmp_path / "mark").exists()
    network = tried.format("__import__('socket').create_connection(('127.0.0.1', 9))")
    loaded = jobs.load(written(tmp_path, network + JOB))
    assert ([one.code for one in loaded.findings], loaded.jobs) == (["python-uses-network"], ())


def written(folder: Path, text: str) -> Path:
    (folder / "job.py").write_text(text)
    return folder / "job.py"


SECRETS = (
    "PULUMI_CONFIG", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_ACCESS_TOKEN", "ARM_CLIENT_SECRET", "AZURE_CLIENT_ID",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "IDENTITY_HEADER", "MSI_SECRET", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN",
    "idToken",
)  # fmt: skip


def test_a_file_sees_no_secret_of_its_reader_who_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, f"of {name}")
    monkeypatch.setenv("TEAM_DATA", "kept")
    seen = f"import os, pathlib\npathlib.Path({str(tmp_path / 'seen')!r}).write_text(repr(dict(os.environ)))\n"
    assert codes(tmp_path / "job.py", seen + JOB) == []
    text = (tmp_path / "seen").read_text()
    assert [name for name in SECRETS if f"of {name}" in text] == []
    assert "'TEAM_DATA': 'kept'" in text
    assert [os.environ[name] for name in SECRETS] == [f"of {name}" for name in SECRETS]


def test_helpers_and_files_beside_a_job_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "helper_of_a_job.py").write_text("COMMAND = 'echo'\n")
    (tmp_path / "nodes.json").write_text("2")
    text = "import json, pathlib\nimport helper_of_a_job as h\nfrom jobs import Job\n"
    text += "nodes = json.loads((pathlib.Path(__file__).parent / 'nodes.json').read_text())\n"
    text += "job = Job(command=f'{h.COMMAND} {nodes}', environment='azureml:e:1')\n"
    assert codes(tmp_path / "job.py", text) == []


RAISES = [
    "import sys\nsys.exit(0)\n",
    "raise GeneratorExit\n",
    "class E(BaseException): pass\nraise E\n",
    "class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n",
    "input('name? ')\n",
    "import sys\nsys.stdin.read()\n",
    "import sys\nfor line in sys.stdin: pass\n",
    "def f(): f()\nf()\n",
]


@for_each("text", RAISES)
def test_whatever_a_file_raises_is_a_finding(text: str, tmp_path: Path) -> None:
    assert codes(tmp_path / "job.py", text) == ["python-raised"]


def test_what_a_file_prints_goes_to_standard_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = f"import os\nprint('its own')\nos.write(1, b'past the stream\\n')\n{JOB}"
    assert codes(tmp_path / "job.py", text) == []
    out, err = capfd.readouterr()
    assert out == ""
    assert {"its own", "past the stream"} <= set(err.splitlines())


def test_what_a_file_changes_of_paths_is_undone(tmp_path: Path) -> None:
    before = (list(sys.path), os.getcwd(), os._exit, sys.stdin)  # noqa: PTH109
    text = f"import os, sys\n{JOB}os.chdir('/')\nsys.path.clear()\n"
    assert codes(tmp_path / "job.py", text) == []
    assert (sys.path, os.getcwd(), os._exit, sys.stdin) == before  # noqa: PTH109
