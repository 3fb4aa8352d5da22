"""Settings that the configuration marks as secret are seen nowhere: findings, plans, states, the backend's files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base.findings import errors
from infra.settings import from_engine, read_file, stackfile
from infra.settings.model.stack import Settings
from tests.support.harness import STAND_IN, Stack
from tests.support.rows import for_each
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Engine, Sandbox

CANARY = "canary-of-the-settings"
WHOLE: dict[str, Any] = {
    "location": "westeurope",
    "resource_group": "rg",
    "workspace": {"name": "ws-one", "display_name": "One", "description": "text", "name_salt": "salt"},
    "clusters": [
        {"name": "a100", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}, "description": "text", "tags": {"x": "y"}}
    ],
    "tags": {"team": "vision"},
    "jobs": [{"file": "job.py", "rerun": "1"}],
    "policies": "rules.json",
    "armEndpoint": "https://management.azure.com",
}
PASSED_ON = {
    ("tags", "team"),
    ("clusters", 0, "tags", "x"),
    ("clusters", 0, "description"),
    ("workspace", "display_name"),
    ("workspace", "description"),
    ("armEndpoint",),
}


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if place:
        yield place
    for part, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*place, part))


def replaced(place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(json.dumps(WHOLE))
    at: Any = values
    for part in place[:-1]:
        at = at[part]
    at[place[-1]] = value
    return values


@for_each("place", list(places(WHOLE)))
def test_a_secret_setting_is_passed_on_or_refused_and_never_quoted(place: tuple[Any, ...], tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.team.yaml"
    encrypted = {f"amlstack:{key}": value for key, value in replaced(place, {"secure": "AAAB"}).items()}
    path.write_text(yaml.safe_dump({"config": encrypted}))
    file, _ = stackfile.read(path)
    value = CANARY if isinstance(_at(place), str) else _at(place)
    handed = {
        f"amlstack:{key}": one if isinstance(one, str) else json.dumps(one)
        for key, one in replaced(place, value).items()
    }
    for reading in (from_engine(handed, file, [f"amlstack:{place[0]}"]), read_file(path)):
        codes = {finding.code for finding in errors(reading.findings)}
        assert codes == (set() if place in PASSED_ON else {"setting-secret"})
        assert CANARY not in str([finding.as_dict() for finding in reading.findings])
        assert "AAAB" not in str(reading)


def _at(place: tuple[Any, ...]) -> Any:
    value: Any = WHOLE
    for part in place:
        value = value[part]
    return value


def test_without_the_stack_file_all_of_a_key_counts_as_secret() -> None:
    handed = {"amlstack:location": "westeurope", "amlstack:workspace": "ws-one", "amlstack:tags": '{"team": "x<y"}'}
    reading = from_engine(handed, None, ["amlstack:tags"])
    assert reading.secret == {"x<y"}
    assert isinstance(reading.partial, Settings)


def test_a_faulty_secret_is_not_quoted() -> None:
    handed = {"amlstack:location": "westeurope", "amlstack:workspace": "ws-one"}
    reading = from_engine({**handed, "amlstack:tags": json.dumps({"team": CANARY * 20})}, None, ["amlstack:tags"])
    (finding,) = reading.findings
    assert finding.code == "setting-value"
    assert CANARY not in str(finding)


@pytest.mark.engine
def test_the_state_and_the_backend_hold_secret_settings_encrypted_only(
    engine: Engine, sandbox: Sandbox, tmp_path: Path
) -> None:
    there = {**sandbox.environ, "PWD": str(tmp_path / "program")}  # as a shell has it in the project's folder
    stack = Stack.of_project(tmp_path, engine.folders, name="team", env=there, path=(STAND_IN,))
    try:
        stack.set("amlstack:location", "westeurope").set("amlstack:protect", "false")
        stack.set("amlstack:workspace", {"name": "ws-secrets"}).set("amlstack:tags", {"plain": "shown-in-clear"})
        cluster = {"name": "a100", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}, "tags": {"open": "also-shown"}}
        stack.set("amlstack:clusters", [cluster])
        secret = []
        for setting in ("tags.x", "workspace.description", "clusters[0].description", "clusters[0].tags.x"):
            name = f"{CANARY}-{setting.replace('[0]', '').replace('.', '-')}"
            secret += ["--secret", f"amlstack:{setting}={name}"]
        stack.pulumi("config", "set-all", "--path", *secret).ok()
        made = stack.up(preview=True).ok()
        refreshed = stack.up("--refresh").ok()
        assert refreshed.changes == {}
        exported = json.dumps(stack.state())
        path = stack.resources("applicationinsights:Component")["insights"]["id"]
        telemetry = Arm(sandbox.endpoint).get(path).body["properties"]["InstrumentationKey"]
        files = [one.read_text(errors="replace") for one in stack.backend.rglob("*") if one.is_file()]
        assert "shown-in-clear" in exported
        assert "also-shown" in exported
        for seen in (
            exported,
            *files,
            *(f"{one.output}{json.dumps(one.events)}" for one in (made, refreshed)),
        ):
            assert CANARY not in seen
            assert telemetry not in seen
        stack.pulumi("config", "set", "--secret", "--path", "amlstack:clusters[0].size", CANARY).ok()
        refused = stack.preview().failed()
        assert "[setting-secret]" in refused.output
        assert CANARY not in refused.output
    finally:
        stack.close()
