"""Bad job files and settings, made at random: good ones damaged, and nonsense of the right words."""

from __future__ import annotations

import ast
import copy
import random
from typing import Any, NamedTuple

import yaml

COMMAND = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
name: train
command: python train.py --epochs ${{inputs.epochs}} --data ${{inputs.data}} --out ${{outputs.model}}
code: src
environment: azureml:acpt@latest
inputs:
  epochs: 3
  data: {type: uri_folder, path: azureml://datastores/d/paths/x, mode: ro_mount}
outputs:
  model: {type: uri_folder, mode: rw_mount}
environment_variables: {NCCL_DEBUG: INFO}
compute: azureml:a100
distribution: {type: pytorch, process_count_per_instance: 8}
resources: {instance_count: 2, shm_size: 64g, docker_args: --ipc=host}
limits: {timeout: 900}
identity: {type: managed, client_id: c}
queue_settings: {job_tier: spot, priority: low}
services:
  board: {type: tensor_board, log_dir: outputs, nodes: all}
tags: {team: a}
"""
SWEEP = """\
type: sweep
trial:
  command: python train.py --lr ${{search_space.lr}}
  code: src
  environment: {image: "mcr.microsoft.com/x:1", conda_file: conda.yml}
compute: azureml:a100
sampling_algorithm: {type: random, seed: 3, rule: sobol}
search_space:
  lr: {type: loguniform, min_value: -6, max_value: -1}
  batch: {type: choice, values: [16, 32]}
objective: {primary_metric: loss, goal: minimize}
limits: {max_total_trials: 4, max_concurrent_trials: 2, trial_timeout: 600}
early_termination: {type: bandit, slack_factor: 0.1, evaluation_interval: 1}
"""
PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:a100, continue_on_step_failure: true}
inputs: {samples: 512}
outputs:
  report: {type: uri_folder}
jobs:
  prepare:
    command: python prepare.py --samples ${{inputs.samples}} --data ${{outputs.data}}
    code: src
    environment: azureml:e:1
    inputs: {samples: "${{parent.inputs.samples}}"}
    outputs: {data: {type: uri_folder}}
  train:
    type: command
    component: ./component.yml
    inputs: {data: "${{parent.jobs.prepare.outputs.data}}"}
    outputs: {model: "${{parent.outputs.report}}"}
    resources: {instance_count: 2}
  tune:
    type: sweep
    trial: ./component.yml
    inputs: {data: {type: uri_folder, path: "azureml:d:1"}}
    search_space: {lr: {type: uniform, min_value: 0, max_value: 1}}
    objective: {primary_metric: loss, goal: minimize}
    limits: {max_total_trials: 2}
  score:
    type: parallel
    mini_batch_size: "10"
    input_data: ${{inputs.data}}
    task: {type: run_function, code: src, entry_script: score.py, environment: azureml:e:1}
    inputs: {data: {type: mltable, path: azureml:d:1}}
  inner:
    type: pipeline
    component: ./inner.yml
"""
SCHEDULE = """\
name: nightly
trigger: {type: recurrence, frequency: day, interval: 1, schedule: {hours: [2], minutes: [0]}, time_zone: UTC}
create_job: ./nightly.yml
"""
COMPONENT = """\
name: c
version: 1
type: command
inputs:
  data: {type: uri_folder}
  lr: {type: number, default: 0.1, optional: true}
outputs: {model: {type: uri_folder}}
command: python train.py $[[--lr ${{inputs.lr}}]] ${{inputs.data}} ${{outputs.model}}
code: src
environment: azureml:e:1
"""
INNER = "type: pipeline\njobs:\n  a: {type: command, component: ./plain.yml}\n"
PLAIN = "type: command\ncommand: echo\nenvironment: azureml:e:1\n"
PYTHON = """\
from jobs import Bandit, Choice, Cron, Input, Job, Limits, Objective, Output, Pipeline, PerProcess, Random, Schedule
from jobs import SingleNode, Sweep, SweepLimits, TorchRun, Uniform

train = Job(
    name="train",
    command="python train.py --lr ${{inputs.lr}}",
    code="src",
    inputs={"lr": 0.1, "data": Input(path="azureml:d:1")},
    outputs={"model": Output(type="uri_folder", mode="rw_mount")},
    environment="acpt-pytorch-2.8-cuda12.6",
    environment_variables={"NCCL_DEBUG": "INFO"},
    compute="a100",
    nodes=2,
    launcher=TorchRun(nproc_per_node=8),
    limits=Limits(timeout=3600),
    tags={"team": "a"},
)
sweep = Sweep(
    trial=train,
    search_space={"lr": Uniform(min_value=0, max_value=1), "b": Choice(values=(1, 2))},
    objective=Objective(primary_metric="loss", goal="minimize"),
    sampling_algorithm=Random(seed=7),
    limits=SweepLimits(max_total_trials=4),
    early_termination=Bandit(slack_factor=0.5),
)
nightly = Schedule(
    name="n", trigger=Cron(expression="0 2 * * *"), create_job=Pipeline(name="p", jobs={"train": train})
)
job = train
"""
SETTINGS = """\
config:
  amlstack:location: westeurope
  amlstack:workspace: aml-team
  amlstack:tags: {team: a}
  amlstack:clusters:
    - name: a100
      size: Standard_ND96asr_v4
      nodes: {min: 0, max: 2, idle: PT10M}
      priority: dedicated
      tags: {x: y}
    - {name: cpu, size: Standard_DS3_v2, nodes: {max: 1}, single_node_jobs: true}
  amlstack:environments:
    - acpt-pytorch-2.8-cuda12.6
    - {name: own, image: "mcr.microsoft.com/x:1", conda: conda.yml}
  amlstack:jobs:
    - good.yml
    - {file: nightly.yml, rerun: again, on_edit: keep, wait: started}
  amlstack:policies: rules.json
"""
YAMLS = {"command": COMMAND, "sweep": SWEEP, "pipeline": PIPELINE, "schedule": SCHEDULE, "component": COMPONENT}
NEIGHBOURS = {
    "src/train.py": "print(1)\n",
    "good.yml": COMMAND,
    "component.yml": COMPONENT,
    "inner.yml": INNER,
    "plain.yml": PLAIN,
    "nightly.yml": f"type: pipeline\nsettings: {{default_compute: azureml:a100}}\n{INNER.partition(chr(10))[2]}",
    "conda.yml": "dependencies: [python]\n",
    "rules.json": "{}",
}
"""Files that the bad ones may name."""

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    3,
    10**30,
    -(10**19),
    2.5,
    -0.0,
    float("nan"),
    float("inf"),
    1e308,
    "",
    " ",
    "x",
    "2",
    "1e999",
    "\u00e9",
    "\U0001f600",
    "a\nb",
    "a\tb",
    "\u2028",
    "\x7f",
    "x" * 5000,
    "../../..",
    "/",
    "/etc",
    "~",
    "file:",
    "file:///x",
    "azureml:",
    "azureml:a",
    "azureml:a@b@c",
    "azureml://",
    "azureml://datastores/",
    "good.yml",
    "./component.yml",
    "inner.yml",
    "src",
    "https://x/y?sig=" + "A" * 43,
    "${{",
    "${{}}",
    "${{inputs.}}",
    "${{parent.jobs}}",
    "${{inputs.a}}${{inputs.a}}",
    "$[[",
    "[[",
    "{{x}}",
    "%s",
    "{0}",
    "0",
    "null",
    "true",
    "2026-01-01",
    "P1D",
    "PT",
    "10m",
    "-1g",
    "64g",
    "Standard_ND96asr_v4",
    "spot",
    "local",
    "serverless",
    [],
    [None],
    ["a"],
    [[]],
    [{}],
    {},
    {"a": 1},
    {"": ""},
    {None: None},
    {1: 2},
    {"type": "x"},
    {"type": None},
    {"path": ["a"]},
    {"a": {"b": {"c": {}}}},
)
TEXTS = (
    "!!python/object:os.system x",
    "!!binary aGk=",
    "!!set {a, b}",
    "!!timestamp 2026-01-01",
    "!!omap [a: 1]",
    "!foreign x",
    "&a [*a]",
    "&a {b: *a}",
    "*nowhere",
    "<<: {a: 1}",
    "<<: 3",
    "? [a, b]\n: c",
    "{" * 200,
    "[" * 2000,
    "- - - -",
    "a: b: c",
    "|\n  x",
    ">-",
    "%YAML 9.9",
    "---",
    "...",
    "\t- x",
    "'",
    '"',
    "\x00",
    "\x07",
    "\ufeff",
    "\u0085",
    "# only",
    "0o17",
    "0x1F",
    "1_000",
    "12:30:45",
    ".inf",
    ".nan",
    "~",
    "=",
    "2026-13-45",
    "\ud800",
)
LITERALS = (
    "None",
    "True",
    "-1",
    "10**30",
    "float('nan')",
    "float('inf')",
    "''",
    "'x'",
    "b'x'",
    "object()",
    "lambda: 1",
    "print",
    "Job",
    "type",
    "[]",
    "{}",
    "()",
    "{1: 2}",
    "{None: 1}",
    "{'a': object()}",
    "{'': ''}",
    "[[]]",
    "set()",
    "range(3)",
    "iter([])",
    "(x for x in 'ab')",
    "1j",
    "Ellipsis",
    "NotImplemented",
    "train",
    "[train]",
    "{'a': train}",
    "1/0",
    "undefined",
    "'\\ud800'",
    "'x' * 100000",
    "TorchRun()",
    "Input()",
    "Output(path=3)",
    "Exception('x')",
    "circle",
    "[circle]",
    "{'a': circle}",
    "__import__('decimal').Decimal('1')",
    "__import__('pathlib').Path('src')",
    "__import__('datetime').date(2026, 1, 1)",
    "type('S', (str,), {})('x')",
    "type('D', (dict,), {})(a=1)",
)
KINDS = (*(("yaml", name) for name in YAMLS), ("python", "job"), ("python", "job"), ("settings", "stack"))


class Garbage(NamedTuple):
    """A bad file: whether it is a job file or settings, its name, its content."""

    kind: str
    name: str
    content: bytes


def make(seed: int) -> Garbage:
    """The bad file of a number, the same at each call."""
    chance = random.Random(seed)
    kind, name = chance.choice(KINDS)
    if kind == "python":
        return Garbage(kind, "job.py", _python(chance))
    text = SETTINGS if kind == "settings" else YAMLS[name]
    file = "Pulumi.team.yaml" if kind == "settings" else "job.yml"
    way = chance.random()
    if way < 0.6:
        content = _dump(_damaged(yaml.safe_load(text), chance, kind))
    elif way < 0.75:
        content = _dump(_nonsense(chance, _words(yaml.safe_load(text)), kind))
    else:
        content = text
    if way >= 0.75 or chance.random() < 0.1:
        content = _torn(content, chance)
    data = content.encode("utf-8", "surrogatepass")
    if chance.random() < 0.03 and data:
        place = chance.randrange(len(data))
        data = data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
    return Garbage(kind, file, data)


def _dump(value: Any) -> str:
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))


def _damaged(data: Any, chance: random.Random, kind: str) -> Any:
    """One to four entries gone, renamed, of another value, or moved."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        places = [place for place in _places(data) if kind != "settings" or len(place) > 1]
        if not places:
            return data
        place = chance.choice(places)
        holder, key = _at(data, place[:-1]), place[-1]
        match chance.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[
                    chance.choice((f"{key}s", str(key)[:-1], str(key).upper(), "", None, 7, "$schema", "type", "jobs"))
                ] = holder.pop(key)
            case 2:
                holder[key] = [holder[key]]
            case 3:
                holder[key] = copy.deepcopy(_at(data, chance.choice(places)))
            case _:
                holder[key] = copy.deepcopy(chance.choice(VALUES))
    return data


def _nonsense(chance: random.Random, words: list[str], kind: str) -> Any:
    """A tree of known words and any values."""

    def tree(depth: int) -> Any:
        way = chance.random()
        if depth and way < 0.5:
            return {chance.choice(words): tree(depth - 1) for _ in range(chance.randrange(6))}
        if depth and way < 0.6:
            return [tree(depth - 1) for _ in range(chance.randrange(4))]
        return copy.deepcopy(chance.choice(VALUES))

    top = {chance.choice(words): tree(3) for _ in range(chance.randrange(1, 10))}
    top |= chance.choice(
        ({}, {"type": chance.choice(("command", "sweep", "pipeline", "component", "schedule", "spark"))})
    )
    return {"config": {f"amlstack:{key}": value for key, value in top.items()}} if kind == "settings" else top


def _torn(text: str, chance: random.Random) -> str:
    """The text with lines lost, doubled, indented otherwise, cut or with YAML's stranger forms in them."""
    lines = text.split("\n")
    for _ in range(chance.randrange(1, 5)):
        number = chance.randrange(len(lines))
        line = lines[number]
        head, colon, _ = line.partition(": ")
        lines[number] = chance.choice(
            (
                "", f"{line}\n{line}", f"  {line}", line.lstrip(), line[: len(line) // 2], f"- {line}", f"{line} ]",
                f"{head}{colon or ': '}{chance.choice(TEXTS)}", f"{head}{colon or ': '}{chance.choice(TEXTS)}",
                chance.choice(TEXTS), line.replace(":", ""), f"{line}\t", line.replace("'", '"'),
            )
        )  # fmt: skip
    return "\n".join(lines)


def _python(chance: random.Random) -> bytes:
    """The Python file with some of its values and names exchanged, or its lines torn."""
    if chance.random() < 0.2:
        return _torn(PYTHON, chance).encode("utf-8", "surrogatepass")
    tree = ast.parse(PYTHON)
    spots: list[Any] = [node for node in ast.walk(tree) if isinstance(node, (ast.keyword, ast.Constant))]
    for spot in chance.sample(spots, chance.choice((1, 1, 2, 3))):
        if isinstance(spot, ast.Constant):
            spot.value = chance.choice(VALUES[:60])
        elif chance.random() < 0.2:
            spot.arg = chance.choice((f"{spot.arg}s", "nodes", "type", "_x", "model_config"))
        else:
            spot.value = ast.parse(chance.choice(LITERALS), mode="eval").body
    body = "circle = []\ncircle.append(circle)\n" + ast.unparse(tree)
    last = chance.choice(("train", "sweep", "nightly", "train", "sweep", "nightly", *LITERALS))
    more = chance.choice(
        ("", "", "", f"jobs = {chance.choice(LITERALS)}\n", "del job\n", "import nowhere\n", "raise SystemExit\n")
    )
    return f"{body}\njob = {last}\n{more}".encode("utf-8", "surrogatepass")


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: list[tuple[Any, ...]] = []
    for key, each in inner:
        found += [(*place, key), *_places(each, (*place, key))]
    return found


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


def _words(value: Any) -> list[str]:
    return sorted({str(place[-1]).removeprefix("amlstack:") for place in _places(value)})
