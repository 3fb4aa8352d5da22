"""Recordings of Azure: what is kept of them, how answers are compared, and that the sandbox does not move away."""

from __future__ import annotations

import functools
import json
import tomllib
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.credentials import scrub
from amlstack.prove import forms
from amlstack.sandbox.server import daemon
from tests.support.recordings import answers, distill, report, stories
from tests.support.recordings.__main__ import RESULTS
from tests.support.recordings.answers import ComparedFact, GivenAnswer, compared
from tests.support.recordings.play import Outcome, Player
from tests.support.recordings.sources import Recorded, Recording
from tests.support.rows import for_each
from tests.support.running import ended_with_us

if TYPE_CHECKING:
    from pathlib import Path

ARM = "https://management.azure.com/subscriptions/5f3c/resourceGroups/group/providers/Microsoft.MachineLearningServices"


@functools.cache
def kept() -> list[stories.Story]:
    return stories.read()


def recorded(method: str, path: str, status: int, body: object = None, **more: Any) -> Recorded:
    asked = {"sent": None, "sent_headers": {}, "headers": {}, **more}
    url = path if path.startswith("https://") else f"{ARM}/{path}?api-version=2024-10-01"
    return Recorded(method, url, asked["sent"], asked["sent_headers"], status, asked["headers"], body)


def test_more_than_a_thousand_exchanges_are_kept_and_a_fifth_of_the_stories_is_held_out() -> None:
    every, distilled, left = report.sources(kept())
    assert sum(distilled.values()) > 1000
    assert sum(every.values()) == sum(distilled.values()) + sum(sum(whys.values()) for whys in left.values())
    assert 0.15 < sum(one.held_out for one in kept()) / len(kept()) < 0.25
    assert all(one.date for one in kept() if one.exchanges)


def test_no_credential_is_kept() -> None:
    for one in kept():
        text = repr(one.exchanges).replace("sig=<sig>", "")
        assert scrub(text) == text, one.name
        assert "eyJ0eXAi" not in text


def test_every_exchange_of_a_recording_is_in_its_story_or_counted_with_a_reason() -> None:
    operation = f"{ARM}/locations/eastus/operationsStatus/1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"
    rows = [
        recorded("GET", "https://login.microsoftonline.com/common", 200),
        recorded("PUT", "workspaces/space/computes/gpu", 201, {}, headers={"azure-asyncoperation": operation}),
        recorded("GET", operation, 200, {"status": "InProgress"}),
        recorded("GET", operation, 200, {"status": "Succeeded"}),
        recorded("GET", "workspaces/space/computes/gpu", 200, {}),
        recorded("GET", "workspaces/space/computes/gpu", 200, {}),
    ]
    story = distill.story(Recording("one", "2026-01-01", rows))
    assert [one.kind for one in story.exchanges] == ["PUT computes", "POLL computes", "GET computes"]
    assert story.exchanges[1].answer.states == ("InProgress", "Succeeded")
    assert len(story.exchanges) + sum(story.left.values()) == len(rows)


def test_names_of_the_subscription_and_secrets_do_not_stay() -> None:
    body = {"id": "/subscriptions/5f3c/resourceGroups/group/x", "key": "b3BlbnNlc2FtZQ==", "createdBy": "Jo Doe"}
    one = recorded("POST", "workspaces/space/datastores/d/listSecrets", 200, body, sent={"password": "hunter2hunter2"})
    (now,) = distill.story(Recording("one", "", [one])).exchanges
    assert now.path.endswith(
        "/<group>/providers/Microsoft.MachineLearningServices/workspaces/<workspace>/datastores/d/listSecrets"
    )
    assert now.answer.body == {
        "id": "/subscriptions/<sub>/resourceGroups/<group>/x",
        "key": "<secret>",
        "createdBy": "<who>",
    }
    assert now.sent == {"password": answers.SECRET}


@for_each(
    "text, form",
    [
        ("2024-05-01T10:00:00.1234567+00:00", "<time.+00:00>"),
        ("2024-05-01T10:00:00Z", "<time Z>".replace(" ", "")),
        ('"0x8DA8B9003A1F1CD"', '"<etag>"'),
        ("id 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed", "id <guid>"),
        ("Wed, 31 Aug 2022 20:33:07 GMT", "<date>"),
    ],
)
def test_what_is_new_in_each_answer_is_compared_by_its_form(text: str, form: str) -> None:
    assert forms.written(text) == form


def test_each_difference_is_named_by_its_path() -> None:
    azure = GivenAnswer(201, {"location": "<arm>/x"}, {"properties": {"a": None, "b": [1, 2], "c": "given", "d": 1}})
    other = GivenAnswer(200, {}, {"properties": {"b": [1], "c": "given", "d": 1.0}})
    found = {
        one.path: (one.azure, one.other)
        for one in compared(azure, other, {"properties": {"c": "given"}})
        if not one.equal
    }
    assert found == {
        "status": ("201", "200"),
        "header location": ("<arm>/x", "absent"),
        "properties.a": ("null", "absent"),
        "properties.b[1]": ("2", "absent"),
        "properties.d": ("1", "1.0"),
    }


def test_what_a_newer_answer_says_is_equal_where_the_sandbox_says_the_same(tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "differences.toml"
    file.write_text('[[difference]]\npath = "a"\nsandbox = "2"\nnewer = true\nreason = "newer (somewhere, 2026)"\n')
    monkeypatch.setattr(report, "DIFFERENCES", file)
    exchange = stories.Exchange("GET", "/subscriptions/x", {}, None, {}, GivenAnswer(200))
    story = stories.Story("one", "2023-01-01", [exchange])
    for said, counts in (("2", (1, 0, 0)), ("3", (0, 0, 1))):
        found = report.table([Outcome(story, exchange, (ComparedFact("a", "1", said),))])
        assert (found.counts(), len(found.newer)) == (counts, counts[0])


def test_rows_of_lists_are_compared_by_their_names() -> None:
    one, two = {"Name": "a", "Size": "1"}, {"Name": "b", "Size": "2"}
    azure = GivenAnswer(200, {}, {"Blobs": {"Blob": [one, two]}, "NextMarker": ""})
    other = GivenAnswer(200, {}, {"Blobs": {"Blob": two}, "NextMarker": ""})
    differ = {fact.path: (fact.azure, fact.other) for fact in compared(azure, other) if not fact.equal}
    assert differ == {"Blobs.Blob rows": ("2", "1")}


def test_the_operations_of_a_deployment_are_compared_by_what_they_make_in_any_order() -> None:
    rows = [
        {"id": "/<operation>", "properties": {"targetResource": {"id": name}, "statusCode": "OK"}}
        for name in ("a", "b")
    ]
    azure, ours = (GivenAnswer(200, body={"value": each}) for each in (rows, rows[::-1]))
    assert all(fact.equal for fact in compared(azure, ours))


def test_an_operations_list_has_what_was_answered_after_the_last_poll() -> None:
    deployment = f"{ARM.partition('/providers/')[0]}/providers/Microsoft.Resources/deployments/d"
    operation = f"{deployment}/operationStatuses/1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"
    rows = [
        recorded("PUT", deployment, 201, {}, headers={"azure-asyncoperation": operation}),
        recorded("GET", operation, 200, {"status": "Accepted"}),
        recorded("GET", f"{deployment}/operations", 200, {"value": []}),
        recorded("GET", operation, 200, {"status": "Succeeded"}),
        recorded("GET", f"{deployment}/operations", 200, {"value": [{"id": "one"}]}),
    ]
    story = distill.story(Recording("one", "2026-01-01", rows))
    assert [one.answer.body for one in story.exchanges][2] == {"value": [{"id": "one"}]}


def test_a_text_of_an_old_story_is_compared_by_a_form_that_is_known_since() -> None:
    old, now = (
        GivenAnswer(200, body={"operationId": "17434977C0ABF4F3"}),
        GivenAnswer(200, body={"operationId": "AB" * 8}),
    )
    assert all(fact.equal for fact in compared(old, now))


def test_the_states_of_a_poll_are_all_that_recordings_of_its_kind_show() -> None:
    shown = stories.polled(kept())
    assert shown["POLL virtualNetworks"] == {"InProgress", "Succeeded"}


def test_a_body_that_was_recorded_as_its_lines_is_sent_whole_and_a_source_keeps_that_it_was_signed() -> None:
    base = "https://account.blob.core.windows.net/box"
    rows = [
        recorded("PUT", f"{base}/a?comp=blocklist", 201, sent=["<?xml version='1.0'?>\n", "<BlockList/>"]),
        recorded("PUT", f"{base}/b", 201, sent_headers={"x-ms-copy-source": f"{base}/a?sv=1&sig=abc"}),
    ]
    first, second = distill.story(Recording("one", "2026-01-01", rows)).exchanges
    assert first.sent == "<?xml version='1.0'?>\n<BlockList/>"
    assert second.headers == {"x-ms-copy-source": f"https://<account>.blob.core.windows.net/box/a{distill.SIGNED}"}


@pytest.mark.tools
def test_the_sandbox_stays_as_near_to_azure_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path))
    with ended_with_us(tmp_path):
        player = Player(daemon.up(tmp_path, hold_jobs=True), stories.polled(kept()))
        try:
            shown = report.table(outcome for one in stories.quick(kept()) for outcome in player.play(one))
        finally:
            daemon.down(tmp_path)
    now, before = (
        Counter(dict(zip(report.COUNTS, shown.counts(), strict=True))),
        json.loads(RESULTS.read_text())["quick"],
    )
    assert now["without a reason"] <= before["without a reason"], "\n".join(report.differing(shown))
    assert now["equal"] >= before["equal"]


def test_a_newer_answer_is_named_by_what_it_says() -> None:
    rows = tomllib.loads(report.DIFFERENCES.read_text("utf-8"))["difference"]
    assert [row for row in rows if row.get("newer") and row.get("sandbox", ".*") == ".*"] == []
