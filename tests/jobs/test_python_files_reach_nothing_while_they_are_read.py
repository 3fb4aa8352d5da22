"""A Python job file that is only read signs in nowhere, sends nothing, starts nothing, and sees no credential."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import jobs
from amlstack.cli.main import main
from jobs.pythonfiles.refusals import CREDENTIALS, NETWORK, PROCESS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The modules of azure.ai.ml warn of others at their import, and a job file's garbage is its own.
pytestmark = pytest.mark.filterwarnings("ignore")
REFUSED = (CREDENTIALS, NETWORK, PROCESS)
SECRET = "s3cr3t-0123456789-abcdef"
JOB = "from jobs import Job\njob = Job(command='echo', environment='azureml:e:1', limits={'timeout': 60})\n"
SDK = (
    "from azure.ai.ml import MLClient, command\nfrom azure.identity import DefaultAzureCredential\n"
    "client = MLClient(DefaultAzureCredential(), 's', 'g', 'w')\n"
    "training = command(command='echo', environment='azureml:e:1', compute='c')\n"
)

ATTEMPTS = {
    "socket": (
        "import socket\nfrom pathlib import Path\nsocket.create_connection(('127.0.0.1', PORT))\n",
        3,
        "look up `127.0.0.1`",
    ),
    "connect": (
        "import socket\nwith socket.socket() as s: s.connect(('127.0.0.1', PORT))\n",
        2,
        "connect to `127.0.0.1:PORT`",
    ),
    "connect_ex": (
        "import socket\nwith socket.socket() as s: s.connect_ex(('127.0.0.1', PORT))\n",
        2,
        "connect to `127.0.0.1:",
    ),
    "datagram": (
        "import socket\nwith socket.socket(type=socket.SOCK_DGRAM) as s: s.sendto(b'x', ('127.0.0.1', 9))\n",
        2,
        "connect to `127.0.0.1:9`",
    ),
    "listening": ("import socket\nwith socket.socket() as s: s.bind(('0.0.0.0', 0))\n", 2, "listen at `0.0.0.0:0`"),
    "name service": ("import socket\nsocket.gethostbyname('secret.example')\n", 2, "look up `secret.example`"),
    "urllib": ("import urllib.request\nurllib.request.urlopen('http://localhost:PORT')\n", 2, "look up `localhost`"),
    "requests": ("import requests\nrequests.get('http://localhost:PORT', timeout=9)\n", 2, "look up `localhost`"),
    "asyncio": (
        "import asyncio\nasync def go():\n    await asyncio.open_connection('127.0.0.1', PORT)\nasyncio.run(go())\n",
        3,
        "connect to `127.0.0.1:PORT`",
    ),
    "token": (
        (
            "from azure.identity import DefaultAzureCredential\n"
            "DefaultAzureCredential().get_token('https://management.azure.com/.default')\n"
        ),
        2,
        "",
    ),
    "sign-in": (
        "from azure.identity import DefaultAzureCredential as Own\nOwn().get_token('https://management.azure.com/.x')\n",
        2,
        "look up `169.254.169.254`",
    ),
    "subprocess": ("import subprocess\nsubprocess.run(['touch', 'started'])\n", 2, "start the process `touch`"),
    "shell": ("import subprocess\nsubprocess.run('touch started', shell=True)\n", 2, "start the process `/bin/sh`"),
    "a harmless name": (
        "import os, subprocess\nos.environ['PATH'] = os.getcwd()\nsubprocess.run(['uname', '-p'])\n",
        3,
        "start the process `uname`",
    ),
    "os.system": ("import os\nos.system('touch started')\n", 2, "start the process `touch`"),
    "os.popen": ("import os\nos.popen('touch started').read()\n", 2, "start the process `/bin/sh`"),
    "os.posix_spawn": ("import os\nos.posix_spawn('/bin/true', ['true'], {})\n", 2, "start the process `/bin/true`"),
    "os.fork": ("import os\nos.fork() or open('started', 'w').close()\n", 2, "fork this process"),
    "pty": ("import pty\npty.spawn(['touch', 'started'])\n", 2, "start the process `touch`"),
    "multiprocessing": (
        "import multiprocessing as m\nm.get_context('spawn').Process(target=print).start()\n",
        2,
        "start a process",
    ),
    "C library": ("import ctypes\nctypes.CDLL(None).system(b'touch started')\n", 2, "call `system` of the C library"),
    "thread": (
        "import threading\nthreading.Thread(target=lambda: open('started', 'w').close()).start()\n",
        2,
        "start a thread",
    ),
    "bare thread": ("import _thread\n_thread.start_new_thread(print, ())\n", 2, "start a thread"),
    "variable": (
        "import os, pathlib\npathlib.Path('leak').write_text(os.environ['PULUMI_CONFIG'])\n",
        2,
        "see the variable `PULUMI_CONFIG`",
    ),
    "variable with a default": ("import os\nkey = os.getenv('HF_TOKEN', '')\n", 2, "the variable `HF_TOKEN`"),
    "own variables": (
        "import pathlib as p\np.Path('leak').write_text(p.Path('/proc/self/environ').read_text())\n",
        2,
        "open `/proc/self/environ`",
    ),
    "parent's variables": (
        "import os, pathlib as p\np.Path(f'/proc/{os.getppid()}/task/{os.getppid()}/environ').read_text()\n",
        2,
        "where credentials are kept",
    ),
    "tokens of az": (
        "from pathlib import Path\nx = (Path.home() / '.azure' / 'msal_token_cache.json').read_text()\n",
        2,
        "msal_token_cache.json`, where credentials are kept",
    ),
    "tokens of az from an open folder": (
        (
            "import os\nhome = os.open(os.path.expanduser('~'), os.O_RDONLY)\n"
            "os.open('.azure/msal_token_cache.json', os.O_RDONLY, dir_fd=home)\n"
        ),
        3,
        "msal_token_cache.json`, where credentials are kept",
    ),
    "another interpreter": (
        'import _xxsubinterpreters as x\nx.run_string(x.create(), \'open("started", "w")\')\n',
        2,
        "start an interpreter",
    ),
    "tokens of az by a link": (
        "import os\nos.symlink(os.path.expanduser('~/.azure'), 'link')\nopen('link/msal_token_cache.json')\n",
        3,
        "open `link/msal_token_cache.json`",
    ),
    "tokens of az by the folder": (
        "import os\nos.chdir(os.path.expanduser('~/.azure'))\nopen('msal_token_cache.json')\n",
        3,
        "open `msal_token_cache.json`",
    ),
    "a file that a variable names": (
        "from pathlib import Path\nx = Path('PASSPHRASE_FILE').read_text()\n",
        2,
        "where credentials are kept",
    ),
    "checkout's token": ("open('.git/config').read()\n", 1, "open `.git/config`"),
    "configuration of the stack": ("import pulumi\nx = pulumi.Config().get('secret')\n", 1, "import `pulumi`"),
    "engine by its module's name": ("import importlib\nimportlib.import_module('grpc')\n", 2, "import `grpc`"),
}
"""A file, the line in it, and what the finding says."""


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A home with credentials, and a service that leaves a file when anything reaches it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("PULUMI_CONFIG", "HF_TOKEN", "AZURE_CLIENT_SECRET", "ARM_CLIENT_SECRET", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, SECRET)
    (tmp_path / "passphrase").write_text(SECRET)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(tmp_path / "passphrase"))
    for store in ("home/.azure/msal_token_cache.json", ".git/config"):
        (tmp_path / store).parent.mkdir(parents=True)
        (tmp_path / store).write_text(SECRET)
    (tmp_path / "uname").write_text("#!/bin/sh\ntouch started\n")
    (tmp_path / "uname").chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield int(server.getsockname()[1])
        with pytest.raises(BlockingIOError):
            server.accept()


def written(folder: Path, text: str, port: int = 0) -> Path:
    file = folder / "job.py"
    file.write_text(text.replace("PORT", str(port)).replace("PASSPHRASE_FILE", str(folder / "passphrase")) + JOB)
    return file


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_what_reaches_out_is_refused_at_check_and_named_with_its_line(
    attempt: str, port: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text, line, says = ATTEMPTS[attempt]
    written(tmp_path, text, port)
    assert main(["check", "job.py", "--json"]) == 1
    out, err = capfd.readouterr()
    found = [each for each in json.loads(out)["files"][0]["findings"] if each["code"] in REFUSED]
    assert [(each["line"], says.replace("PORT", str(port)) in each["seen"]) for each in found] == [(line, True)], out
    assert '__name__ == "__main__"' in found[0]["remedy"]
    assert not (tmp_path / "started").exists()
    assert not (tmp_path / "leak").exists() or SECRET not in (tmp_path / "leak").read_text()
    assert SECRET not in out + err


@pytest.mark.parametrize("caught", ["except BaseException:\n    pass\n", "finally:\n    job = None\n"])
def test_an_attempt_that_the_file_hides_is_a_finding_all_the_same(caught: str, port: int, tmp_path: Path) -> None:
    file = written(tmp_path, f"import socket\ntry:\n    socket.create_connection(('127.0.0.1', PORT))\n{caught}", port)
    (found,) = jobs.load(file).findings
    assert (found.code, found.line) == (NETWORK, 3)


def test_a_neighbour_that_is_imported_may_do_no_more(port: int, tmp_path: Path) -> None:
    (tmp_path / "a_neighbour_that_calls.py").write_text(f"import socket\nsocket.gethostbyname('localhost:{port}')\n")
    (found,) = jobs.load(written(tmp_path, "import a_neighbour_that_calls\n")).findings
    assert (found.code, found.line) == (NETWORK, 1)


def test_a_trusted_file_is_read_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEAM_TOKEN", SECRET)
    (tmp_path / "job.py").write_text(f"import os, subprocess\nsubprocess.run([os.environ and 'true'])\n{JOB}")
    for more, status in (([], 1), (["--trust"], 0)):
        assert main(["check", str(tmp_path / "job.py"), "--json", *more]) == status, capsys.readouterr().out


@pytest.mark.usefixtures("port")
def test_a_file_may_write_the_yaml_of_its_objects_itself(tmp_path: Path) -> None:
    (tmp_path / "write.py").write_text(f"{SDK}training._to_job().dump('job.yml')\n{JOB}")
    assert jobs.load(tmp_path / "write.py").findings == ()
    loaded = jobs.load(tmp_path / "job.yml")
    assert loaded.ok
    assert [job.command for job in loaded.jobs] == ["echo"]


@pytest.mark.usefixtures("port")
def test_a_job_file_does_what_a_declaration_needs(tmp_path: Path) -> None:
    (tmp_path / "sizes_of_ours.py").write_text("import json\nNODES = json.load(open('nodes.json'))\n")
    (tmp_path / "nodes.json").write_text("2")
    text = (
        "import asyncio, os, platform, requests, socket, sqlite3, tempfile, urllib.request\n"
        "from pathlib import Path\nfrom azure.ai.ml import Input, command\nfrom sizes_of_ours import NODES\n"
        "assert Path(__file__).read_text() and os.environ['HOME'] and os.environ.get('NOT_THERE_TOKEN') is None\n"
        "assert os.environ['ARM_SUBSCRIPTION_ID'] and os.environ['TOKENIZERS_PARALLELISM']\n"
        "Path(tempfile.mkdtemp(), 'x').write_text('x')\nsqlite3.connect(':memory:').close()\n"
        "assert asyncio.run(asyncio.sleep(0, 7)) == 7\nleft = Input(path='azureml:data:1')\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARM_SUBSCRIPTION_ID", "an id is no secret")
        patch.setenv("TOKENIZERS_PARALLELISM", "false")
        assert jobs.load(written(tmp_path, text)).findings == ()


@pytest.mark.usefixtures("port")
def test_what_a_file_changes_of_the_environment_and_of_python_is_undone(tmp_path: Path) -> None:
    before = dict(os.environ)
    text = (
        "import os\nos.environ.update(HTTPS_PROXY='http://there', PULUMI_HOME='/x', GITHUB_TOKEN='x')\n"
        "os.environ.pop('HOME')\nos.environ = {}\n"
    )
    kept = (os.environ, __import__, threading.Thread.start, type(os.environ).__getitem__)
    assert jobs.load(written(tmp_path, text)).findings == ()
    assert dict(os.environ) == before
    assert (os.environ, __import__, threading.Thread.start, type(os.environ).__getitem__) == kept


def test_what_a_file_leaves_for_the_end_of_the_process_is_refused_too(port: int, tmp_path: Path) -> None:
    written(
        tmp_path,
        "import atexit, os, socket\natexit.register(socket.create_connection, ('127.0.0.1', PORT))\n"
        "atexit.register(os.system, 'touch started')\n"
        "atexit.register(lambda: open('leak', 'w').write(os.environ.get('HF_TOKEN', 'none')))\n",
        port,
    )
    program = "import jobs; assert jobs.load('job.py').ok"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "leak").read_text() == "none"
    assert not (tmp_path / "started").exists()


@pytest.mark.usefixtures("port")
def test_other_threads_of_this_process_go_on_while_a_file_is_read(tmp_path: Path) -> None:
    """A program of a stack speaks to the engine from threads of its own."""
    ready, answered = tmp_path / "ready", tmp_path / "answered"
    failed: list[BaseException] = []
    os.mkfifo(ready)
    os.mkfifo(answered)

    def beside() -> None:
        try:
            with ready.open():
                pass
            with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
                threading.Thread(target=len, args=("",)).start()
        except BaseException as error:  # noqa: BLE001 - it is the assertion
            failed.append(error)
        with answered.open("w"):
            pass

    thread = threading.Thread(target=beside)
    thread.start()
    loaded = jobs.load(written(tmp_path, "open('ready', 'w').close()\nopen('answered').close()\n"))
    thread.join()
    assert (loaded.findings, failed) == ((), [])


GROUP = ("--resource-group", "g", "--subscription", "00000000-0000-0000-0000-000000000000")


@pytest.mark.parametrize(
    "verb", [["show", "job.py"], ["rehearse", "job.py", "--dry-run"], ["submit", "job.py", "--workspace", "w", *GROUP]]
)
@pytest.mark.usefixtures("port")
def test_the_other_verbs_that_read_a_file_refuse_the_same(
    verb: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, "import os\ntoken = os.environ.get('GITHUB_TOKEN')\nos.system('touch started')\n")
    assert main(verb) != 0
    shown = "".join(capfd.readouterr())
    assert "job.py:2: error [python-reads-credentials]" in shown, shown
    assert "job.py:3: error [python-starts-process]" in shown
    assert not (tmp_path / "started").exists()
