"""The steps of the weekly workflow on GitHub: what Azure has of sizes, proposed as one pull request."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from tests.support.catalog.sku_server import Azure, served
from tests.support.gitops.forge import Forge
from tests.support.gitops.github import JobRun, Runner
from tests.support.stack.fresh_clone import Clone

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "Standard_ND96asr_v4"
DATA = "amlstack/catalog/data"


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Forge, list[dict[str, JobRun]]]]:
    """Two weeks in which Azure says that a size has one GPU more; then one in which the team's main has it."""
    folder = tmp_path_factory.mktemp("weekly")
    (folder / "clone").mkdir()
    (folder / "azure").mkdir()
    clone = Clone.made(folder / "clone")
    (clone.folder / ".gitignore").write_text(".venv\n__pycache__/\n/.amlstack/\n", "utf-8")
    workflows = clone.folder / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "amlstack-catalogue.yml").write_text(
        (PROJECT / "deploy" / "github" / "amlstack-catalogue.yml").read_text("utf-8"), "utf-8"
    )
    known = next(
        row for row in json.loads((clone.folder / DATA / "sizes.json").read_text("utf-8")) if row["name"] == NAME
    )
    capabilities = {
        "vCPUs": known["vcpus"],
        "MemoryGB": known["memory_gib"],
        "GPUs": known["gpus"] + 1,
        "RdmaEnabled": "True",
    }
    sku = {
        "resourceType": "virtualMachines",
        "name": NAME,
        "family": known["family"],
        "locations": ["westeurope"],
        "capabilities": [{"name": name, "value": str(value)} for name, value in capabilities.items()],
        "restrictions": [],
    }
    with served(Azure([sku], [{"name": NAME, "supportedComputeTypes": ["AmlCompute"]}]), folder / "azure") as env:
        forge = Forge(folder / "forge", "federated")
        bundle = folder / "bundle.pem"
        bundle.write_bytes(Path(env["REQUESTS_CA_BUNDLE"]).read_bytes() + (forge.folder / "authority.pem").read_bytes())
        where = {name: env[name] for name in ("AMLSTACK_ARM_ENDPOINT", "AZURE_AUTHORITY_HOST", "NO_PROXY")}
        where |= dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"), str(bundle))
        path = [str(forge.folder / "bin"), str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]
        where |= {"PATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", "COLUMNS": "200"}
        ids = {"AZURE_PREVIEW_CLIENT_ID": "client", "AZURE_TENANT_ID": "tenant", "AZURE_SUBSCRIPTION_ID": "0"}
        runner = Runner(forge, folder / "runs", where, ids)
        try:
            forge.git("init", "--quiet", "--initial-branch=main", at=clone.folder)
            forge.git("add", "--all", at=clone.folder)
            forge.git("commit", "--quiet", "--message", "Begin", at=clone.folder)
            forge.git("push", "--quiet", str(forge.origin), "HEAD:refs/heads/main", at=clone.folder)
            yield forge, [week(forge, runner) for _ in range(2)]
        finally:
            forge.close()
            clone.close()


def week(forge: Forge, runner: Runner) -> dict[str, JobRun]:
    main = forge.git("rev-parse", "refs/heads/main", at=forge.origin)
    return runner.run("amlstack-catalogue.yml", "schedule", {}, main)


def test_what_azure_has_becomes_one_pull_request(weeks: tuple[Forge, list[dict[str, JobRun]]]) -> None:
    forge, runs = weeks
    for run in runs:
        said = "\n".join(one.text() for one in run.values())
        assert {key: one.result for key, one in run.items()} == {"refresh": "success", "propose": "success"}, said
    (pull,) = forge.state()["pulls"]
    assert pull["head"]["ref"] == "amlstack/catalogue"
    assert pull["body"].startswith("What Azure says of sizes and prices in westeurope.")


def test_only_data_of_the_catalogue_are_changed(weeks: tuple[Forge, list[dict[str, JobRun]]]) -> None:
    forge, _ = weeks
    changed = forge.git("diff", "--name-only", "main", "amlstack/catalogue", at=forge.origin).splitlines()
    assert changed
    assert [name for name in changed if not name.startswith(f"{DATA}/")] == []
    rows: list[dict[str, Any]] = json.loads(forge.git("show", f"amlstack/catalogue:{DATA}/sizes.json", at=forge.origin))
    before: list[dict[str, Any]] = json.loads(forge.git("show", f"main:{DATA}/sizes.json", at=forge.origin))
    gpus = [next(row["gpus"] for row in each if row["name"] == NAME) for each in (before, rows)]
    assert gpus[1] == gpus[0] + 1
