"""The verbs on jobs of a workspace. They know an endpoint by their environment and no more."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.sandbox.runner import namespace
from tests.support.cli.cutting_proxy import CuttingProxy
from tests.support.cli.hostile import HOSTILE, acting
from tests.support.cli.verbs import Verbs, ended
from tests.support.running import running_sandbox
from tests.support.sandbox.injected_faults import CUT_STORED, THROTTLED, inject, injected
from tests.support.sandbox.sandbox_client import Arm
from tests.support.stack.small_jobs import IMAGE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Sandbox

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(600)]

PYTORCH = {"type": "pytorch", "process_count_per_instance": 1}
TICKS = 'i=0; while [ ! -e {end} ]; do i=$((i+1)); echo "tick $i"; sleep 0.1; done; echo "rank $RANK ended"'
"""Prints until a file is there."""


@dataclass
class Workspace:
    """A workspace with two clusters, and the verbs in a folder of their own."""

    sandbox: Sandbox
    id: str
    folder: Path
    verbs: Verbs

    def job(self, name: str, command: str, **more: Any) -> Path:
        """Writes a job file."""
        path = self.folder / f"{name}.yml"
        fields = {"name": name, "command": command, "environment": "azureml:small:1", "compute": "azureml:gpu"}
        path.write_text(yaml.safe_dump({**fields, **more}, sort_keys=False), "utf-8")
        return path

    def submit(self, name: str, command: str, **more: Any) -> str:
        """Submits a job; its name in the workspace."""
        ran = self.verbs("submit", str(self.job(name, command, **more))).ok()
        found = re.search(rf"submitted ({name}-[0-9a-f]{{10}})", ran.out)
        assert found is not None, ran.printed
        return found[1]

    @contextmanager
    def endless(self, name: str, **more: Any) -> Iterator[tuple[str, Path]]:
        """A job that prints until its file is there; its name, and the file."""
        end = self.folder / f"{name}.end"
        try:
            yield self.submit(name, TICKS.format(end=end), **more), end
        finally:
            end.touch()


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as sandbox:
        arm = Arm(sandbox.endpoint)
        workspace = arm.make_workspace("ws-verbs")
        arm.make_cluster(workspace, "gpu", 4)
        arm.make_cluster(workspace, "one", 1)
        arm.put(f"{workspace}/environments/small/versions/1", {"properties": {"image": IMAGE}})
        folder = tmp_path_factory.mktemp("folder")
        yield Workspace(sandbox, workspace, folder, Verbs(folder, sandbox.environ))


def read_until(stream: Any, wanted: str) -> str:
    """The output of a verb, up to a line with these words."""
    seen = []
    for line in stream:
        seen.append(line)
        if wanted in line:
            return "".join(seen)
    raise AssertionError(f"no {wanted!r} in {''.join(seen)}")


def test_a_submitted_job_is_watched_to_its_end_and_submitted_once(space: Workspace) -> None:
    file = space.job("ok", 'echo "hello of $RANK"', resources={"instance_count": 2}, distribution=PYTORCH)
    ran = ended(space.verbs.start("submit", str(file), "--watch")).ok()
    assert "[node 0] hello of 0" in ran.out
    assert "[node 1] hello of 1" in ran.out
    assert "is Completed" in ran.out
    assert "workspace ws-verbs" in ran.err
    again = space.verbs("submit", str(file)).ok()
    assert "is there already: Completed" in again.out
    (name,) = re.findall(r"submitted (ok-\w+)", ran.out)
    other = space.verbs("submit", str(file), "--rerun", "again", "--watch").ok()
    assert name not in other.out
    rows = space.verbs("status", "--json").json
    assert len([row for row in rows if row["name"].startswith("ok-")]) == 2

    body = Arm(space.sandbox.endpoint).get(f"{space.id}/jobs/{name}").body["properties"]
    assert (body["status"], body["resources"]["instanceCount"]) == ("Completed", 2)
    assert (body["computeId"].rpartition("/")[2], body["command"]) == ("gpu", 'echo "hello of $RANK"')


def test_a_job_is_scaled_down_on_the_sandbox_and_azure_starts_what_is_declared(space: Workspace) -> None:
    wide = {"resources": {"instance_count": 2}, "distribution": {**PYTORCH, "process_count_per_instance": 8}}
    file = space.job("wide", 'echo "$RANK of $WORLD_SIZE"', **wide)
    ran = space.verbs("submit", str(file), "-j", "2x1", "--watch").ok()
    assert "2 × 8 → 2 × 1 (16 → 2 ranks)" in ran.out
    assert "] 1 of 2\n" in ran.out
    (name,) = re.findall(r"submitted (wide-\w+)", ran.out)
    body = Arm(space.sandbox.endpoint).get(f"{space.id}/jobs/{name}").body["properties"]
    assert body["distribution"]["processCountPerInstance"] == 8

    away = ("--workspace", "w", "-g", "g", "--subscription", "00000000-0000-0000-0000-00000000000a")
    refused = Verbs(space.folder, {})("submit", str(file), "-j", "2x1", *away)
    assert refused.code == 2
    assert "Azure starts every rank that it declares" in refused.err
    assert f"amlstack submit {file} --sandbox -j 2x1" in refused.err


def test_a_shell_sees_a_node_as_the_job_does_and_a_port_is_this_machines(space: Workspace) -> None:
    nodes = {"instance_count": 2, "shm_size": "64m"}
    variables = {"GREETING": "hello"}
    with space.endless("shown", resources=nodes, distribution=PYTORCH, environment_variables=variables) as (name, _):
        following = space.verbs.start("logs", name, "--follow", "--rank", "1")
        read_until(following.stdout, "tick")
        following.kill()
        following.communicate()
        shell = space.verbs.start("shell", name, "--node", "1", stdin=subprocess.PIPE)
        out, err = shell.communicate("echo $GREETING of $RANK; pwd; df -k --output=size /dev/shm; exit 7\n", timeout=60)
        greeting, folder, _, size = out.split("\n", 4)[:4]
        assert (greeting, shell.returncode) == ("hello of 1", 7), err
        assert folder.endswith("/nodes/1/wd")
        assert not namespace.possible() or size.strip() == str(64 * 1024)
        assert space.verbs("shell", name, "--node", "2").code == 1
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = str(listening.getsockname()[1])
            assert space.verbs("forward", name, port).ok().out == f"http://127.0.0.1:{port}\n"
        assert space.verbs("forward", name, port).code == 1


def test_runs_are_shown_side_by_side_with_what_they_logged(space: Workspace) -> None:
    arm, names = Arm(space.sandbox.endpoint), []
    for lr in (0.1, 0.2):
        file = space.job("bert", "echo ${{inputs.lr}}", inputs={"lr": lr, "seed": 7})
        ran = space.verbs("submit", str(file), "--watch").ok()
        names += re.findall(r"submitted (bert-\w+)", ran.out)
        at = f"/mlflow/v1.0{space.id}/api/2.0/mlflow/runs"
        assert (
            arm.call("POST", f"{at}/log-parameter", {"run_id": names[-1], "key": "depth", "value": "4"}).status == 200
        )
        for step in (0, 50):
            point = {"key": "loss", "value": lr + 1 / (step + 1), "step": step, "timestamp": 10_000 + 200 * step}
            assert arm.call("POST", f"{at}/log-metric", {"run_id": names[-1], **point}).status == 200

    first, second = space.verbs("compare", *names, "--json").json
    assert (first["inputs"], second["inputs"]) == ({"lr": "0.1", "seed": "7"}, {"lr": "0.2", "seed": "7"})
    assert (first["params"], first["steps_per_second"], first["usd"]) == ({"depth": "4"}, 5.0, None)
    assert first["metrics"] == {"loss": pytest.approx(0.1 + 1 / 51)}

    new = re.findall(r"submitted (\S+)", space.verbs("resubmit", names[0], "--set", "inputs.lr=0.3").ok().out)
    space.verbs("logs", *new, "--follow").ok()
    again = space.verbs("compare", *names[:1], *new, "--json").json[1]
    assert (again["status"], again["inputs"]) == ("Completed", {"lr": "0.3", "seed": "7"})
    assert space.verbs("resubmit", names[0], "--name", names[1]).code == 2  # there is one of that name

    shown = space.verbs("compare", *names).ok().out
    assert re.search(r"^input lr +0\.1 +0\.2$", shown, re.MULTILINE)
    assert "param depth 4" in shown.splitlines()[-1]
    ran = space.verbs("report", *names, "--output", "both.html").ok()
    assert f"both.html: {names[0]} and 1 more, compared" in ran.out
    page = (space.folder / "both.html").read_text()
    cells = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", page)
    assert cells[:3] == ["", *names]
    for row in (["input lr", "0.1", "0.2"], ["metric loss", "0.119608", "0.219608"], ["steps/s", "5", "5"]):
        first_cell = cells.index(row[0])
        assert cells[first_cell : first_cell + 3] == row
    assert "metrics:      loss 0.119608" in space.verbs("status", names[0]).ok().out
    assert "ml.azure.com" not in space.verbs("status", names[0]).out  # the studio shows nothing of a sandbox


def test_what_a_job_is_called_and_prints_does_not_act(space: Workspace) -> None:
    hostile = "\n".join(HOSTILE.values()).replace("\0", "")
    (space.folder / "hostile.txt").write_bytes(hostile.encode())
    command = f"cat {space.folder / 'hostile.txt'}; exit 1"
    name = space.submit("hostile", command, display_name=hostile, tags={"a": hostile}, description=hostile)
    space.verbs("logs", name, "--follow")
    of_job = ("logs", "status", "compare", "open", "download", "diagnose", "report", "cancel", "resubmit")
    for asked in (*([verb, name] for verb in of_job), ["status"], ["status", name, "--json"], ["logs", hostile]):
        ran = space.verbs(*asked)
        assert acting(ran.out) == acting(ran.err) == [], asked
    assert "\\x1b]52;c;" in space.verbs("logs", name).out
    assert "\\x1b]0;X" in space.verbs("status", name).out


def test_a_job_with_mistakes_is_refused_before_anything_is_sent(space: Workspace) -> None:
    file = space.job("wrong", "python train.py", compute="azureml:gpuu", code="nowhere")
    ran = space.verbs("submit", str(file))
    assert ran.code == 1
    assert "The workspace has no cluster `gpuu`" in ran.printed
    assert "Did you mean `gpu`?" in ran.printed
    assert "nothing was sent" in ran.printed
    assert space.verbs("status", "wrong").code == 2


def test_a_failed_job_is_diagnosed_and_reported_from_its_workspace(space: Workspace) -> None:
    (space.folder / "src").mkdir()
    (space.folder / "src" / "train.py").write_text("raise ValueError('bad batch 17')\n")
    file = space.job("fails", "python train.py", code="src")
    watched = space.verbs("submit", str(file), "--watch")
    assert watched.code == 1
    named = space.verbs("diagnose", "fails", "--json")
    assert named.code == 1, named.printed
    diagnosis = json.loads(named.out)
    assert diagnosis["cause"] == "python-exception"
    assert "bad batch 17" in diagnosis["text"]
    report = space.verbs("report", "fails", "--output", "fails.html").ok()
    assert "python-exception" in report.out
    assert "bad batch 17" in (space.folder / "fails.html").read_text()
    one = space.verbs("status", "fails", "--json").json
    assert one["status"] == "Failed"
    assert "bad batch 17" in one["error"]


def test_a_job_that_waits_is_explained_with_numbers_and_its_end_waited_for(space: Workspace) -> None:
    with space.endless("first", compute="azureml:one") as (first, _):
        follows = space.verbs.start("logs", first, "--follow")
        read_until(follows.stdout, "tick 1")
        other = space.submit("second-more", "true", compute="azureml:one")
        for verb in ("cancel", "download", "logs", "status", "diagnose", "report", "open"):
            ran = space.verbs(verb, "second")
            assert (ran.code, f"so begin: `{other}`" in ran.err) == (2, True), (verb, ran.printed)
        assert not [*space.folder.glob("second*/")]
        second = space.submit("second", "true", compute="azureml:one")
        rows = {row["name"]: row for row in space.verbs("status", "--json").json}
        assert rows[first]["status"] == "Running"
        assert rows[first]["why"] == ""
        assert rows[second]["why"] == f"waits for 1 node: 1 of at most 1 of `one` run other jobs (`{first}`)"
        assert rows[second]["why"] in space.verbs("status").ok().out
        assert space.verbs("cancel", "second").ok().out.rstrip().endswith("is canceled; its logs stay")
        assert space.verbs("status", other, "--json").json["status"] == "Queued"
        space.verbs("cancel", other).ok()

        follows.send_signal(signal.SIGINT)
        _, err = follows.communicate(timeout=60)
        assert follows.returncode == 130
        assert f"{first} goes on" in err
        assert "Traceback" not in err
        assert space.verbs("status", "first", "--json").json["status"] == "Running"

        asked = space.verbs("cancel", "first", "--no-wait").ok()
        assert "was asked to end" in asked.out
        assert "Canceled" in space.verbs("logs", "first", "--follow").ok().err
    again = space.verbs("cancel", "first").ok()
    assert "has ended before: Canceled" in again.out
    unknown = space.verbs("cancel", "frist")
    assert unknown.code == 2
    assert "Did you mean `first`?" in unknown.err


def test_logs_go_on_where_a_lost_connection_stopped_them(space: Workspace) -> None:
    two = {"resources": {"instance_count": 2}, "distribution": PYTORCH}
    with CuttingProxy() as proxy, space.endless("ticks", **two) as (name, end):
        follows = Verbs(space.folder, space.sandbox.environ, proxy.environ).start("logs", name, "--follow")
        before = read_until(follows.stdout, "tick 2")
        proxy.cut()
        read_until(follows.stderr, "asking again")
        proxy.mend()
        end.touch()
        assert follows.stdout is not None  # read to its end here: a part is in its buffer already
        assert follows.stderr is not None
        with follows:
            after, err = follows.stdout.read(), follows.stderr.read()
    assert follows.returncode == 0, err
    assert proxy.carried > 1
    for rank in (0, 1):
        ticks = [int(each) for each in re.findall(rf"\[node {rank}\] tick (\d+)", before + after)]
        assert ticks == list(range(1, len(ticks) + 1)), "each line once, in its order"
        assert f"[node {rank}] rank {rank} ended" in after
    alone = space.verbs("logs", "ticks", "--rank", "1").ok().out
    assert "[node 1]" in alone
    assert "[node 0]" not in alone


def test_what_a_job_wrote_is_downloaded_once(space: Workspace) -> None:
    command = "mkdir -p outputs/deep && echo kept > outputs/deep/a.txt && echo weights > ${{outputs.model}}/w.bin"
    file = space.job("writes", command, outputs={"model": {"type": "uri_folder"}})
    space.verbs("submit", str(file), "--watch").ok()
    to = space.folder / "got"
    first = space.verbs("download", "writes", "--to", str(to)).ok()
    assert "3 files" in first.out
    assert (to / "artifacts/outputs/deep/a.txt").read_text() == "kept\n"
    assert (to / "named-outputs/model/w.bin").read_text() == "weights\n"
    assert (to / "artifacts/user_logs/std_log_process_00.txt").is_file()
    (to / "named-outputs/model/w.bin").write_text("half")
    inode = (to / "artifacts/outputs/deep/a.txt").stat().st_ino
    space.verbs("download", "writes", "--to", str(to)).ok()
    assert (to / "named-outputs/model/w.bin").read_text() == "weights\n"
    assert (to / "artifacts/outputs/deep/a.txt").stat().st_ino == inode, "what is there is left"
    assert not list(to.rglob(".*"))
    logs = space.verbs("download", "writes", "--logs", "--to", str(space.folder / "logs")).ok()
    assert "1 file" in logs.out
    unknown = space.verbs("download", "writes", "--outputs", "modl")
    assert unknown.code == 2
    assert "Did you mean `model`?" in unknown.err
    opened = space.verbs("open", "writes", "--no-browser").ok()
    # Azure was recorded to write the group in small letters, and no provider.
    short = space.id.replace("resourceGroups", "resourcegroups").replace(
        "providers/Microsoft.MachineLearningServices/", ""
    )
    assert re.fullmatch(rf"https://ml\.azure\.com/runs/writes-\w+\?wsid={short}\n", opened.out)


def test_data_of_a_workspace_are_fetched_for_a_rehearsal(space: Workspace) -> None:
    command = (
        "mkdir -p ${{outputs.data}}/deep && echo rows > ${{outputs.data}}/deep/a.csv && echo > ${{outputs.data}}/b"
    )
    job = space.job("source", command, outputs={"data": {"type": "uri_folder"}})
    (name,) = re.findall(r"submitted (source-\w+)", space.verbs("submit", str(job), "--watch").ok().out)
    below = f"datastores/workspaceblobstore/paths/azureml/{name}/data/"
    uri = f"azureml:/{space.id}/{below}"
    properties = {"dataType": "uri_folder", "dataUri": uri}
    Arm(space.sandbox.endpoint).put(f"{space.id}/data/rows/versions/3", {"properties": properties})
    inputs = {
        "asset": {"type": "uri_folder", "path": "azureml:rows:3"},
        "latest": {"type": "uri_folder", "path": "azureml:rows@latest"},
        "long": {"type": "uri_folder", "path": uri},
        "file": {"type": "uri_file", "path": f"azureml://{below}deep/a.csv"},
        "none": {"type": "uri_folder", "path": f"azureml://{below}nothing"},
    }
    curated = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/12"
    reads = " ".join(f"${{{{inputs.{each}}}}}" for each in inputs)
    file = space.job("reads", f"cat {reads}", environment=curated, inputs=inputs)
    verbs = Verbs(space.folder, space.sandbox.environ, {"AMLSTACK_CACHE": str(space.folder / "cache")})
    ran = verbs("rehearse", str(file), "--size", "Standard_ND96asr_v4", "--dry-run", "--fetch")
    assert ran.code == 2
    assert "nothing` was not fetched: nothing lies there" in " ".join(ran.printed.split()), ran.printed
    there = sorted(each.name for each in (space.folder / "cache" / "inputs").rglob("*") if each.is_file())
    assert there == [".whole"] * 4 + ["a.csv"] * 4 + ["b"] * 3
    again = verbs("rehearse", str(file), "--size", "Standard_ND96asr_v4", "--dry-run", "--input", "none=.")
    assert again.code == 0, again.printed
    assert "fetching" not in again.err


def test_a_lost_answer_and_a_throttled_request_submit_a_job_once(space: Workspace) -> None:
    lost = {"fault": CUT_STORED, "method": "PUT", "path": ".*/jobs/faulty-.*", "times": 1}
    busy = {"fault": THROTTLED, "method": "GET", "path": ".*/jobs/faulty-.*", "times": 1}
    inject(space.sandbox.home, lost, {**busy, "headers": {"retry-after-ms": "5"}})
    try:
        ran = space.verbs("submit", str(space.job("faulty", "true")), "--watch").ok()
    finally:
        inject(space.sandbox.home)
    assert "is Completed" in ran.out
    assert "429, too many requests" in ran.err
    assert {fault for fault, _, path in injected(space.sandbox.home) if "/faulty-" in path} == {CUT_STORED, THROTTLED}
    rows = space.verbs("status", "--json").json
    assert len([row for row in rows if row["name"].startswith("faulty-")]) == 1


def test_what_is_not_there_or_not_allowed_is_one_line(space: Workspace) -> None:
    missing = space.verbs("status", "--workspace", "ws-verb", "-g", "ws-verbs")
    assert missing.code == 2
    assert "There is no workspace `ws-verb`" in missing.err
    assert "Did you mean `ws-verbs`?" in missing.err
    (space.folder / "token").write_text("nobody's")
    stranger = Verbs(space.folder, {**space.sandbox.environ, "AZURE_FEDERATED_TOKEN_FILE": str(space.folder / "token")})
    refused = stranger("status", "--workspace", space.id)
    assert refused.code == 1
    assert "Not signed in" in refused.err
    assert "Traceback" not in refused.err
