"""`python -m amlnode deepspeed` with a stand-in for DeepSpeed's launcher that asks for ssh and pdsh as the real one."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from amlnode.rank import NodeError
from amlnode.remote.command_lines import RemoteCommand, configured, parse, pkill_pattern, results_folder, split, tuned
from amlstack.base.paths import PROJECT
from amlstack.sandbox import processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.timeout(300), pytest.mark.ranks]  # a launcher's processes on each of several nodes


@pytest.mark.parametrize(
    ("program", "words", "hosts", "command", "worst"),
    [
        ("ssh", ["-o", "PasswordAuthentication=no", "node-0", "hostname"], ("node-0",), "hostname", True),
        ("ssh", ["-p", "23", "-oX=y", "-q", "me@node-1", "hostname", "-I"], ("node-1",), "hostname -I", True),
        ("ssh", ["--", "node-1", "ls", "-l"], ("node-1",), "ls -l", True),
        ("pdsh", ["-S", "-f", "1024", "-w", "a,b", "cd /x;", "ls", "-l"], ("a", "b"), "cd /x; ls -l", True),
        ("pdsh", ["-f1024", "-wa,b", "pkill", "-f", "z0"], ("a", "b"), "pkill -f z0", False),
        ("pdsh", ["-R", "ssh", "-w", "a", "-N", "true"], ("a",), "true", False),
    ],
)
def test_command_lines_are_read(
    *, program: str, words: list[str], hosts: tuple[str, ...], command: str, worst: bool
) -> None:
    assert parse(program, words) == RemoteCommand(hosts, command, worst, program == "pdsh")


@pytest.mark.parametrize(
    ("program", "words"), [("ssh", []), ("ssh", ["node-0"]), ("ssh", ["-p"]), ("pdsh", ["true"]), ("pdsh", ["-w", "a"])]
)
def test_command_line_is_refused_without_a_node_or_a_command(program: str, words: list[str]) -> None:
    with pytest.raises(NodeError, match="replaces the real one"):
        parse(program, words)


def test_pdsh_puts_place_and_name_into_the_command() -> None:
    wish = parse("pdsh", ["-w", "a,b", "run --node_rank=%n --as=%h 100%%"])
    assert wish.on("b") == "run --node_rank=1 --as=b 100%"
    assert parse("ssh", ["b", "date +%n"]).on("b") == "date +%n"


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("pkill -f z0_tmbspg1", "z0_tmbspg1"),
        ("pkill -f  python\\ -u\\ x", "python -u x"),
        ("pkill z0", None),
        ("'", None),
    ],
)
def test_cleaning_up_is_known(command: str, pattern: str | None) -> None:
    assert pkill_pattern(command) == pattern


def test_own_options_come_first() -> None:
    words = ["--nproc", "2", "--wait=9", "--autotuning", "tune", "train.py", "--port", "3"]
    assert split(words) == (["--nproc", "2", "--wait=9"], ["--autotuning", "tune", "train.py", "--port", "3"])


@dataclass
class Nodes:
    """A job's nodes, each in a folder of its own, started as Azure ML starts one process per node."""

    folder: Path
    started: list[subprocess.Popen[str]]

    def deepspeed(self, script: str) -> None:
        """Write the script that is `deepspeed` on these nodes."""
        program = self.folder / "bin" / "deepspeed"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/bash\n{script}")
        program.chmod(0o700)

    def start(self, *words: str, nodes: int = 2, only: int | None = None, own: tuple[str, ...] = ()) -> None:
        port = str(processes.free_port())
        for node in range(nodes) if only is None else (only,):
            place = self.folder / f"node{node}"
            place.mkdir()
            environ = {
                "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(PROJECT),
                "TMPDIR": str(self.folder),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
                "WORLD_SIZE": str(nodes),
                "RANK": str(node),
                "NODE_RANK": str(node),
                "LOCAL_RANK": "0",
            }
            self.started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "amlnode", "deepspeed", "--nproc", "2", "--port", str(port), *own, *words],
                    cwd=place,
                    env=environ,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    start_new_session=True,
                )
            )

    def ended(self) -> list[tuple[int, str]]:
        """Exit code and output of each."""
        output = [process.communicate(timeout=240)[0] for process in self.started]
        return [(process.returncode, text) for process, text in zip(self.started, output, strict=True)]

    def pipe(self, name: str) -> Path:
        path = self.folder / name
        os.mkfifo(path)
        return path


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path, [])
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


AS_DEEPSPEED = """
set -e
cat "$2"
ssh -o PasswordAuthentication=no node-0 hostname >/dev/null
echo "master $(ssh node-1 hostname -I)"
pdsh -S -f 1024 -w node-0,node-1 "export A=1; cd $PWD; echo rank %n in \\$(basename \\$PWD) knows \\$A:\\$RANK:"
"""


def test_commands_run_on_each_node_in_its_own_folder_without_its_rank(nodes: Nodes) -> None:
    nodes.deepspeed(AS_DEEPSPEED)
    nodes.start("train.py")
    (first, output), (other, _) = nodes.ended()
    assert (first, other) == (0, 0), output
    for line in (
        "node-0 slots=2\nnode-1 slots=2\n",
        "master 127.0.0.1\n",
        "node-0: rank 0 in node0 knows 1::\n",
        "node-1: rank 1 in node1 knows 1::\n",
    ):
        assert line in output
    assert [path.name for path in nodes.folder.glob("amlnode-*")] == []


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("pdsh -S -w node-0,node-1 'exit $((%n * 7))'", 7),
        ("pdsh -w node-0,node-1 'exit 3'", 0),
        ("ssh node-1 'kill -9 $$'", 137),
        ("ssh node-2 true", 255),
        ("ssh node-1", 255),
    ],
)
def test_the_exit_code_is_the_nodes(nodes: Nodes, command: str, code: int) -> None:
    nodes.deepspeed(command)
    nodes.start("train.py")
    (first, output), (other, _) = nodes.ended()
    assert (first, other) == (code, 0), output


def test_one_node_needs_no_other(nodes: Nodes) -> None:
    nodes.deepspeed("pdsh -S -w node-0 'echo here'")
    nodes.start("train.py", nodes=1)
    ((code, output),) = nodes.ended()
    assert code == 0, output
    assert "node-0: here\n" in output


def test_long_output_arrives_complete(nodes: Nodes) -> None:
    nodes.deepspeed("ssh node-1 'seq 200000' | md5sum; seq 200000 | md5sum")
    nodes.start("train.py")
    output = nodes.ended()[0][1].splitlines()
    assert output[-1] == output[-2]


def test_cleaning_up_ends_what_runs_on_that_node_alone(nodes: Nodes) -> None:
    begun = nodes.pipe("begun")
    loop = f"echo begun > {begun}; exec -a z0_trial sleep infinity"
    nodes.deepspeed(
        f"pdsh -S -w node-1 '{loop}' & cat {begun}; pdsh -w node-0,node-1 pkill -f z0_trial; wait $!; echo ended $?"
    )
    nodes.start("train.py")
    (code, output), _ = nodes.ended()
    assert code == 0, output
    assert "ended 143\n" in output


def test_a_node_that_never_comes_is_named(nodes: Nodes) -> None:
    nodes.deepspeed("true")
    nodes.start("train.py", nodes=3, only=0, own=("--wait", "0.1"))
    ((code, output),) = nodes.ended()
    assert code == 2
    assert "Not here after 0.1 s: node-1, node-2." in output
    assert "Traceback" not in output


def test_other_nodes_fail_when_the_first_never_comes(nodes: Nodes) -> None:
    nodes.start("train.py", only=1, own=("--wait", "0.1"))
    ((code, output),) = nodes.ended()
    assert code == 2
    assert "Node 1 could not reach node 0 at 127.0.0.1:" in output


@pytest.mark.parametrize(("number", "codes"), [(signal.SIGKILL, (-9, 1)), (signal.SIGTERM, (143, 0))])
def test_when_the_first_node_ends_nothing_is_left_on_the_others(
    nodes: Nodes, number: signal.Signals, codes: tuple[int, int]
) -> None:
    begun, held = nodes.pipe("begun"), nodes.pipe("held")
    nodes.deepspeed(f"pdsh -S -w node-1 'exec 3<>{held}; echo begun > {begun}; sleep infinity'")
    nodes.start("train.py")
    assert begun.read_text() == "begun\n"
    nodes.started[0].send_signal(number)
    assert tuple(code for code, _ in nodes.ended()) == codes
    # Opened for writing without waiting: that fails exactly when no process has the pipe open any more.
    with pytest.raises(OSError, match="No such device"):
        os.open(held, os.O_WRONLY | os.O_NONBLOCK)


def test_tuner_fails_with_the_reason_when_it_found_nothing(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = "autotuning_results/profile_model_info"
    nodes.deepspeed(f"mkdir -p {trial}; echo 'ValueError: no such file' > {trial}/stderr.log")
    (nodes.folder / "tabulate.py").write_text("")
    monkeypatch.setattr(sys.modules[__name__], "PROJECT", f"{PROJECT}{os.pathsep}{nodes.folder}")
    nodes.start("--autotuning", "tune", "train.py", nodes=1)
    ((code, output),) = nodes.ended()
    assert code == 1
    assert "no trial gave a result" in output
    assert "ValueError: no such file" in output


def test_what_the_tuner_found_is_kept_and_trained_with(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes.deepspeed(
        'echo "called with ${@:5}"; mkdir -p autotuning_results; '
        "echo '{\"found\": 1}' > autotuning_results/ds_config_optimal.json"
    )
    (nodes.folder / "tabulate.py").write_text("")
    monkeypatch.setattr(sys.modules[__name__], "PROJECT", f"{PROJECT}{os.pathsep}{nodes.folder}")
    nodes.start("--autotuning=run", "train.py", "--deepspeed_config", "ds.json", nodes=1)
    ((code, output),) = nodes.ended()
    assert code == 0, output
    assert 'the best configuration: {"found": 1}' in output
    assert "called with --autotuning tune train.py --deepspeed_config ds.json\n" in output
    best = base64.urlsafe_b64encode(b'{"found": 1}').decode()
    assert f"called with train.py --deepspeed_config {best}\n" in output
    assert (nodes.folder / "node0/outputs/autotuning_results/ds_config_optimal.json").is_file()


def test_mlflow_is_out_of_the_tuners_sight_alone(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    (nodes.folder / "real").mkdir()
    (nodes.folder / "real" / "mlflow.py").write_text("here = True\n")
    monkeypatch.setattr(sys.modules[__name__], "PROJECT", f"{PROJECT}{os.pathsep}{nodes.folder / 'real'}")
    nodes.deepspeed("")
    (nodes.folder / "bin" / "deepspeed").write_text(
        f"#!{sys.executable}\nimport subprocess, sys\n"
        "try:\n    import mlflow\nexcept ImportError as error:\n    print(error, flush=True)\n"
        "subprocess.run([sys.executable, '-c', 'import mlflow; print(mlflow.here)'], check=True)\n"
    )
    nodes.start("train.py", nodes=1)
    ((code, output),) = nodes.ended()
    assert code == 0, output
    assert "does without MLflow\nTrue\n" in output


def test_tuners_options_are_taken_out() -> None:
    assert tuned(["--autotuning", "run", "t.py", "-a"]) == ("run", ["t.py", "-a"])
    assert tuned(["--no_ssh", "--autotuning=tune", "t.py"]) == ("tune", ["--no_ssh", "t.py"])


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (
            ["t.py", "--deepspeed", "--deepspeed_config", "a.json"],
            ["t.py", "--deepspeed", "--deepspeed_config", "e30="],
        ),
        (["t.py", "--deepspeed_config=a.json"], ["t.py", "--deepspeed_config=e30="]),
        (["t.py", "--deepspeed", "a.json", "--x"], ["t.py", "--deepspeed", "e30=", "--x"]),
        (["t.py"], ["t.py"]),
    ],
)
def test_the_configuration_that_was_found_goes_along(words: list[str], now: list[str]) -> None:
    assert configured(words, {}) == now


def test_the_configuration_names_the_tuners_folder(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text('{"autotuning": {"results_dir": "outputs/tuned"}}')
    assert str(results_folder(["t.py", "--deepspeed", str(file)])) == "outputs/tuned"
    assert str(results_folder(["t.py"])) == "autotuning_results"


def test_first_node_fails_when_the_image_lacks_deepspeed(nodes: Nodes) -> None:
    nodes.start("train.py", nodes=1)
    ((code, output),) = nodes.ended()
    assert code == 2
    assert "no `deepspeed` on PATH" in output
    assert "pip install deepspeed" in output
