"""The definitions of initiatives that are known by name: each has a source, a rule that is evaluated, and its uses."""

from __future__ import annotations

from amlstack.base.arm_language.effects import unknown_in
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget
from policies.tenant import library
from policies.tenant.library import AppliedPolicy
from policies.tenant.verdicts import DeclaredStack, judge_policies
from tests.support.rows import for_each

ROWS = library.read_data("definitions")["definitions"]


@for_each("definition_id", ROWS)
def test_a_definition_has_a_source_and_a_rule_that_is_evaluated(definition_id: str) -> None:
    row = ROWS[definition_id]

    assert row["source"]
    assert ("rule" in row) is not bool(row.get("judges"))
    if "rule" in row:
        assert unknown_in(row["rule"]) == ()


def test_every_definition_is_a_member_with_parameters_that_it_has() -> None:
    members = [one for word in library.words() for one in library.initiative(word).members]

    assert {one.id for one in members} == set(ROWS)
    for word in library.words():
        row = library.read_data("initiatives")["initiatives"][word]
        assert row["source"]
        assert row["members_in_all"] >= len(row["members"])
        for one in row["members"]:
            assert set(one.get("parameters", {})) <= set(ROWS[one["definition"]].get("parameters", {}))


WORKSPACE, SUBNETS = "Microsoft.MachineLearningServices/workspaces", "7804b5c7-01dc-4723-969b-ae300cc07ff1"
COMPUTE = f"{WORKSPACE}/computes"
KEYS = "7f40cee6-e933-4d0f-a782-b96615e0f4a6"


@for_each(
    "definition_id, kind, properties, ruling, seen",
    [
        ("438c38d2-3772-465a-a9cc-7a6666a275ce", WORKSPACE, {}, "audits", f"{WORKSPACE}/publicNetworkAccess"),
        (
            "438c38d2-3772-465a-a9cc-7a6666a275ce",
            WORKSPACE,
            {"publicNetworkAccess": "disabled"},
            "passes",
            "",
        ),
        (KEYS, WORKSPACE, {}, "auditIfNotExists", f"{WORKSPACE}/encryption.status"),
        (KEYS, WORKSPACE, {"encryption": {"status": "Enabled"}}, "passes", ""),
        (SUBNETS, COMPUTE, {"computeType": "AmlCompute"}, "audits", f"{COMPUTE}/subnet.id"),
        (SUBNETS, COMPUTE, {"computeType": "AmlCompute", "properties": {"subnet": {"id": "/x"}}}, "passes", ""),
        (SUBNETS, COMPUTE, {"computeType": "Kubernetes"}, "passes", ""),
    ],
)
def test_a_rule_says_what_it_saw_by_the_field(
    definition_id: str, kind: str, properties: object, ruling: str, seen: str
) -> None:
    own_id = f"/subscriptions/s/resourceGroups/g/providers/{WORKSPACE}/w{'/computes/c' if kind == COMPUTE else ''}"
    target = PolicyTarget(kind, own_id, {"location": "westeurope", "properties": properties}, indexed=True)
    definition = library.definitions()[definition_id]
    (one,) = judge_policies([AppliedPolicy(definition_id, definition)], DeclaredStack((target,), PolicyPlace()))

    assert str(one.assessment.ruling) == ruling
    assert not seen or seen in {name for name, _ in one.assessment.outcome.seen}
