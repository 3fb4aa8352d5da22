"""``amlstack environments list``: what the curated environments really contain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from amlstack.catalog import environments
from amlstack.cli.main import main
from tests.support.rows import for_each

if TYPE_CHECKING:
    import pytest


def test_each_environment_is_listed_with_what_its_name_does_not_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["environments", "list"]) == 0
    out = capsys.readouterr().out

    for each in environments.all_environments():
        assert f"{each.name}\n  contains {each.describe()}\n  changed  {each.changed}" in out
    assert out.count("\n  version  ") == sum(bool(each.version) for each in environments.all_environments())
    assert "acpt-pytorch-2.2-cuda12.1\n  contains torch 2.10.0+cu126, CUDA 12.6" in out
    assert "tensorflow-2.16-cuda11\n  contains CUDA 12.3.2" in out


def test_json_gives_the_same_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["environments", "list", "azureml:AzureML-sklearn-1.5@latest", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)

    assert (found["name"], found["contains"]["open_mpi"], found["changed"]) == ("sklearn-1.5", "5.0", "2026-07-20")
    assert found["id_of_latest"] == "azureml://registries/azureml/environments/sklearn-1.5/labels/latest"


def test_an_unknown_name_ends_with_near_misses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["environments", "list", "acpt-pytorch-2.8"]) == 1
    assert "Did you mean `acpt-pytorch-2.8-cuda12.6`" in capsys.readouterr().err


@for_each(
    "reference, name",
    [
        ("azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7", "acpt-pytorch-2.8-cuda12.6"),
        ("azureml://registries/azureml/environments/sklearn-1.5/labels/latest", "sklearn-1.5"),
        ("azureml://registries/azureml/environments/sklearn-1.5", "sklearn-1.5"),
        ("azureml:AzureML-ACPT-pytorch-2.8-cuda12.6@latest", "acpt-pytorch-2.8-cuda12.6"),
        ("AzureML-sklearn-1.5:3", "sklearn-1.5"),
        ("azureml:sklearn-1.5:3", None),
        ("azureml://registries/team/environments/sklearn-1.5/versions/1", None),
        ("/subscriptions/s/resourceGroups/g/environments/sklearn-1.5/versions/1", None),
        ("azureml:AzureML-nothing-1@latest", None),
    ],
)
def test_a_reference_to_a_curated_environment_is_recognised_and_no_other(reference: str, name: str | None) -> None:
    found = environments.curated(reference)

    assert (found.name if found else None) == name
