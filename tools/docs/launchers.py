"""docs/launchers.md, from the models of jobs and launchers."""

from __future__ import annotations

from tools.docs import launcher_tables

INTRO = """\
# Jobs and their launchers

<!-- Made by `make docs` from the models; a test holds it current. -->

A job file is Python with a module-level `job`, or an Azure ML CLI v2 command job (`az ml job create -f`), which is
passed through unchanged. `amlstack check` says what is wrong with either, `amlstack show` what it becomes.

YAML files complete and are checked while they are written, in VS Code (YAML extension) and every editor with
yaml-language-server, when they begin with `# yaml-language-server: $schema=../docs/schema/job.schema.json` (the path
from the file); `amlstack schema` prints that JSON Schema. It describes command jobs, sweeps, pipelines, command
components and schedules; parallel, spark, automl and data_transfer steps by name only. It marks unknown keys, wrong
words and wrong types; words in other letters than Azure ML documents (`type: PyTorch`) are marked, and taken.

```python
from jobs import Job, TorchRun

job = Job(
    name="ddp",
    command="python train.py --epochs ${{inputs.epochs}}",
    code="src",
    inputs={"epochs": 3},
    environment="acpt-pytorch-2.8-cuda12.6",
    compute="a100",
    nodes=2,
    launcher=TorchRun(),
)
```

Counts of processes are per node everywhere (SDK v1's `process_count` was a total). A typed launcher is *enriched*: the
command is lowered, the size's fabric variables, shared memory and container arguments are added, and `amlstack show`
lists each with its reason. A value of your own always stays. Azure ML's own words (`Custom`, or a YAML file) are
enriched only when asked (`enrich`, `amlstack show --enrich`).

## What each launcher becomes

On two nodes of eight GPUs (SingleNode: on one), with the command `python train.py`:

"""


def page() -> str:
    """The text of docs/launchers.md."""
    text = f"{INTRO}{launcher_tables.launcher_table()}\n\n## Fields of `Job`\n\n{launcher_tables.job_table()}\n\n"
    text += f"## Fields of the parts of a job\n\n{launcher_tables.part_sections()}\n\n"
    return f"{text}## Fields of the launchers\n\n{launcher_tables.launcher_sections()}\n"
