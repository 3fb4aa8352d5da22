"""Entries of `deploy` and `preview` of the stack that makes the place for states."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from amlstack.base.paths import PROJECT

ISSUER = "https://oidc.prod-aks.azure.com/0a3c1f6e"


@pytest.fixture(scope="module")
def trust() -> Any:
    """The module beside the program, which is on no path of ours."""
    spec = importlib.util.spec_from_file_location("state_trust", PROJECT / "deploy" / "state" / "trust.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "state_trust", module)  # dataclasses look their module up
        spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("entry", "name", "subject"),
    [
        (
            {"github": "a/b", "environment": "production"},
            "repo-a-b-environment-production",
            "repo:a/b:environment:production",
        ),
        ({"github": "a/b.c", "branch": "main"}, "repo-a-b-c-ref-refs-heads-main", "repo:a/b.c:ref:refs/heads/main"),
        ({"github": "a/b", "pull_request": True}, "repo-a-b-pull-request", "repo:a/b:pull_request"),
        (
            {"kubernetes": ISSUER, "namespace": "ml", "service_account": "aml-prod"},
            "system-serviceaccount-ml-aml-prod",
            "system:serviceaccount:ml:aml-prod",
        ),
        ({"issuer": "https://vstoken.dev.azure.com/1", "subject": "sc://o/p/c"}, "sc-o-p-c", "sc://o/p/c"),
    ],
)
def test_an_entry_is_an_issuer_and_a_subject(trust: Any, entry: dict[str, Any], name: str, subject: str) -> None:
    found = trust.read(entry, "deploy[0]")
    assert (found.name, found.subject) == (name, subject)
    assert found.issuer.startswith("https://")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("a/b", "a mapping is expected"),
        ({}, "`github`, `kubernetes` or `issuer` is needed"),
        ({"github": "a"}, "`github` must be ORGANIZATION/REPOSITORY, got `a`"),
        ({"github": "a/b"}, "exactly one of `environment`, `branch`, `pull_request` is needed"),
        ({"github": "a/b", "branch": "main", "pull_request": True}, "exactly one of"),
        ({"github": "a/b", "brnch": "main"}, "unknown: `brnch`"),
        ({"kubernetes": ISSUER, "namespace": "ml"}, "`namespace` and `service_account` are needed"),
        ({"kubernetes": "oidc.example", "namespace": "ml", "service_account": "a"}, "must be an https address"),
        ({"issuer": ISSUER}, "`subject` is needed"),
    ],
)
def test_an_entry_of_no_form_is_refused_with_the_forms(trust: Any, entry: Any, message: str) -> None:
    with pytest.raises(trust.TrustError) as caught:
        trust.read(entry, "preview[2]")
    assert str(caught.value).startswith("preview[2]: ")
    assert message in str(caught.value)
    assert "pull_request: true" in str(caught.value)


def test_a_credential_has_a_name_that_azure_takes_however_long_its_subject(trust: Any) -> None:
    entry = {"github": f"organization/{'x' * 90}", "environment": "a b" * 20}
    assert 3 <= len(trust.read(entry, "deploy[0]").name) <= 120


def test_a_repository_alone_stands_for_what_the_workflows_of_a_stack_need(trust: Any) -> None:
    found = trust.of_stacks({"dev": "a/b", "prod": {"plan": [{"github": "a/b", "branch": "main"}]}})
    assert {key: [one.subject for one in each] for key, each in found["dev"].items()} == {
        "deploy": ["repo:a/b:environment:dev"],
        "plan": ["repo:a/b:ref:refs/heads/main"],
        "preview": ["repo:a/b:pull_request"],
    }
    assert [len(each) for each in found["prod"].values()] == [0, 1, 0]


@pytest.mark.parametrize("given", [{"Dev_1": "a/b"}, {"dev": 1}, {"dev": {"deplyo": []}}])
def test_a_stack_without_a_name_or_entries_that_can_be_is_refused(trust: Any, given: Any) -> None:
    with pytest.raises(trust.TrustError, match=r"^stacks\."):
        trust.of_stacks(given)
