"""An input or output has one path on all nodes, so that one node can hand it to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import read
from amlstack.sandbox.runner import namespace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runner.runner_lab import Lab

STORED = "azureml://datastores/workspaceblobstore/paths"
NAMES = ("read", "stored", "write", "copy", "one", "kept", "sent")
COMMAND = (
    "echo ${{inputs.read}} ${{inputs.stored}} ${{inputs.write}} ${{inputs.copy}} ${{inputs.one}} "
    "${{outputs.kept}} ${{outputs.sent}}; "
    "cat ${{inputs.read}}/a.txt ${{inputs.stored}}/a.txt ${{inputs.write}}/a.txt; "
    "cat ${{inputs.copy}}/a.txt ${{inputs.one}}; "
    "echo $RANK > ${{inputs.copy}}/a.txt; echo $RANK > ${{inputs.one}}; echo x > ${{outputs.sent}}/$RANK; "
    "echo x > ${{outputs.kept}}/$RANK; touch ${{outputs.kept}}/done-$RANK; "
    "until [ -e ${{outputs.kept}}/done-$((1 - RANK)) ]; do :; done; "
    "cat ${{inputs.copy}}/a.txt ${{inputs.one}}; ls ${{outputs.sent}}"
)


@pytest.mark.skipif(not namespace.possible(), reason="this machine does not permit a private mount (unshare, mount)")
def test_a_path_is_the_same_on_both_nodes_and_copies_are_their_own(lab: Lab, tmp_path: Path) -> None:
    for name in ("read", "write"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(f"{name}\n")
    lab.blob("set/a.txt", "stored\n")
    given = {
        "read": {"jobInputType": "uri_folder", "uri": str(tmp_path / "read")},
        "stored": {"jobInputType": "uri_folder", "uri": f"{STORED}/set"},
        "write": {"jobInputType": "uri_folder", "uri": str(tmp_path / "write"), "mode": "ReadWriteMount"},
        "copy": {"jobInputType": "uri_folder", "uri": f"{STORED}/set", "mode": "Download"},
        "one": {"jobInputType": "uri_file", "uri": f"{STORED}/set/a.txt", "mode": "Download"},
    }
    outputs = {
        "kept": {"jobOutputType": "uri_folder", "uri": f"{STORED}/kept", "mode": "ReadWriteMount"},
        "sent": {"jobOutputType": "uri_folder", "uri": f"{STORED}/sent", "mode": "Upload"},
    }
    distribution = {"distributionType": "PyTorch", "processCountPerInstance": 1}
    resources = {"instanceCount": 2}
    body = lab.job(COMMAND, inputs=given, outputs=outputs, resources=resources, distribution=distribution)
    job = lab.run(body)

    assert job.status == "Completed", (job.error, lab.log("job"))
    first, second = (lab.log("job", rank).splitlines() for rank in (0, 1))
    paths = dict(zip(NAMES, first[0].split(), strict=True))
    assert second[0] == first[0]
    assert len(set(paths.values())) == len(NAMES)
    assert first[1:] == ["read", "stored", "write", "stored", "stored", "0", "0", "0"]
    assert second[1:] == ["read", "stored", "write", "stored", "stored", "1", "1", "1"]
    sent = {blob.name for blob in lab.store.blobs.under("account", "container", "sent/")}
    assert sent == {"sent/0", "sent/1"}


def test_an_output_that_is_one_file_is_written_at_its_path(lab: Lab) -> None:
    outputs = {"one": {"jobOutputType": "uri_file", "uri": f"{STORED}/made/one.txt"}}
    job = lab.run(lab.job("echo first > ${{outputs.one}}; echo second >> ${{outputs.one}}", outputs=outputs))

    assert job.status == "Completed", (job.error, lab.log("job"))
    (blob,) = lab.store.blobs.under("account", "container", "made/")
    assert (blob.name, blob.path.read_text()) == ("made/one.txt", "first\nsecond\n")


def test_a_diagnosis_takes_no_input_for_a_log(tmp_path: Path) -> None:
    for file in ("data/inputs/set/error.txt", "nodes/0/inputs/set/x.log", "user_logs/std_log_process_00.txt"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("torch.OutOfMemoryError: CUDA out of memory.\n")
    assert [log.name for log in read([tmp_path]).logs] == ["user_logs/std_log_process_00.txt"]
