"""A job cannot change its read-only inputs, neither the user's own files nor stored ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox.runner import namespace

if TYPE_CHECKING:
    from tests.support.runner.runner_lab import Lab

needs_mounts = pytest.mark.skipif(
    not namespace.possible(), reason="this machine does not permit a private mount (unshare, mount)"
)

WRITE = """
import os, sys
for name, place in zip(sys.argv[1::2], sys.argv[2::2]):
    file = place if os.path.isfile(place) else os.path.join(place, "deep", "a.txt")
    print(name, "holds", open(file).read())
    for what, act in {
        "overwrite": lambda: open(file, "w"),
        "mode": lambda: os.chmod(file, 0o666),
        "add": lambda: open(os.path.join(os.path.dirname(file), "new"), "w"),
        "remove": lambda: os.remove(file),
    }.items():
        try:
            act()
            print(name, what, "done")
        except OSError as error:
            print(name, what, error.strerror)
"""

STORED = "azureml://datastores/workspaceblobstore/paths"


def data(lab: Lab, tmp_path: Path) -> tuple[dict[str, dict[str, str]], str]:
    """Inputs of each kind, and the command that tries to write to them."""
    own = tmp_path / "own data"
    (own / "deep").mkdir(parents=True)
    (own / "deep/a.txt").write_text("mine")
    (own / "link").symlink_to("deep/a.txt")
    lab.blob("set/deep/a.txt", "stored")
    places = {
        "folder": ("uri_folder", f"file://{tmp_path}/own%20data"),
        "file": ("uri_file", str(own / "deep/a.txt")),
        "set": ("uri_folder", f"{STORED}/set"),
        "one": ("uri_file", f"{STORED}/set/deep/a.txt"),
    }
    words = " ".join(f"{name} '${{{{inputs.{name}}}}}'" for name in places)
    given = {name: {"jobInputType": kind, "uri": uri} for name, (kind, uri) in places.items()}
    return given, f"python write.py {words}"


def untouched(lab: Lab, tmp_path: Path) -> bool:
    own = tmp_path / "own data"
    (blob,) = lab.store.blobs.under("account", "container", "set/")
    return (
        [path.name for path in sorted(own.rglob("*"))] == ["deep", "a.txt", "link"]
        and (own / "deep/a.txt").read_text() == "mine"
        and blob.path.read_text() == "stored"
        and blob.path.stat().st_mode & 0o777 == 0o444
    )


@needs_mounts
@pytest.mark.parametrize("ipc", ["", "--ipc=host"])
def test_a_write_to_a_mounted_input_fails_as_on_azure(lab: Lab, tmp_path: Path, ipc: str) -> None:
    given, command = data(lab, tmp_path)
    code = lab.code({"write.py": WRITE})
    resources = {"instanceCount": 2, **({"dockerArgs": ipc} if ipc else {})}
    job = lab.run(lab.job(command, codeId=code, inputs=given, resources=resources))

    assert job.status == "Completed", job.error
    for rank in (0, 1):
        seen = lab.log("job", rank).splitlines()
        assert [line for line in seen if " holds " in line] == [
            *("folder holds mine", "file holds mine", "set holds stored", "one holds stored")
        ]
        refused = [line for line in seen if " holds " not in line]
        assert len(refused) == 16
        assert {line.split(" ", 2)[2] for line in refused} == {"Read-only file system"}, seen
    assert untouched(lab, tmp_path)
    assert not json.loads((lab.folder("job") / "report.json").read_text())["replaced"]


def test_where_nothing_can_be_mounted_the_job_gets_copies_and_this_is_announced(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The runner is a process of its own: it learns on its way up that nothing can be mounted.
    blocked = lab.home / "sitecustomize.py"
    blocked.write_text("import amlstack.sandbox.runner.namespace as own\nown.possible = lambda *places: False\n")
    monkeypatch.setenv("PYTHONPATH", str(lab.home))
    given, command = data(lab, tmp_path)
    job = lab.run(lab.job(command, codeId=lab.code({"write.py": WRITE}), inputs=given))

    assert job.status == "Completed", job.error
    assert "folder holds mine" in lab.log("job")
    assert untouched(lab, tmp_path)
    replaced = json.loads((lab.folder("job") / "report.json").read_text())["replaced"]
    assert all(replaced[f"inputs.{name}.mode"] == ["ReadOnlyMount", "Download"] for name in given)
    log = (lab.folder("job") / "runner.log").read_text()
    assert "inputs folder, file, set, one: copies, since this machine does not let a process mount" in log


def test_a_file_given_as_a_folder_leaves_the_other_inputs_alone(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    lab.blob("set/a.txt", "stored")
    given = {
        "file": {"jobInputType": "uri_folder", "uri": str(tmp_path / "file")},
        "copy": {"jobInputType": "uri_folder", "uri": f"{STORED}/set", "mode": "Download"},
    }
    job = lab.run(lab.job("cat ${{inputs.file}}; echo mine > ${{inputs.copy}}/a.txt", inputs=given))

    assert (job.status, lab.log("job")) == ("Completed", "x"), job.error


def test_an_input_mounted_for_writing_is_written_and_stored_data_stay(lab: Lab, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    lab.blob("set/a.txt", "stored")
    given = {
        "own": {"jobInputType": "uri_folder", "uri": str(own), "mode": "ReadWriteMount"},
        "one": {"jobInputType": "uri_file", "uri": f"{STORED}/set/a.txt", "mode": "ReadWriteMount"},
        "copy": {"jobInputType": "uri_folder", "uri": f"{STORED}/set", "mode": "Download"},
    }
    command = (
        "cat ${{inputs.one}}; for f in ${{inputs.own}}/x ${{inputs.one}} ${{inputs.copy}}/a.txt; do echo new > $f; done"
    )
    job = lab.run(lab.job(command, inputs=given))

    assert job.status == "Completed", lab.log("job")
    assert lab.log("job") == "stored"
    assert (own / "x").read_text() == "new\n"
    (blob,) = lab.store.blobs.under("account", "container", "set/")
    assert blob.path.read_text() == "stored"


PROBE = f"""
import ctypes, os, sys
sys.path.insert(0, {str(Path(namespace.__file__).parent)!r})
import namespace
libc = ctypes.CDLL(None, use_errno=True)
# A namespace of its own with a folder in it, and in that a mount with flags that must be kept.
assert libc.unshare(0x00020000) == 0
assert libc.mount(b"none", b"/", None, 16384 | 1 << 18, None) == 0
assert libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0
os.umask(0)
os.makedirs("/tmp/own data/below")
assert libc.mount(b"none", b"/tmp/own data/below", b"tmpfs", 2 | 4 | 8, None) == 0
open("/tmp/own data/below/x", "w").close()
os.setgid(65534)
os.setuid(65534)
libc.prctl(4, 1, 0, 0, 0)
namespace.take(1 << 20, [("/tmp/own data", "/tmp/own data")])
for path in ("/tmp/own data/below/x", "/tmp/own data/y"):
    try:
        open(path, "w")
    except OSError as error:
        print(error.strerror)
"""


@needs_mounts
@pytest.mark.skipif(
    os.getuid() != 0, reason="the mount below takes root; everybody else's way is that of the tests above"
)
def test_a_user_without_rights_mounts_too_with_what_is_mounted_below() -> None:
    done = subprocess.run([sys.executable, "-I", "-S", "-c", PROBE], capture_output=True, text=True, check=False)
    if "unshare: " in done.stderr:
        pytest.skip(f"this machine does not permit user namespaces: {done.stderr.splitlines()[-1]}")
    assert done.stdout.splitlines() == ["Read-only file system"] * 2, done.stderr


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("out", "../../secret", "the link 'sub/out' to '../../secret'"),
        ("out", "{top}/sub/file", "must be relative"),
        ("chain", "inner/../../../secret", "the link 'sub/chain'"),
        ("fifo", "", "'sub/fifo', neither a file nor a folder nor a link"),
    ],
)
def test_a_folder_that_leads_out_of_itself_is_refused(
    lab: Lab, tmp_path: Path, name: str, target: str, message: str
) -> None:
    top = tmp_path / "data"
    (top / "sub/inner").mkdir(parents=True)
    (tmp_path / "secret").write_text("x")
    (top / "sub/file").write_text("x")
    if target:
        (top / "sub" / name).symlink_to(target.format(top=top))
    else:
        os.mkfifo(top / "sub" / name)
    for mode in ("ReadOnlyMount", "Download"):
        job = lab.job("true", name=mode, inputs={"d": {"jobInputType": "uri_folder", "uri": str(top), "mode": mode}})
        row = lab.run(job)
        assert row.error is not None
        assert (row.error.code, message in row.error.message) == ("UserError", True), row.error.message


def test_links_that_stay_in_their_folder_are_kept(lab: Lab, tmp_path: Path) -> None:
    top = tmp_path / "data"
    top.mkdir()
    (top / "file").write_text("x")
    for name, target in {"link": "file", "loop": ".", "nowhere": "gone"}.items():
        (top / name).symlink_to(target)
    for mode in ("ReadOnlyMount", "Download"):
        given = {"d": {"jobInputType": "uri_folder", "uri": str(top), "mode": mode}}
        key = lab.job("cat ${{inputs.d}}/loop/link", name=mode, inputs=given)
        assert (lab.run(key).status, lab.log(key)) == ("Completed", "x")
