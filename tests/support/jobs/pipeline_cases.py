"""Pipeline job files, one oddity each; `folder` lays out the files that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: trainer
version: 1
display_name: Trainer
description: Trains.
tags: {team: vision}
is_deterministic: false
inputs:
  data: {type: uri_folder, description: images, optional: false}
  lr: {type: number, default: 0.1, min: 0, max: 1}
  epochs: {type: integer, default: 5, min: 1}
  arch: {type: string, enum: [a, b], default: a}
  resume: {type: string, optional: true}
  fast: {type: boolean, default: true}
outputs:
  model: {type: uri_folder, mode: upload, description: weights}
code: ./code
environment: azureml:env:1
resources: {instance_count: 2}
distribution: {type: mpi, process_count_per_instance: 1}
command: >-
  train ${{inputs.data}} ${{inputs.lr}} ${{inputs.epochs}} ${{inputs.arch}} $[[${{inputs.resume}}]]
  ${{inputs.fast}} ${{outputs.model}}
"""
BARE = "command: echo ${{inputs.a}}\nenvironment: {image: x}\ninputs: {a: {type: uri_file}, b: {type: integer}}\n"


def folder(base: Path) -> None:
    """Everything that the files name."""
    for name in ("src", "data", "sub/code"):
        (base / name).mkdir(parents=True)
    (base / "sub" / "component.yml").write_text(COMPONENT)
    (base / "sub" / "bare.yml").write_text(BARE)
    (base / "sub" / "more.yml").write_text(MORE)


BOUNDS = {
    "default-of-data": "{type: uri_folder, default: a}",
    "default-no-number": "{type: number, default: abc}",
    "default-no-truth": "{type: boolean, default: abc}",
    "bounds-of-text": "{type: string, min: 1}",
    "bounds-of-truth": "{type: boolean, max: 1}",
    "bounds-no-number": "{type: integer, min: abc}",
    "bounds-truth": "{type: integer, min: true}",
    "enum-of-numbers": "{type: integer, enum: [1]}",
}
"""Inputs of a component that azure-ai-ml refuses."""
MORE = """\
command: echo ${{inputs.n}} ${{inputs.s}} ${{inputs.t}}
environment: azureml:e:1
name: 7
version:
resources: {instance_count: 1, target: t}
limits: {timeout: 60}
stage: {a: 2024-01-02, b: [1]}
nothing:
empty: {}
additional_includes: [../code]
environment_variables: {A: b}
inputs:
  n: {type: integer, default: true}
  s: {type: string, default: 3}
  t: {type: boolean, default: 'false'}
"""
"""A component with keys that no component has, and defaults of other types."""

STEP = "{type: command, command: 'echo ${{inputs.a}}', environment: 'azureml:e:1', inputs: {a: 1}%s}"


def _step(more: str) -> str:
    return f"jobs: {{t: {STEP % (', ' + more)}}}"


ACCEPTED = {
    "no-steps": "",
    "steps-empty": "jobs: {}",
    "one-step": f"jobs: {{t: {STEP % ''}}}",
    "type-in-capitals": "jobs: {t: {type: Command, command: x, environment: 'azureml:e:1'}}",
    "environment-unsaid": "jobs: {t: {command: x}}",
    "type-unsaid": "jobs: {t: {command: x, environment: 'azureml:e:1'}}",
    "pytorch": _step("distribution: {type: PyTorch, process_count_per_instance: 8}, resources: {instance_count: 2}"),
    "mpi": _step("distribution: {type: MPI, process_count_per_instance: 4}"),
    "tensorflow": _step("distribution: {type: tensorflow, worker_count: 2}"),
    "ray": _step("distribution: {type: ray, port: 1, include_dashboard: false, head_node_additional_args: x}"),
    "a-distribution-each": (
        "jobs:\n"
        f"  a: {STEP % ', distribution: {type: mpi, process_count_per_instance: 2}'}\n"
        f"  b: {STEP % ', distribution: {type: pytorch}'}\n"
        f"  c: {STEP % ', distribution: {type: tensorflow, worker_count: 3, parameter_server_count: 1}'}\n"
        f"  d: {STEP % ''}\n"
    ),
    "empties": _step("resources: {}, limits: {}, tags: {}, environment_variables: {}, queue_settings: {}"),
    "resources": _step("resources: {instance_count: 2, instance_type: S, shm_size: 4g, docker_args: '--ipc=host'}"),
    "resources-lists": _step(
        "resources: {instance_count: 2, properties: {aisupercomputer: {a: 1}}, locations: [e], docker_args: [a, b],"
        " max_instance_count: 3}"
    ),
    "limits": _step("limits: {timeout: 900}"),
    "limits-zero": _step("limits: {timeout: 0}"),
    "services": _step("services: {a: {type: ssh, nodes: all}, b: {type: tensor_board, log_dir: x}}"),
    "services-with-capitals": _step("services: {MyLab: {type: jupyter_lab, properties: {Ab: 1}}}"),
    "identity": _step("identity: {type: managed, client_id: a}"),
    "queue": _step("queue_settings: {job_tier: spot, priority: low}"),
    "variables": _step("environment_variables: {A: 1, B: true, C: x}"),
    "names": _step("display_name: D, description: d, tags: {q: r}"),
    "code": _step("code: src"),
    "inline-environment": "jobs: {t: {command: x, environment: {image: i, conda_file: {dependencies: [a]}}}}",
    "compute": _step("compute: 'azureml:gpu'"),
    "compute-serverless": _step("compute: serverless"),
    "compute-local": _step("compute: local"),
    "pipeline-compute": f"compute: azureml:gpu\njobs: {{t: {STEP % ''}}}",
    "settings": (
        "settings: {default_compute: 'azureml:gpu', default_datastore: 'azureml:ds', continue_on_step_failure: false,"
        " force_rerun: yes}\njobs: {}"
    ),
    "settings-serverless": "settings: {default_compute: Serverless}\njobs: {}",
    "settings-source": "settings: {_source: mine}\njobs: {}",
    "component-more": "jobs: {c: {component: ./sub/more.yml}}",
    "step-nulls": (
        "jobs: {c: {component: ./sub/more.yml, name: , display_name: , description: , experiment_name: , tags: ,"
        " code: , is_deterministic: false}}"
    ),
    "settings-more": "settings: {foo: bar}\njobs: {}",
    "settings-empty": "settings: {}\njobs: {}",
    "pipeline-metadata": (
        "identity: {type: user_identity}\nproperties: {a: b}\ntags: {c: d}\ndescription: x\nname: n\n"
        "display_name: D\nexperiment_name: E\nservices: {a: {type: ssh}}\njobs: {}"
    ),
    "pipeline-inputs": (
        "inputs: {n: 3, f: true, lr: 0.1, s: text, d: {path: 'azureml:x:1', mode: ro_mount}}\njobs: {}"
    ),
    "pipeline-outputs": "outputs: {m: , n: {type: uri_file, path: 'azureml://datastores/d/paths/x'}}\njobs: {}",
    "bound-inputs": (
        "inputs: {n: 3, f: true, lr: 0.1, s: text, d: {type: mltable, path: 'azureml:x:1'},"
        " m: {type: mlflow_model, path: 'azureml:m:1', mode: download}, p: {path: 'azureml:x:1'}}\n"
        "jobs: {t: {command: x, environment: 'azureml:e:1', inputs: {a: '${{parent.inputs.n}}',"
        " b: '${{parent.inputs.f}}', c: '${{parent.inputs.lr}}', d: '${{parent.inputs.s}}', e: '${{parent.inputs.d}}',"
        " g: '${{parent.inputs.m}}', h: {path: '${{parent.inputs.m}}', type: mltable, mode: direct},"
        " i: '${{parent.inputs.p}}', j: 'pre-${{parent.inputs.s}}-post', k: {path: '${{parent.inputs.d}}'}}}}"
    ),
    "literal-inputs": (
        "jobs: {t: {command: x, environment: 'azureml:e:1', inputs: {a: 1, b: 0.5, c: true, d: x, e: '', f: {value: 3},"
        " g: 'azureml:x:1'}}}"
    ),
    "data-inputs": (
        "jobs: {t: {command: x, environment: 'azureml:e:1', inputs: {a: {type: uri_file, path: 'azureml:y:1',"
        " mode: download}, b: {path: data}, c: {type: mltable, path: 'azureml:t:1', mode: eval_mount}}}}"
    ),
    "outputs": (
        "outputs: {m: , n: {type: uri_file, mode: upload}}\n"
        "jobs: {t: {command: x, environment: 'azureml:e:1', outputs: {a: , b: {type: mlflow_model},"
        " c: '${{parent.outputs.m}}', d: {path: '${{parent.outputs.n}}', mode: upload},"
        " e: {path: '${{parent.outputs.n}}'}, f: {type: uri_file, path: 'azureml://datastores/d/paths/y', name: z,"
        " version: 2}, g: {}, h: '${{parent.outputs.n}}'}}}"
    ),
    "steps-hand-on": (
        "outputs: {m: {type: uri_file}}\n"
        "jobs:\n"
        "  a: {command: x, environment: 'azureml:e:1', outputs: {d: {type: mltable, mode: upload}, e: ,"
        " f: '${{parent.outputs.m}}'}}\n"
        "  b: {command: y, environment: 'azureml:e:1', inputs: {d: '${{parent.jobs.a.outputs.d}}',"
        " e: '${{parent.jobs.a.outputs.e}}', f: '${{parent.jobs.a.outputs.f}}', g: {mode: download,"
        " path: '${{parent.jobs.a.outputs.d}}'}, h: '${{parent.jobs.c.outputs.model}}'}}\n"
        "  c: {component: ./sub/component.yml, inputs: {data: '${{parent.jobs.a.outputs.d}}'}}\n"
    ),
    "component": "jobs: {c: {component: ./sub/component.yml, inputs: {data: {path: 'azureml:x:1'}}}}",
    "component-file-prefix": "jobs: {c: {component: 'file:./sub/component.yml', inputs: {data: 'azureml:x:1'}}}",
    "component-text-for-data": "jobs: {c: {component: ./sub/component.yml, inputs: {data: 'azureml:x:1', lr: 0.3}}}",
    "component-overridden": (
        "jobs: {c: {type: command, component: ./sub/component.yml, inputs: {data: 'azureml:x:1', resume: x},"
        " outputs: {model: {type: uri_folder, mode: rw_mount}}, distribution: {type: pytorch,"
        " process_count_per_instance: 4}, resources: {instance_count: 4, shm_size: 4g}, limits: {timeout: 60},"
        " environment_variables: {A: 1}, compute: 'azureml:gpu', display_name: D, tags: {a: b}, comment: why}}"
    ),
    "component-resources-replaced": (
        "jobs: {c: {component: ./sub/component.yml, inputs: {data: 'azureml:x:1'}, resources: {shm_size: 4g}}}"
    ),
    "component-resources-emptied": (
        "jobs: {c: {component: ./sub/component.yml, inputs: {data: 'azureml:x:1'}, resources: {}, limits: {}}}"
    ),
    "component-keys-not-sent": (
        "jobs: {c: {component: ./sub/component.yml, inputs: {data: 'azureml:x:1'}, environment: 'azureml:z:1'}}"
    ),
    "component-more-keys": "jobs: {t: {component: 'azureml:f:1', bogus: {x: 1}}}",
    "component-bare": "jobs: {c: {component: sub/bare.yml, inputs: {a: {type: uri_file, path: 'azureml:x:1'}, b: 3}}}",
    "component-inline": (
        "jobs: {c: {component: {command: x, environment: 'azureml:e:1', inputs: {a: {type: integer}}}, inputs: {a: 1}}}"
    ),
    "component-registered": (
        "jobs: {c: {component: 'azureml://registries/r/components/c/versions/1'}, d: {component: 'azureml:c@latest'},"
        " e: {component: 'azureml:c'}, f: {component: 'azureml:c:2', inputs: {a: 1}, outputs: {o: {type: uri_file}}}}"
    ),
    "component-same-twice": (
        "jobs: {c: {component: ./sub/component.yml, inputs: {data: 'azureml:x:1'}},"
        " d: {component: ./sub/component.yml, inputs: {data: 'azureml:y:1'}}}"
    ),
    "sweep": (
        "jobs: {s: {type: sweep, trial: ./sub/component.yml, inputs: {data: 'azureml:x:1'},"
        " search_space: {lr: {type: uniform, min_value: 0.1, max_value: 1}, epochs: {type: choice, values: [1, 2]}},"
        " objective: {goal: Minimize, primary_metric: a}, sampling_algorithm: random, limits: {max_total_trials: 3,"
        " max_concurrent_trials: 2, timeout: 60, trial_timeout: 30}, compute: 'azureml:gpu'}}"
    ),
    "sweep-full": (
        "jobs: {s: {type: sweep, trial: ./sub/component.yml, inputs: {data: '${{parent.jobs.s.inputs.data}}'},"
        " outputs: {model: }, search_space: {epochs: {type: randint, upper: 3}}, objective: {goal: maximize,"
        " primary_metric: a}, sampling_algorithm: {type: random, seed: 3, rule: sobol}, limits: {max_total_trials: 3},"
        " early_termination: {type: bandit, slack_factor: 0.1}, resources: {instance_count: 2}, queue_settings:"
        " {job_tier: spot}, identity: {type: managed}, display_name: D, tags: {a: b}}}"
    ),
    "sweep-registered": (
        "jobs: {s: {type: sweep, trial: 'azureml:c:1', search_space: {a: {type: lognormal, mu: 0, sigma: 1}},"
        " objective: {goal: maximize, primary_metric: a}, limits: {max_total_trials: 3}, early_termination:"
        " {type: median_stopping}}}"
    ),
    "registered-pipeline": "component: azureml:x:1\ninputs: {a: 1}",
}

REFUSED = {
    **{
        key: f"jobs: {{c: {{component: {{command: x, environment: 'azureml:e:1', inputs: {{n: {value}}}}},"
        " inputs: {n: 'azureml:x:1'}}}"
        for key, value in BOUNDS.items()
    },
    "default-compute-bare": f"settings: {{default_compute: gpu}}\njobs: {{t: {STEP % ''}}}",
    "default-datastore-bare": f"settings: {{default_datastore: ds}}\njobs: {{t: {STEP % ''}}}",
    "pipeline-output-as-text": f"outputs: {{z: abc}}\njobs: {{t: {STEP % ''}}}",
    "step-output-unbound": "jobs: {c: {component: azureml:x:1, outputs: {o: abc}}}",
    "number-as-data": "jobs: {c: {component: ./sub/bare.yml, inputs: {a: 7, b: 1}}}",
    "output-version-alone": f"outputs: {{z: {{type: uri_folder, version: 1}}}}\njobs: {{t: {STEP % ''}}}",
    "type-of-file-in-capitals": "type: Pipeline\njobs: {}",
    "step-name-in-capitals": f"jobs: {{Train: {STEP % ''}}}",
    "step-name-with-dash": f"jobs: {{tr-ain: {STEP % ''}}}",
    "unknown-key": "bogus: 1\njobs: {}",
    "unknown-key-of-a-step": _step("bogus: 1"),
    "bound-to-no-input": (
        "jobs: {t: {command: 'x ${{inputs.a}}', environment: 'azureml:e:1', inputs: {a: '${{parent.inputs.zz}}'}}}"
    ),
    "bound-to-no-step": (
        "jobs: {t: {command: x, environment: 'azureml:e:1', inputs: {a: '${{parent.jobs.q.outputs.z}}'}}}"
    ),
    "bound-without-parent": "inputs: {n: 1}\njobs: {c: {component: azureml:x:1, inputs: {a: '${{inputs.n}}'}}}",
    "bound-to-a-step-without-parent": (
        "jobs: {c: {component: azureml:x:1, outputs: {o: }},"
        " d: {component: azureml:x:1, inputs: {a: '${{jobs.c.outputs.o}}'}}}"
    ),
    "output-bound-without-parent": (
        "outputs: {z: }\njobs: {c: {component: azureml:x:1, outputs: {o: '${{outputs.z}}'}}}"
    ),
    "component-missing": "jobs: {c: {component: ./sub/none.yml}}",
    "step-without-command": "jobs: {t: {environment: 'azureml:e:1'}}",
}
