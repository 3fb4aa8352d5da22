from __future__ import annotations

from itertools import permutations

from amlstack.diagnose.diagnosis import report
from amlstack.diagnose.judgement.culprit import first_cause
from tests.support.diagnose.kept_logs import CASES, expected, found, verdict
from tests.support.rows import for_each


@for_each("name", CASES)
def test_verdict_has_the_expected_fields_of_a_case(name: str) -> None:
    one = verdict(name)
    fields, truth = one.as_dict(), expected(CASES[name])
    assert {key: fields[key] for key in truth} == truth
    assert "found" in truth
    assert report(one)


@for_each("name", CASES)
def test_verdict_is_the_same_whatever_the_order_of_files(name: str) -> None:
    logs = found(name).logs
    assert len({repr(first_cause(order).as_dict()) for order in list(permutations(logs))[:24]}) == 1
