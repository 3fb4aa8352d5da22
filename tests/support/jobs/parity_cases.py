"""Command job files, one oddity each; `folder` lays out the files that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

BASE = {"command": "echo hi", "environment": "azureml:env:1"}

# Name → lines that are added to BASE, or replace its keys.
ACCEPTED = {
    "nothing-else": "",
    "schema-and-type": "$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json\ntype: command\n",
    "keys-of-the-service": "status: Running\nid: x\ncreation_context: {a: 1}\nlog_files: {a: b}\nparameters: {a: b}\n",
    "key-twice": "description: first\ndescription: last\n",
    "environment-named": "environment: {image: x, name: , version: [1]}\n",
    "names": "name: run-1\ndisplay_name: A run\nexperiment_name: a b\ndescription: ''\nparent_job_name: p\n",
    "command-empty": "command: ''\n",
    "command-folded": "command: >-\n  python a.py\n  --lr 1 &&\n  echo $RANK ${RANK} $[[opt]]\n",
    "command-old-bindings": "command: echo {inputs.a} ${{ inputs.a }} {{inputs.a}}\ninputs: {a: 1}\n",
    "command-optional-input": "command: echo $[[--b ${{inputs.b}}]]\ninputs: {a: 1}\n",
    "code-folder": "code: src\n",
    "code-here": "code: .\n",
    "code-empty": "code: ''\n",
    "code-one-file": "code: data/x.txt\n",
    "code-git": "code: git+https://example.org/x/y\n",
    "code-address": "code: https://example.org/x.zip\n",
    "code-registered": "code: azureml:c:1\n",
    "code-registry": "code: azureml://registries/r/codes/c/versions/1\n",
    "literals": (
        "inputs:\n  a: 1\n  b: true\n  c: 0.01\n  d: 1e-4\n  e: 1.0e+20\n  f: yes\n  g: '1'\n  h: 1.0\n"
        "  i: 12345678901234567890\n  j: ''\n  k: 0x1F\n  l: 1_000\n  m: 12:30\n  n: 0.1e-3\n  o: -0.0\n  p: Off\n"
    ),
    "literal-values": "inputs:\n  a: {value: 3}\n  b: {value: true}\n  c: {value: x}\n",
    "literal-uri": "inputs:\n  a: azureml://datastores/d/paths/x\n  b: azureml:x:1\n",
    "inputs-empty": "inputs: {}\n",
    "input-types": (
        "inputs:\n  a: {type: uri_folder, path: 'azureml:x:1', mode: ro_mount}\n  b: {path: 'azureml:x@latest'}\n"
        "  c: {type: mltable, path: 'azureml:x:1', mode: eval_mount}\n"
        "  d: {type: mltable, path: 'azureml:x:1', mode: eval_download}\n"
        "  e: {type: mlflow_model, path: 'azureml:x:1', mode: download}\n"
        "  f: {type: uri_file, path: 'azureml://datastores/d/paths/x', mode: direct}\n"
        "  g: {type: triton_model, path: 'https://x/y'}\n"
        "  h: {type: URI_FOLDER, path: 'wasbs://x@y/z', mode: DOWNLOAD}\n"
        "  i: {type: custom_model, path: 'azureml:m:3'}\n"
    ),
    "input-without-version": "inputs:\n  a: {path: 'azureml:x'}\n",
    "input-without-path": "inputs:\n  a: {type: uri_file}\n  b: {}\n",
    "input-local": "inputs:\n  a: {path: data}\n  b: {type: uri_file, path: 'file:data/x.txt'}\n",
    "input-local-missing": "inputs:\n  a: {path: nowhere}\n",
    "input-datastore": "inputs:\n  a: {path: data, datastore: d}\n",
    "input-arm-id": (
        "inputs:\n  a: {path: 'azureml:/subscriptions/s/resourceGroups/g/providers/"
        "Microsoft.MachineLearningServices/workspaces/w/data/x/versions/1'}\n"
    ),
    "input-registry": "inputs:\n  a: {path: 'azureml://registries/r/data/x/versions/1'}\n",
    "input-bound": "inputs:\n  a: {path: '${{parent.inputs.x}}'}\n",
    "outputs": (
        "outputs:\n  a:\n  b: {}\n  c: {type: uri_file, mode: upload}\n"
        "  d: {type: uri_folder, name: foo, version: 2, path: 'azureml://datastores/d/paths/x', mode: mount}\n"
        "  e: {mode: direct, name: x, version: 1.0}\n  f: {type: mlflow_model, mode: Upload}\n"
        "  g: {type: mltable, mode: rw_mount}\n"
    ),
    "bindings-of-nothing": "command: echo ${{outputs.b}} ${{input.a}} ${{ inputs.a }}\n",
    "variable-of-the-launcher": "distribution: {type: pytorch}\nenvironment_variables: {MASTER_PORT: 1}\n",
    "variables": "environment_variables: {A: true, B: 1, C: 0.1, D: null, E: 2024-01-01, F: [1, {a: b}], G: x, 1: x}\n",
    "variables-empty": "environment_variables: {}\n",
    "variables-one-is-value": "environment_variables: {value: 1}\n",
    "environment-registry-version": "environment: azureml://registries/azureml/environments/a/versions/1\n",
    "environment-registry-label": "environment: azureml://registries/azureml/environments/a/labels/latest\n",
    "environment-label": "environment: azureml:AzureML-a@latest\n",
    "environment-without-version": "environment: azureml:foo\n",
    "environment-version-with-dots": "environment: azureml:e:1.0\n",
    "environment-arm-id": (
        "environment: azureml:/subscriptions/a/resourceGroups/b/providers/Microsoft.MachineLearningServices/"
        "workspaces/w/environments/e/versions/1\n"
    ),
    "environment-image": "environment: {image: x}\n",
    "environment-conda-file": "environment: {image: x, conda_file: conda.yml}\n",
    "environment-file": "environment: file:sub/env.yml\n",
    "environment-conda-inline": "environment: {image: x, conda_file: {name: a, dependencies: [b]}}\n",
    "environment-build": "environment: {build: {path: ctx, dockerfile_path: D}}\n",
    "environment-build-address": "environment: {build: {path: 'https://example.org/a.git'}}\n",
    "environment-full": (
        "environment: {build: {path: ctx}, os_type: Linux, tags: {a: b}, description: d, name: n, version: 3}\n"
    ),
    "environment-inference": (
        "environment: {image: x, inference_config: {liveness_route: {port: 1, path: /}, "
        "scoring_route: {port: 1, path: /}, readiness_route: {port: 1, path: /}}}\n"
    ),
    "pytorch": "distribution: {type: PyTorch}\n",
    "pytorch-count-as-text": "distribution: {type: pytorch, process_count_per_instance: '4'}\n",
    "pytorch-count-as-float": "distribution: {type: pytorch, process_count_per_instance: 4.0}\n",
    "pytorch-count-cut": "distribution: {type: pytorch, process_count_per_instance: 4.5}\n",
    "tensorflow": "distribution: {type: TensorFlow, worker_count: 2}\n",
    "tensorflow-servers": "distribution: {type: tensorflow, worker_count: 2, parameter_server_count: 1}\n",
    "tensorflow-bare": "distribution: {type: tensorflow}\n",
    "mpi": "distribution: {type: MPI, process_count_per_instance: 2}\n",
    "ray": (
        "distribution: {type: ray, port: 1, address: a, include_dashboard: yes, dashboard_port: 2, "
        "head_node_additional_args: x, worker_node_additional_args: y}\n"
    ),
    "limits": "limits: {timeout: 900}\n",
    "limits-text": "limits: {timeout: '90'}\n",
    "limits-cut": "limits: {timeout: 90.7}\n",
    "limits-zero": "limits: {timeout: 0}\n",
    "limits-days": "limits: {timeout: 100000}\n",
    "limits-one-day": "limits: {timeout: 86400}\n",
    "limits-weeks": "limits: {timeout: 1209600}\n",
    "limits-year": "limits: {timeout: 31536000}\n",
    "limits-empty": "limits: {}\n",
    "compute-local": "compute: Local\n",
    "compute-local-resources": "compute: local\nresources: {instance_count: 2, properties: {a: 1}}\n",
    "compute-name": "compute: gpu\n",
    "compute-reference": "compute: azureml:gpu\n",
    "compute-arm-id": "compute: azureml:/subscriptions/x/y\n",
    "resources": (
        "resources: {instance_count: '2', instance_type: Standard_ND40rs_v2, shm_size: 4g, docker_args: '--ipc=host', "
        "locations: [eastus], max_instance_count: 4, properties: {aisupercomputer: {a: 1, b: null}, foo: bar}}\n"
    ),
    "resources-singularity": "resources: {properties: {Singularity: {a: 1}, ITP: 1, Target_Selector: 2}}\n",
    "resources-empty": "resources: {}\n",
    "resources-argument-list": (
        "resources: {instance_count: 2, docker_args: ['a', 'b'], locations: [eastus], max_instance_count: 4}\n"
    ),
    "resources-empty-lists": "resources: {instance_count: 2.0, docker_args: [], locations: []}\n",
    "resources-empty-texts": "resources: {shm_size: '', docker_args: ''}\n",
    "resources-null-property": "resources: {properties: {a: null}}\n",
    "queue": "queue_settings: {job_tier: Spot, priority: HIGH}\n",
    "queue-null-tier": "queue_settings: {job_tier: 'null'}\n",
    "queue-priority": "queue_settings: {priority: low}\n",
    "queue-empty": "queue_settings: {}\n",
    "identity-managed": "identity: {type: managed}\n",
    "identity-managed-identity": "identity: {type: managed_identity, client_id: a}\n",
    "identity-managed-client": "identity: {type: Managed, client_id: a, object_id: b}\n",
    "identity-user": "identity: {type: UserIdentity}\n",
    "identity-user-snake": "identity: {type: user_identity}\n",
    "identity-token": "identity: {type: AMLToken}\n",
    "identity-token-snake": "identity: {type: aml_token}\n",
    "services": (
        "services:\n  a: {type: ssh, ssh_public_keys: k, nodes: all}\n  b: {type: tensor_board, log_dir: x, port: 60}\n"
        "  c: {type: vs_code}\n  d: {type: jupyter_lab, nodes: all}\n  e: {type: Custom, port: 1}\n"
        "  f: {type: JUPYTER_LAB, properties: {a: 1, b: true}}\n  g: {port: 80}\n"
        "  h: {type: Studio, endpoint: x, status: y}\n  i: {type: tensor_board, log_dir: x, properties: {logDir: z}}\n"
        "  j: {log_dir: x}\n  k: {type: SSH, ssh_public_keys: a}\n  l: {type: JupyterLab}\n  m: {}\n"
    ),
    "services-empty": "services: {}\n",
    "tags": "tags: {a: b, c: null}\nproperties: {a: b, c: null, _azureml.ComputeTargetType: x}\n",
    "anchors": "tags: &t {a: b}\nproperties: {<<: *t, c: d}\n",
    "byte-order-mark": "\ufefftags: {a: b}\n",
}

REFUSED = {
    "output-version-alone": "outputs:\n  o: {version: 1}\n",
    "output-name": "outputs:\n  o: {name: a.b}\n",
    "environment-properties": "environment: {image: x, properties: {a: b}}\n",
    "timeout-endless": "limits: {timeout: 99999999999999999}\n",
    "resources-null": "resources:\n",
    "unknown-key": "foo: bar\n",
    "unknown-input-key": "inputs:\n  a: {path: data, tpye: uri_file}\n",
    "type-letter-case": "type: Command\n",
    "command-number": "command: 3\n",
    "command-none": "command:\n",
    "code-missing": "code: nosrc\n",
    "input-none": "inputs:\n  a:\n",
    "input-date": "inputs:\n  a: 2024-01-01\n",
    "input-infinite": "inputs:\n  a: .inf\n",
    "input-list": "inputs:\n  a: [1, 2]\n",
    "input-of-a-component": "inputs:\n  a: {type: string}\n",
    "input-eval-mount": "inputs:\n  a: {type: uri_folder, path: 'azureml:x:1', mode: eval_mount}\n",
    "input-rw-mount": "inputs:\n  a: {type: uri_folder, path: 'azureml:x:1', mode: rw_mount}\n",
    "input-name": "inputs:\n  a-b: 1\n",
    "input-name-number": "inputs:\n  1: 1\n",
    "input-undefined": "command: echo ${{inputs.b}}\ninputs: {a: 1}\n",
    "output-text": "outputs:\n  a: azureml://x\n",
    "variables-none": "environment_variables:\n",
    "tags-number": "tags: {a: 1}\n",
    "name-number": "name: 123\n",
    "description-none": "description:\n",
    "distribution-none": "distribution:\n",
    "distribution-empty": "distribution: {}\n",
    "distribution-unknown": "distribution: {type: foo}\n",
    "distribution-foreign-key": "distribution: {type: mpi, worker_count: 1}\n",
    "distribution-count-bool": "distribution: {type: pytorch, process_count_per_instance: true}\n",
    "limits-bool": "limits: {timeout: true}\n",
    "compute-none": "compute:\n",
    "compute-number": "compute: 3\n",
    "queue-tier-none": "queue_settings: {job_tier: null}\n",
    "queue-tier-unknown": "queue_settings: {job_tier: gold}\n",
    "identity-resource": "identity: {type: managed, msi_resource_id: c}\n",
    "identity-user-with-client": "identity: {type: user_identity, client_id: a}\n",
    "service-nodes": "services:\n  e: {type: ssh, nodes: '0'}\n",
    "service-foreign-key": "services:\n  e: {type: tensor_board, ssh_public_keys: a}\n",
    "service-none": "services:\n  e:\n",
    "environment-plain": "environment: foo\n",
    "environment-plain-version": "environment: foo:1\n",
    "environment-both": "environment: {image: x, build: {path: ctx}}\n",
    "environment-neither": "environment: {}\n",
    "environment-conda-missing": "environment: {image: x, conda_file: missing.yml}\n",
    "environment-conda-prefix": "environment: {image: x, conda_file: 'file:conda.yml'}\n",
    "environment-bare-arm-id": (
        "environment: /subscriptions/a/resourceGroups/b/providers/Microsoft.MachineLearningServices/workspaces/w/"
        "environments/e/versions/1\n"
    ),
}


def text(lines: str) -> str:
    """The file's text: BASE, as far as the lines do not replace its keys."""
    kept = [f"{key}: {value}" for key, value in BASE.items() if f"\n{key}:" not in f"\n{lines}"]
    start = "\ufeff" if lines.startswith("\ufeff") else ""
    return start + "\n".join((*kept, lines.removeprefix("\ufeff")))


def folder(path: Path) -> None:
    """The files that the cases name."""
    for name in ("src", "data", "ctx"):
        (path / name).mkdir()
    (path / "src" / "train.py").write_text("print(1)\n")
    (path / "data" / "x.txt").write_text("x\n")
    (path / "ctx" / "Dockerfile").write_text("FROM scratch\n")
    (path / "conda.yml").write_text("name: a\ndependencies: [python]\n")
    (path / "sub").mkdir()
    (path / "sub" / "env.yml").write_text("image: y\nname: foo\nconda_file: ../conda.yml\n")
