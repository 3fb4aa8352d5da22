"""The second token: with which jobs the provider sends it, and for whom it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.provider.arm import ArmClient
from tests.support.provider.fake_arm import Failure
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Wire

PIPELINE = {"jobType": "Pipeline", "jobs": {}}
USER = {"identity": {"identityType": "UserIdentity"}}
FOR_ML = "token-for https://ml.azure.com"


@pytest.mark.parametrize(
    ("properties", "token"),
    [
        ({}, ""),
        ({"identity": {"identityType": "Managed"}}, ""),
        ({"identity": {"identityType": "AMLToken"}}, ""),
        ({"identity": None}, ""),
        (USER, FOR_ML),
        ({**USER, "jobType": "Sweep"}, FOR_ML),
        (PIPELINE, FOR_ML),
        ({**PIPELINE, "identity": {"identityType": "Managed"}}, FOR_ML),
    ],
    ids=["none", "managed", "aml token", "null", "user", "sweep of a user", "pipeline", "pipeline with an identity"],
)
def test_a_pipeline_and_a_job_of_a_user_bring_a_token_for_machine_learning(
    wire: Wire, arm: FakeArm, properties: dict[str, Any], token: str
) -> None:
    wire.job().up(job_inputs(properties=properties))

    assert arm.last("PUT", "/jobs/").acting == token
    assert all(not asked.acting for asked in arm.asked if asked.method != "PUT")


def test_a_repetition_brings_it_again(wire: Wire, arm: FakeArm) -> None:
    arm.failures.append(Failure("PUT", "/jobs/", 500, after=True))
    wire.job().up(job_inputs(properties=PIPELINE))

    assert [asked.acting for asked in arm.asked if asked.method == "PUT"] == [FOR_ML, FOR_ML]
    assert len(arm.created) == 1


def test_a_schedule_of_a_pipeline_brings_none(wire: Wire, arm: FakeArm) -> None:
    action = {"actionType": "CreateJob", "jobDefinition": PIPELINE}
    body = {"properties": {"trigger": {"triggerType": "Cron", "expression": "0 1 * * *"}, "action": action}}
    wire.schedule().up({"workspace": WORKSPACE, "name": "nightly", "body": body})

    assert arm.last("PUT", "/schedules/").acting == ""


@pytest.mark.parametrize(
    ("endpoint", "audience"),
    [
        ("https://management.azure.com", "https://ml.azure.com"),
        ("https://management.usgovcloudapi.net", "https://ml.azure.us"),
        ("https://management.chinacloudapi.cn", "https://ml.azure.cn"),
        ("https://127.0.0.1:1", "https://ml.azure.com"),
    ],
)
def test_each_cloud_has_its_own(endpoint: str, audience: str) -> None:
    assert ArmClient(endpoint).ml_audience == audience
