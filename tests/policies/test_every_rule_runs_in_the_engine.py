"""A rule cannot be written and forgotten: each has a scenario that the real engine runs."""

from __future__ import annotations

from policies import checks, config
from tests.policies import test_costs_in_the_real_engine as of_costs
from tests.policies import test_pack_in_the_real_engine as of_the_pack

EXAMPLES = of_the_pack.test_every_rule_refuses_its_documented_example_in_one_preview
COSTS = of_costs.test_costs_are_nodes_times_hours_times_price_against_the_budget
SCENARIOS = {
    # Every rule that is not a budget in dollars refuses its documented example there.
    **{rule.code: EXAMPLES for rule in checks.RULES if rule.code not in of_the_pack.BUDGETS},
    "cost-per-hour": COSTS,
    "cost-per-job": COSTS,
    "stack-budget": COSTS,
    "template-unresolved": EXAMPLES,
    "checked-at-up": of_the_pack.test_a_size_known_only_at_up_is_announced_at_preview_and_refused_at_up,
    "exception-expired": EXAMPLES,
    "catalogue-old": of_the_pack.test_an_old_pack_says_so_and_remediation_writes_the_one_safe_answer,
}
"""Code of the rule → the test that runs it in the engine."""


def test_every_registered_rule_has_a_scenario() -> None:
    assert set(SCENARIOS) == config.CODES


def test_every_scenario_runs_the_engine() -> None:
    for module in (of_the_pack, of_costs):
        assert module.pytestmark.name == "engine"
    assert {scenario.__module__ for scenario in SCENARIOS.values()} == {of_the_pack.__name__, of_costs.__name__}
