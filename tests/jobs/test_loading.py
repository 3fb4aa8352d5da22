"""Job files, Python and YAML: what is read, and what is reported when something is wrong with them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import jobs
from jobs.azureml.write import command_file
from jobs.pythonfiles.mistakes import findings_of
from tests.support import yaml_files
from tests.support.examples import examples
from tests.support.jobs import oracle
from tests.support.jobs import parity_cases as cases
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, text: str, name: str = "job.yml") -> jobs.Loaded:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return jobs.load(path)


def lines(loaded: jobs.Loaded) -> list[tuple[str, str, int | None, int | None]]:
    return [(finding.code, finding.where, finding.line, finding.column) for finding in loaded.findings]


ON_LINES = """\
from jobs import Job, TorchRun

job = Job(
    command="python train.py ${{inputs.data}}",
    environment="azureml:e:1",
    launcher=TorchRun(
        processes_per_node=8,
    ),
    inputs={
        "date": "x",
    },
)
"""


@for_each(
    "where, line, column",
    [
        ("command", 4, 5),
        ("launcher.processes_per_node", 7, 9),
        ("inputs.date", 10, 9),
        ("inputs.data", 9, 5),
        ("nodes", 3, 1),
    ],
)
def test_a_finding_of_a_python_file_stands_at_its_keyword(where: str, line: int, column: int, tmp_path: Path) -> None:
    loaded = written(tmp_path, ON_LINES, "job.py")
    assert loaded.source.place(where) == (where, line, column)


def test_what_a_plan_finds_in_a_python_file_has_a_line(tmp_path: Path) -> None:
    loaded = written(tmp_path, ON_LINES, "job.py")
    (job,) = loaded.jobs
    assert isinstance(job, jobs.Job)
    plan = jobs.plan(job, jobs.Target(size="Standard_ND96isr_H100_v5"), source=loaded.source)
    (wrong,) = (finding for finding in plan.findings if finding.code == "input-undefined")
    assert (wrong.file, wrong.line) == (str(tmp_path / "job.py"), 4)


def test_a_python_file_has_job_or_jobs(tmp_path: Path) -> None:
    start = "from jobs import Job\ndef make(name): return Job(name=name, command='x', environment='azureml:e:1')\n"
    assert [job.name for job in written(tmp_path, start + "job = make('a')\n", "one.py").jobs] == ["a"]
    two = written(tmp_path, start + "jobs = [make('a'), make('b')]\n", "two.py")
    assert [job.name for job in two.jobs] == ["a", "b"]
    assert two.ok
    assert two.source.base == tmp_path


def test_a_python_file_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_job.py").write_text("NODES = 3\n")
    text = "from jobs import Job\nfrom neighbour_of_job import NODES\n"
    loaded = written(tmp_path, text + "job = Job(command='x', environment='azureml:e:1', nodes=NODES)\n", "job.py")
    assert [job.nodes for job in loaded.jobs] == [3]
    assert str(tmp_path) not in sys.path


@for_each(
    "text, code, line, words",
    [
        ("x = 1\n", "job-missing", None, "neither `job` nor `jobs`"),
        ("job = 3\n", "job-missing", None, "`job` is a int"),
        ("jobs = []\n", "job-missing", None, "Job"),
        ("x = 1\njob = (\n", "python-syntax", 2, "not Python"),
        ("\n\n1 / 0\n", "python-raised", 3, "ZeroDivisionError"),
        ("raise SystemExit(3)\n", "python-raised", 1, "SystemExit: 3"),
        ("import nothing_of_that_name\n", "python-raised", 1, "nothing_of_that_name"),
        (
            "from jobs import Job\njob = Job(command='x', environment='y', nodez=2)\n",
            "key-unknown",
            2,
            "Did you mean `nodes`?",
        ),
        (
            "from jobs import TorchRun\nTorchRun(processes_per_nod=2)\n",
            "key-unknown",
            2,
            "Did you mean `processes_per_node`?",
        ),
        ("from jobs import Job\njob = Job(command='x')\n", "key-missing", 2, "`environment` is not given"),
        (
            "from jobs import Job\njob = Job(command='x', environment='y', nodes=0)\n",
            "value-kind",
            2,
            "`nodes` must be at least 1",
        ),
        (
            "from jobs import Job\njob = Job(command='x', environment='y', launcher={'type': 'torchrum'})\n",
            "value-kind",
            2,
            "torchrun",
        ),
    ],
)
def test_a_wrong_python_file_gives_findings(text: str, code: str, line: int | None, words: str, tmp_path: Path) -> None:
    loaded = written(tmp_path, text, "job.py")
    (finding,) = loaded.findings
    assert (finding.code, finding.line) == (code, line)
    assert words in finding.message
    assert loaded.jobs == ()


def test_faults_of_one_python_job_come_together(tmp_path: Path) -> None:
    text = "from jobs import Job\njob = Job(command=3, environment='y', nodes=0, wait='done', inputs={'a': None})\n"
    assert [finding.where for finding in written(tmp_path, text, "job.py").findings] == [
        "nodes",
        "wait",
        "command",
        "inputs.a",
    ]


@pytest.mark.parametrize(("name", "code"), [("job.txt", "file-kind"), ("no.yml", ""), ("no.py", "file-unreadable")])
def test_a_file_that_is_no_job_file_is_a_finding(name: str, code: str, tmp_path: Path) -> None:
    (finding,) = jobs.load(tmp_path / name).findings
    assert finding.code == (code or "file-unreadable")


HEAD = "command: echo\nenvironment: azureml:e:1\n"


@for_each(
    "text, expected",
    [
        ("comand: echo\nenvironment: azureml:e:1\n", [("key-unknown", "comand", 1, 1)]),
        ("{}\n", [("key-missing", "", 1, 1), ("key-missing", "", 1, 1)]),
        (HEAD + "resources:\n  instance_cout: 2\n", [("key-unknown", "resources.instance_cout", 4, 3)]),
        (HEAD + "distribution: {type: pytorhc}\n", [("value-unknown", "distribution.type", 3, 16)]),
        (HEAD + "inputs:\n  a:\n    path: x\n    mode: ro_mout\n", [("value-unknown", "inputs.a.mode", 6, 5)]),
        (HEAD + "compute: 3\ntags: {a: 1}\n", [("value-kind", "compute", 3, 1), ("value-kind", "tags.a", 4, 8)]),
        (HEAD + "type: parallel\n", [("file-type", "type", 3, 1)]),
        (HEAD + "type: [1]\n", [("file-type", "type", 3, 1)]),
        ("- a\n", [("not-a-mapping", "", 1, 1)]),
        ("", [("file-empty", "", 1, None)]),
        ("just text\n", [("not-a-mapping", "", 1, 1)]),
        (HEAD + "status: Failed\n", [("key-read-only", "status", 3, 1)]),
        (HEAD + "limits: {timeout: 1.5}\n", [("number-cut", "limits.timeout", 3, 10)]),
        (
            HEAD + "distribution: {type: mpi, process_count_per_instance: 0}\n",
            [("value-range", "distribution.process_count_per_instance", 3, 27)],
        ),
    ],
)
def test_faults_of_a_yaml_file_are_placed(
    text: str, expected: list[tuple[str, str, int | None, int | None]], tmp_path: Path
) -> None:
    assert lines(written(tmp_path, text)) == expected


def test_near_misses_of_keys_are_named(tmp_path: Path) -> None:
    (finding,) = written(tmp_path, "comand: echo\nenvironment: azureml:e:1\n").findings
    assert "Did you mean `command`?" in finding.message


def test_findings_of_the_plan_are_placed_in_the_file(tmp_path: Path) -> None:
    loaded = written(tmp_path, HEAD + "resources:\n  shm_size: 1g\n  instance_count: 9\n")
    target = jobs.Target("Standard_ND96asr_v4", "a100", 4)
    (finding,) = jobs.plan(loaded.jobs[0], target, source=loaded.source).findings
    assert (finding.where, finding.line, finding.column) == ("resources.instance_count", 5, 3)
    assert finding.file == str(tmp_path / "job.yml")


def test_a_broken_input_is_still_known_to_the_command(tmp_path: Path) -> None:
    loaded = written(tmp_path, "command: echo ${{inputs.a}}\nenvironment: azureml:e:1\ninputs: {a: [1]}\n")
    assert len(loaded.findings) == 1
    assert jobs.plan(loaded.jobs[0], source=loaded.source).findings == ()


def test_faults_in_an_environment_file_are_placed_there(tmp_path: Path) -> None:
    (tmp_path / "env.yml").write_text("image: x\nbuidl: {}\n")
    (finding,) = written(tmp_path, "command: echo\nenvironment: file:env.yml\n").findings
    assert (finding.code, finding.file, finding.line) == ("key-unknown", str(tmp_path / "env.yml"), 2)


@for_each("case", cases.ACCEPTED)
def test_what_is_written_back_as_yaml_is_the_same_job(case: str, tmp_path: Path) -> None:
    cases.folder(tmp_path)
    first = written(tmp_path, cases.text(cases.ACCEPTED[case]))
    text = yaml_files.dump(command_file(first.jobs[0]))
    second = written(tmp_path, text, "again.yml")
    assert second.ok, second.findings
    assert body(second.jobs[0]) == body(first.jobs[0])


def body(job: jobs.Job) -> dict[str, Any]:
    """The body but for what YAML cannot hold: JSON has no dates, so that they come back as the text they are."""
    return jobs.body(job, jobs.Refs(environment="inline" if isinstance(job.environment, jobs.Environment) else None))


# Values that people write under a key, right and wrong ones.
NUMBERS = (True, 0, 1, -1, 2.0, 2.5, 900)
TEXTS = [
    "x",
    "2",
    "x:1",
    "azureml:x:1",
    "azureml:x@l",
    "Local",
    "src",
    "all",
    "pytorch",
    "MPI",
    "managed",
    "AMLToken",
    "ssh",
    "uri_folder",
    "ro_mount",
    "Spot",
    "low",
]
WORDS: st.SearchStrategy[Any] = st.sampled_from([None, *NUMBERS, *TEXTS, "", "${{parent.inputs.x}}", [], ["a"], {}])
SUBKEYS = (
    *("type", "path", "mode", "name", "version", "value", "timeout", "a"),
    *("process_count_per_instance", "worker_count", "parameter_server_count"),
    *("image", "conda_file", "build", "job_tier", "priority", "client_id", "port", "nodes", "log_dir"),
    *("instance_count", "instance_type", "shm_size", "docker_args", "locations", "properties", "ssh_public_keys"),
)
KEYS = (
    *("command", "code", "environment", "environment_variables", "inputs", "outputs", "distribution", "resources"),
    *("compute", "limits", "queue_settings", "identity", "services", "name", "display_name", "description"),
    *("experiment_name", "tags", "properties", "parent_job_name", "typo"),
)
BLOCKS = WORDS | st.dictionaries(
    st.sampled_from(SUBKEYS), WORDS | st.dictionaries(st.sampled_from(SUBKEYS), WORDS, max_size=3), max_size=3
)
FILES = st.dictionaries(st.sampled_from(KEYS), BLOCKS, max_size=4)

STRICTER = {
    # What azure-ai-ml sends on and the service, or the run, would fail on.
    "value-range",
    "build-missing",
    "environment-incomplete",
    "environment-twice",
    "conda-missing",
    "value-kind",
    "binding-name",
    "value-empty",
}


@settings(max_examples=examples(1.5), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(FILES)
def test_any_mapping_is_refused_with_findings_or_sent_as_azure_ai_ml_sends_it(
    tmp_path: Path, result: dict[str, Any]
) -> None:
    file = {"command": "echo hi", "environment": "azureml:env:1", **result}
    (tmp_path / "src").mkdir(exist_ok=True)
    loaded = written(tmp_path, yaml.safe_dump(file, sort_keys=False))
    found = list(loaded.findings)
    for job in loaded.jobs:
        found += jobs.plan(job, source=loaded.source).findings
    errors = [finding for finding in found if finding.level == "error"]
    try:
        theirs = oracle.body(tmp_path / "job.yml")
    except oracle.RefusedError:
        assert errors, file
        return
    if errors:
        assert {finding.code for finding in errors} <= STRICTER, (file, errors)
        return
    theirs.pop("environment", None)
    assert body(loaded.jobs[0]) == theirs, file


FIELDS = (*sorted(jobs.Job.model_fields), "nodez", "inptus")
PYTHON = st.dictionaries(
    st.sampled_from(FIELDS),
    BLOCKS
    | st.sampled_from([jobs.TorchRun(), jobs.Input(path="azureml:x:1"), {"type": "torchrun", "nproc": 1}, ("a",)]),
    max_size=5,
)


@settings(max_examples=examples(3), deadline=None)
@given(PYTHON)
def test_any_python_declaration_is_planned_or_refused_with_findings(result: dict[str, Any]) -> None:
    fields = {"command": "python t.py", "environment": "azureml:e:1", **result}
    try:
        job = jobs.Job(**fields)
    except ValidationError as error:
        found = findings_of(error)
        assert found
        assert all(finding.seen and (finding.rule or " must " in finding.seen) and finding.where for finding in found)
        return
    plan = jobs.plan(job, jobs.Target("Standard_ND96asr_v4", "a", 2))
    assert json.loads(json.dumps(plan.declaration)) == plan.declaration
    refs = jobs.Refs("/w", environment="e")
    assert jobs.body(plan.enriched, refs)["properties"]["jobType"] == "Command"


def test_a_file_without_a_command_gives_its_other_findings_as_well(tmp_path: Path) -> None:
    file = tmp_path / "job.yml"
    file.write_text("comand: echo ${{inputs.a}}\nenvironment: azureml:e:1\ncode: ./nowhere\n")
    loaded = jobs.load(file)
    plan = jobs.plan(loaded.jobs[0], source=loaded.source)
    result = [finding.code for finding in (*loaded.findings, *plan.findings) if finding.level.name == "ERROR"]
    assert result == ["key-unknown", "code-missing"]


def test_a_file_with_nothing_of_a_job_is_no_job(tmp_path: Path) -> None:
    file = tmp_path / "job.yml"
    file.write_text("type: command\n")
    loaded = jobs.load(file)
    assert loaded.jobs == ()
    assert [finding.code for finding in loaded.findings] == ["key-missing", "key-missing"]
