"""deploy/kubernetes/Dockerfile: linted, of the versions that the project has, and with all that the pack needs.

No image is built: there is no container daemon here. Its lines that need none are run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from amlstack.base.paths import PROJECT, cache
from tests.support.deploy import operator_pod
from tests.support.rows import for_each

DOCKERFILE = operator_pod.FILES / "Dockerfile"
TEXT = DOCKERFILE.read_text("utf-8")
IGNORED = (operator_pod.FILES / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
WITHIN = [line[1:] for line in IGNORED if line.startswith("!")]


def test_the_definition_is_what_hadolint_asks_for() -> None:
    place = cache() / "hadolint"
    environ = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(place)}
    environ.pop("VIRTUAL_ENV", None)
    words = [str(Path(sys.executable).with_name("uv")), "sync", "--quiet", "--frozen", "--only-group", "images"]
    subprocess.run([*words, "--python", sys.executable], cwd=PROJECT, env=environ, check=True)
    done = subprocess.run([place / "bin" / "hadolint", DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_pod_runs_as_the_user_that_the_operator_demands() -> None:
    assert re.findall(r"^USER (.+)$", TEXT, re.MULTILINE) == ["1000:1000"]
    assert "--uid 1000 --gid 1000" in TEXT


def test_engine_and_uv_are_of_the_versions_that_were_tried() -> None:
    lock = tomllib.loads((PROJECT / "uv.lock").read_text("utf-8"))
    (uv,) = (one["version"] for one in lock["package"] if one["name"] == "uv")
    assert f"ARG UV={uv}\n" in TEXT
    assert re.search(r"^ARG ENGINE=pulumi/pulumi-base:3\.\d+\.\d+$", TEXT, re.MULTILINE)


def test_the_manifest_names_what_the_image_has() -> None:
    template = operator_pod.stack_object()["spec"]["workspaceTemplate"]["spec"]
    values = {variable["name"]: variable["value"] for variable in template["env"]}
    assert values["PULUMI_OPTION_POLICY_PACK"] == "/opt/amlstack/policies/analyzer"
    assert "WORKDIR /opt/amlstack\n" in TEXT
    assert os.access(PROJECT / "policies" / "analyzer", os.X_OK)
    (environment,) = template["podTemplate"]["spec"]["initContainers"]
    assert environment["command"] == ["ln", "-s", "/opt/amlstack/.venv", "/share/source/.venv"]
    assert environment["image"] == template["image"]


def test_what_goes_into_the_image_starts_and_judges(tmp_path: Path) -> None:
    for name in WITHIN:
        (tmp_path / name).symlink_to(PROJECT / name)
    (line,) = re.findall(r"^RUN (PYTHONPATH=/opt/amlstack python -c (?:.|\\\n)*?[^\\])\n", TEXT, re.MULTILINE)
    ours = (
        "import sys; strays = [one.__file__ for one in list(sys.modules.values()) if getattr(one, '__file__', None) "
        f"and one.__file__.startswith({str(PROJECT)!r}) and '/.venv/' not in one.__file__]; assert not strays, strays"
    )
    here = line.replace("/opt/amlstack", str(tmp_path))
    script = re.sub(r'-c "([^"]*)"', lambda found: f'-c "{found[1]}; {ours}"', here)
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@for_each("name", ["pyproject.toml", "uv.lock", "Pulumi.yaml", "policies", "amlstack", "infra", "jobs"])
def test_the_context_of_the_build_holds_what_is_copied_and_used(name: str) -> None:
    assert name in WITHIN
    assert (PROJECT / name).exists()
