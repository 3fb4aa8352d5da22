from __future__ import annotations

from itertools import permutations

from amlstack.diagnose.diagnosis import report
from amlstack.diagnose.judgement.culprit import first_cause
from amlstack.diagnose.reading.files import read
from tests.support.diagnose.kept_logs import CASES, expected, verdict
from tests.support.rows import for_each


@for_each("name", CASES)
def test_verdict_has_the_expected_fields_of_a_case(name: str) -> None:
    found = verdict(name)
    fields, truth = found.as_dict(), expected(CASES[name])
    assert {key: fields[key] for key in truth} == truth
    assert "found" in truth
    assert report(found)


@for_each("name", CASES)
def test_verdict_is_the_same_whatever_the_order_of_files(name: str) -> None:
    logs = read([CASES[name]]).logs
    assert len({repr(first_cause(order).as_dict()) for order in list(permutations(logs))[:24]}) == 1
