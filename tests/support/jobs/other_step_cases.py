"""Pipelines with parallel and spark steps and pipelines in them; `folder` lays out the component files they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.jobs import automl_cases, transfer_cases

if TYPE_CHECKING:
    from pathlib import Path

PARALLEL = """\
$schema: https://azuremlschemas.azureedge.net/latest/parallelComponent.schema.json
type: parallel
name: scorer
version: 1
display_name: Scorer
tags: {team: vision}
inputs: {images: {type: mltable}, width: {type: integer, default: 3}}
outputs: {scores: {type: uri_file}}
input_data: ${{inputs.images}}
mini_batch_size: "10"
mini_batch_error_threshold: 3
max_concurrency_per_instance: 2
partition_keys: [day]
retry_settings: {max_retries: 1, timeout: 30}
logging_level: INFO
resources: {instance_count: 3}
task:
  type: run_function
  code: ./code
  entry_script: score.py
  program_arguments: --width ${{inputs.width}}
  environment: azureml:env:1
  append_row_to: ${{outputs.scores}}
"""
SPARK = """\
$schema: https://azuremlschemas.azureedge.net/latest/sparkComponent.schema.json
type: spark
name: cleaner
code: ./code
entry: {file: clean.py}
jars: [a.jar]
environment: azureml:env:1
inputs: {raw: {type: uri_file, mode: direct}}
outputs: {clean: {type: uri_folder, mode: direct}}
conf: {spark.driver.cores: 1, spark.driver.memory: 2g, executor_cores: "2", spark.executor.memory: 2g,
  spark.executor.instances: 2}
args: --in ${{inputs.raw}}
"""
INNER = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineComponent.schema.json
type: pipeline
name: inner
version: 2
display_name: Inner
description: Prepares and trains.
inputs: {data: {type: uri_file}, epochs: {type: integer, default: 3}, rate: {type: number, optional: true}}
outputs: {model: {type: uri_folder}}
jobs:
  prepare:
    command: prepare ${{inputs.data}} ${{inputs.epochs}} ${{outputs.model}}
    environment: azureml:env:1
    code: ./code
    compute: azureml:gpu
    inputs: {data: "${{parent.inputs.data}}", epochs: "${{parent.inputs.epochs}}"}
    outputs: {model: "${{parent.outputs.model}}"}
  train: {type: command, component: ./trainer.yml, inputs: {folder: "${{parent.jobs.prepare.outputs.model}}"}}
"""
DEEP = """\
type: pipeline
inputs: {data: {type: uri_file}}
outputs: {model: {type: uri_folder}}
jobs:
  once: {type: pipeline, component: ./inner.yml, inputs: {data: "${{parent.inputs.data}}"}}
  again:
    type: pipeline
    component: ./inner.yml
    inputs: {data: "${{parent.inputs.data}}", epochs: 5}
    outputs: {model: "${{parent.outputs.model}}"}
"""
TRAINER = "command: t ${{inputs.folder}}\nenvironment: azureml:e:1\ninputs: {folder: {type: uri_folder}}\n"


def folder(base: Path) -> None:
    """The component files, below what the other cases lay out."""
    files = {"parallel": PARALLEL, "spark": SPARK, "inner": INNER, "deep": DEEP, "trainer": TRAINER}
    for name, text in files.items():
        (base / "sub" / f"{name}.yml").write_text(text)
    (base / "src" / "score.py").touch()
    transfer_cases.folder(base)


DATA = "inputs: {d: {type: uri_file, path: 'azureml:x:1'}}\noutputs: {z: {type: uri_file}}\n"
TASK = "task: {type: run_function, code: src, entry_script: score.py, environment: 'azureml:e:1'}"
ONE = "inputs: {d: {type: mltable, path: 'azureml:x:1'}}, input_data: '${{inputs.d}}'"

POOL = "resources: {instance_type: standard_e4s_v3, runtime_version: '3.4'}"
CONF = (
    "conf: {spark.driver.cores: 1, spark.driver.memory: 2g, spark.executor.cores: 2, spark.executor.memory: 2g,"
    " spark.dynamicAllocation.enabled: %s, spark.dynamicAllocation.minExecutors: 1,"
    " spark.dynamicAllocation.maxExecutors: 4}"
)

ACCEPTED = {
    **automl_cases.ACCEPTED,
    **transfer_cases.ACCEPTED,
    "parallel-component": (
        f"{DATA}jobs: {{p: {{type: parallel, component: ./sub/parallel.yml, mini_batch_size: '5kb',"
        " inputs: {images: '${{parent.inputs.d}}'}}}"
    ),
    "parallel-component-changed": (
        f"{DATA}jobs: {{p: {{type: parallel, component: ./sub/parallel.yml, resources: {{instance_count: 7}},"
        " retry_settings: {timeout: 1}, logging_level: DEBUG, error_threshold: 1, environment_variables: {A: b},"
        " inputs: {images: '${{parent.inputs.d}}'}, outputs: {scores: '${{parent.outputs.z}}'}, compute: 'azureml:c'}}"
    ),
    "parallel-inline": f"jobs: {{p: {{type: parallel, {ONE}, outputs: {{o: }}, {TASK}}}}}",
    "parallel-inline-full": (
        f"{DATA}jobs: {{p: {{type: Parallel, {ONE}, outputs: {{o: '${{{{parent.outputs.z}}}}', q: {{mode: rw_mount}}}},"
        " mini_batch_size: '10', resources: {instance_count: 2}, max_concurrency_per_instance: 2, error_threshold: 3,"
        " mini_batch_error_threshold: 5, logging_level: DEBUG, retry_settings: {max_retries: 2, timeout: 60},"
        " environment_variables: {A: b}, identity: {type: user_identity}, partition_keys: [a, b], compute: serverless,"
        " task: {type: run_function, code: src, entry_script: score.py, environment: {image: x},"
        " program_arguments: '--a 1', append_row_to: '${{outputs.o}}'}}}"
    ),
    "parallel-registered": "jobs: {p: {type: parallel, component: 'azureml:x:1', mini_batch_size: '3', tags: {a: b}}}",
    "spark-component": (
        f"{DATA}jobs: {{s: {{type: spark, component: ./sub/spark.yml, inputs: {{raw: '${{{{parent.inputs.d}}}}'}},"
        " resources: {instance_type: Standard_E8S_V3, runtime_version: '3.4'}}}"
    ),
    "spark-inline": (
        "jobs: {s: {type: spark, code: src, entry: {file: score.py}, py_files: [a.py], display_name: D, tags: {a: b},"
        " conf: {spark.driver.cores: 1, spark.driver.memory: 2g, spark.executor.cores: 2, spark.executor.memory: 2g,"
        " spark.executor.instances: 2, more: x}, inputs: {d: {type: uri_file, path: 'azureml:x:1', mode: direct},"
        " k: 3}, outputs: {o: {type: uri_folder, mode: direct}}, args: '--o ${{outputs.o}}', identity: {type: managed},"
        " resources: {instance_type: standard_e4s_v3, runtime_version: 3.4}}}"
    ),
    "spark-class": (
        "jobs: {s: {type: spark, entry: {class_name: a.B}, jars: [a.jar], resources: {instance_type: standard_e4s_v3,"
        " runtime_version: '3.4'}, conf: {spark.driver.cores: 1, spark.driver.memory: 2g, spark.executor.cores: 2,"
        " spark.executor.memory: 2g, spark.executor.instances: 2}}}"
    ),
    "spark-on-a-cluster": (
        "jobs: {s: {type: spark, code: src, entry: {file: score.py}, compute: azureml:synapse, conf:"
        " {spark.driver.cores: 1, spark.driver.memory: 2g, spark.executor.cores: 2, spark.executor.memory: 2g,"
        " spark.executor.instances: 2}}}"
    ),
    "spark-inline-with-a-size-in-capitals": (
        "jobs: {s: {type: spark, code: src, entry: {file: score.py}, resources: {instance_type: Standard_E8S_V3,"
        " runtime_version: '3.4'}, conf: {spark.driver.cores: 1, spark.driver.memory: 2g, spark.executor.cores: 2,"
        " spark.executor.memory: 2g, spark.executor.instances: 2}}}"
    ),
    **{
        f"spark-dynamic-{moving.lower()}-{kind}": (f"jobs: {{s: {{type: spark, {source}, {POOL}}}}}")
        for moving in ("true", "'True'", "false")
        for settings in (CONF % moving,)
        for kind, source in (
            ("inline", f"code: src, entry: {{file: score.py}}, {settings}"),
            ("component", f"component: {{type: spark, code: src, entry: {{file: score.py}}, {settings}}}"),
        )
    },
    "outputs-unsaid-with-any-name": (
        "jobs: {a: {component: 'azureml:c:1', outputs: {a.b: }},"
        " b: {command: x, environment: 'azureml:e:1', outputs: {a-b: }}}"
    ),
    "inputs-in-groups": (
        "jobs: {a: {command: 'x ${{inputs.optimizer.lr}}', environment: 'azureml:e:1', inputs: {optimizer.lr: 0.1}},"
        " b: {component: 'azureml:x:1', inputs: {optimizer.lr: 0.1, warm-up: 3}}}"
    ),
    "pipeline-in-a-pipeline": (
        f"{DATA}jobs: {{i: {{type: pipeline, component: ./sub/inner.yml, inputs: {{data: '${{{{parent.inputs.d}}}}',"
        " epochs: 4}, outputs: {model: {mode: upload}}}}"
    ),
    "pipelines-three-deep": (
        f"{DATA}jobs: {{i: {{type: pipeline, component: ./sub/deep.yml, inputs: {{data: '${{{{parent.inputs.d}}}}'}}}},"
        " j: {command: 'x ${{inputs.a}}', environment: 'azureml:e:1',"
        " inputs: {a: '${{parent.jobs.i.outputs.model}}'}}}"
    ),
    "pipeline-registered": "jobs: {i: {type: pipeline, component: 'azureml:x:1', inputs: {d: 1}}}",
}

REFUSED = {
    "output-in-a-group": "jobs: {c: {component: azureml:x:1, outputs: {a.b: {mode: upload}}}}",
    "pipeline-output-with-a-dash": "outputs: {a-b: }\njobs: {c: {component: azureml:x:1}}",
    **automl_cases.REFUSED,
    **transfer_cases.REFUSED,
    "parallel-task-without-environment": f"jobs: {{p: {{type: parallel, {ONE}, task: {{type: run_function}}}}}}",
    "parallel-of-a-command": "jobs: {p: {type: parallel, component: ./sub/trainer.yml}}",
    "command-of-a-parallel": "jobs: {p: {type: command, component: ./sub/parallel.yml, inputs: {images: a}}}",
    "spark-without-entry": "jobs: {s: {type: spark, code: src}}",
    "spark-unknown-key": "jobs: {s: {type: spark, entry: {file: a.py}, bogus: 1}}",
    "pipeline-without-component": "jobs: {i: {type: pipeline, jobs: {}}}",
    "pipeline-inline": "jobs: {i: {type: pipeline, component: {jobs: {}}}}",
    "pipeline-missing": "jobs: {i: {type: pipeline, component: ./sub/iner.yml}}",
}
