"""Recordings as stories: names of the recorded subscription become words, polls and repetitions one exchange."""

from __future__ import annotations

import json
import re
from collections import Counter
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from amlstack.prove import forms
from tests.support.recordings import answers
from tests.support.recordings.answers import GivenAnswer
from tests.support.recordings.stories import POLL, Exchange, Story

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.recordings.sources import Recorded, Recording

KEPT: Final = frozenset({
    "location", "azure-asyncoperation", "retry-after", "x-ms-error-code", "content-type", "etag", "last-modified",
    "content-range", "accept-ranges", "content-md5", "x-ms-blob-type", "x-ms-lease-state", "x-ms-lease-status",
    "x-ms-server-encrypted", "x-ms-request-server-encrypted", "x-ms-creation-time", "x-ms-version",
    "x-ms-content-crc64", "x-ms-access-tier", "x-ms-access-tier-inferred", "x-ms-blob-committed-block-count",
    "x-ms-copy-status", "x-ms-copy-id", "x-ms-resource-type",
})  # fmt: skip
"""Headers of an answer that clients act on; besides these ``x-ms-meta-…``."""
_ASKED: Final = re.compile(
    r"x-ms-(?:meta-.+|blob-type|blob-content-.+|range|copy-source|rename-source|version|access-tier|properties|lease-.+"
    r"|delete-snapshots|blob-public-access|proposed-lease-id|permissions|content-.+|tags|if-tags|source-.+"
    r"|encryption-algorithm|.*encryption-scope|requires-sync|copy-source-tag-option"
    r"|encryption-context|umask|owner|group|acl|expiry-.+|if-.+)|range|if-.+|content-type"
)
"""Headers of a request that its answer depends on."""
_SIGNED: Final = frozenset({
    "sv", "ss", "srt", "sp", "se", "st", "spr", "sig", "sr", "skoid", "sktid", "skt", "ske", "sks", "skv", "si", "sip",
    "timeout",
})  # fmt: skip
_REPEATED: Final = "etag", "x-ms-lease-id", "x-ms-snapshot", "x-ms-copy-id", "x-ms-version-id", "x-ms-continuation"
"""Headers of an answer whose value a later request may say."""
_OUTSIDE: Final = (
    (re.compile(r"login\.(?:microsoftonline|windows)"), "sign-in, which the recorder leaves without what was said"),
    (re.compile(r"\.(?:inference|experiments|vault|azurecr|queue|file|table)|azureml-test\.net|graph\."), "other host"),
    (re.compile(r"\.api\.azureml"), "service without a public specification"),
)
"""Hosts that are nobody's whom the sandbox stands for, and why."""
SIGNED: Final = "?<sas>"
"""In place of what opens the source of a copy: a signature, or a token in another header."""
_LONG: Final = 12
"""A name of so many letters is met nowhere by chance."""
_HIDDEN_GROUP: Final = "00000"
"""As a whole value of a request, the group's name, which the recorder has hidden."""
_SECRETS: Final = re.compile(r"AccountKey=[^;\"]+")


def story(recording: Recording) -> Story:
    """A recording as it is played; every exchange of it is in the story or counted as left out."""
    words = _words(recording.exchanges)
    left: Counter[str] = Counter()
    made: list[Exchange] = []
    operations: dict[str, tuple[int, str]] = {}
    asked: dict[str, int] = {}
    polled = 0
    said_later = {text for one in recording.exchanges for text in _words_of(one)}
    for one in recording.exchanges:
        address = urlsplit(one.url)
        place = _place(one, words)
        if isinstance(place, str) and not place.startswith("/"):
            left[f"{one.method} {_short(address.hostname)}: {place}"] += 1
            continue
        end = address.path.rstrip("/").lower()
        if one.method == "GET" and end in operations:
            if _followed(made, *operations[end], one, words):
                left[f"{POLL}: the same operation again, its states kept"] += 1
            polled += 1
            continue
        now = _exchange(one, place, words, said_later)
        if now.method in {"GET", "HEAD"}:
            key = f"{now.method} {now.path} {sorted(now.query.items())} {sorted(now.headers.items())}"
            if key in asked:
                left[f"{now.kind}: asked again and nothing written since"] += 1
                if polled and now.path.lower().endswith("/operations"):  # of a deployment, whose end is played before
                    made[asked[key]] = now
                continue
            asked[key] = len(made)
        else:
            asked.clear()
        for header in ("location", "azure-asyncoperation"):  # the latter, where both are one address
            if "peration" in (value := one.headers.get(header, "")):
                operations[urlsplit(value).path.rstrip("/").lower()] = (len(made), header)
        made.append(now)
    return Story(recording.source, recording.date, made, dict(sorted(left.items())))


def _followed(made: list[Exchange], of: int, by: str, one: Recorded, words: Callable[[str], str]) -> bool:
    """Adds a poll to the story, or to the poll of the same operation that is there; True for the latter."""
    body = _answered(one.body, words)
    state = str(body["status"]) if isinstance(body, dict) and "status" in body and by != "location" else str(one.status)
    at = next((at for at, each in enumerate(made) if (each.method, each.of, each.by) == (POLL, of, by)), None)
    states = () if at is None else made[at].answer.states
    states = states if states[-1:] == (state,) else (*states, state)
    now = Exchange(
        POLL, made[of].path, {}, None, {}, GivenAnswer(one.status, _kept(one, words), body, states), of=of, by=by
    )
    if at is None:
        made.append(now)
    else:
        made[at] = now
    return at is not None


def _words_of(one: Recorded) -> Iterator[str]:
    """The values of a request that may repeat an earlier answer."""
    yield from one.sent_headers.values()
    yield from (value for _, value in parse_qsl(urlsplit(one.url).query))


def _exchange(one: Recorded, place: str, words: Callable[[str], str], said_later: set[str]) -> Exchange:
    query = {
        name: words(value)
        for name, value in parse_qsl(urlsplit(one.url).query, keep_blank_values=True)
        if not (place.startswith("/blob/") and name in _SIGNED)
    }
    asked = {name: _moment(one, words(value)) for name, value in one.sent_headers.items() if _ASKED.fullmatch(name)}
    if "x-ms-copy-source-authorization" in one.sent_headers:
        asked["x-ms-copy-source"] += SIGNED
    if not place.startswith("/blob/"):
        asked = {name: value for name, value in asked.items() if name.startswith("if-")}
    sent = _sent(one, place, words)
    answer = GivenAnswer(one.status, _kept(one, words), _said(one, place, words))
    given = {name: one.headers[name] for name in _REPEATED if one.headers.get(name) in said_later}
    return Exchange(one.method, place, query, sent, asked, answer, tuple(_ids(one.body, place, words)), given)


def _moment(one: Recorded, text: str) -> str:
    """A header of a request; a date as seconds before or after the answer, of a signature that there is one."""
    if "sig=" in text:
        return f"{text.partition('?')[0]}{SIGNED}"
    try:
        return f"<now{(parsedate_to_datetime(text) - parsedate_to_datetime(one.headers['date'])).total_seconds():+.0f}>"
    except (ValueError, TypeError, KeyError):
        return text


def _ids(body: Any, place: str, words: Callable[[str], str]) -> Iterator[str]:
    rows = body.get("value") if isinstance(body, dict) else None
    for row in rows[: answers.ROWS] if isinstance(rows, list) else [body]:
        named = row.get("id") if isinstance(row, dict) else None
        if isinstance(named, str) and words(named) != place:
            yield words(named)
        elif isinstance(rows, list):
            yield ""


def _sent(one: Recorded, place: str, words: Callable[[str], str]) -> Any:
    sent = _joined(one.sent) if place.startswith("/blob/") else one.sent
    if place.startswith("/blob/") and not (isinstance(sent, str) and sent.lstrip("\ufeff \n").startswith("<")):
        return int(one.sent_headers.get("content-length", "0"))
    return _masked(_worded(sent, lambda text: "<group>" if text == _HIDDEN_GROUP else words(text)))


def _joined(body: Any) -> Any:
    """The text of a body that the recorder has written as its lines."""
    return "".join(body) if isinstance(body, list) and all(isinstance(row, str) for row in body) else body


def _said(one: Recorded, place: str, words: Callable[[str], str]) -> Any:
    """The body of an answer; the content of a blob is none."""
    if not place.startswith("/blob/"):
        return None if one.body == "null" else _answered(one.body, words)
    text = _joined(one.body)
    if isinstance(text, str):
        text = answers.of_xml(text) if "xml" in one.headers.get("content-type", "") else None
    return None if place.count("/") > 3 and one.status < 300 and "comp" not in one.url else _answered(text, words)


def _answered(body: Any, words: Callable[[str], str]) -> Any:
    return answers.template(_worded(body, words))


def _masked(value: Any) -> Any:
    """A request without secrets; what is in their place is of the same kind."""
    if isinstance(value, dict):
        return {
            key: answers.SECRET if isinstance(inner, str) and inner and answers.is_secret(key) else _masked(inner)
            for key, inner in value.items()
        }
    return [_masked(inner) for inner in value] if isinstance(value, list) else value


def _worded(value: Any, words: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {words(key): _worded(inner, words) for key, inner in value.items()}
    if isinstance(value, list):
        return [_worded(inner, words) for inner in value]
    return words(value) if isinstance(value, str) else value


def _kept(one: Recorded, words: Callable[[str], str]) -> dict[str, str]:
    kept = {name: value for name, value in one.headers.items() if name in KEPT or name.startswith("x-ms-meta-")}
    return {name: forms.written(words(value)).partition("?")[0] for name, value in sorted(kept.items())}


def _place(one: Recorded, words: Callable[[str], str]) -> str:
    """The path of a request in a story, or why it has none there."""
    address = urlsplit(one.url)
    host = address.hostname or ""
    if host.startswith("management.azure."):
        return words(unquote(address.path)).rstrip("/")
    if found := re.fullmatch(r"(.+?)(?:-secondary)?\.(blob|dfs)\.(?:storage\.azure\.net|core\.windows\.net)", host):
        return f"/blob/{words(found[1])}{'' if found[2] == 'blob' else '.dfs'}{words(unquote(address.path))}".rstrip(
            "/"
        )
    if ".api.azureml" in host and address.path.startswith("/history/v1.0/"):
        return words(unquote(address.path)).rstrip("/")
    return next((why for pattern, why in _OUTSIDE if pattern.search(host)), "other host")


def _short(host: str | None) -> str:
    return ".".join(str(host).split(".")[-3:])


def _words(exchanges: list[Recorded]) -> Callable[[str], str]:
    """A function that writes the names of the recorded subscription as words."""
    texts = [one.url for one in exchanges]
    spaces = Counter(
        found.groups()
        for text in texts
        if (
            found := re.search(
                r"(?i)/resourcegroups/([^/]+)/providers/Microsoft\.MachineLearningServices/workspaces/([^/?]+)/", text
            )
        )
    )
    rules: list[tuple[re.Pattern[str], str]] = [
        (re.compile(r"(?i)(/?subscriptions/)[^/\"?&\s']+"), r"\1<sub>"),
        (re.compile(r"https://management\.azure\.com(?::443)?"), "<arm>"),
    ]
    groups = Counter(found[1] for text in texts if (found := re.search(r"(?i)/resourcegroups/([^/?]+)", text)))
    group, space = spaces.most_common(1)[0][0] if spaces else (next(iter(dict(groups.most_common(1))), ""), "")
    if group:
        rules.append((re.compile(rf"(?i)(resourcegroups/){re.escape(group)}(?=[/\"?&\s'.]|$)"), r"\1<group>"))
        if set(group) != {"0"}:  # as recorders write all that they hide
            rules.append((re.compile(rf"^{re.escape(group)}$"), "<group>"))
    if space:
        rules += [
            *([(re.compile(rf"(?<![\w-]){re.escape(space)}"), "<workspace>")] if len(space) >= _LONG else []),
            (re.compile(rf"(?i)(workspaces/){re.escape(space)}(?=[/\"?&\s'.:]|$)"), r"\1<workspace>"),
        ]
    for account, container in _accounts(exchanges):
        rules.append((re.compile(rf"(?<![\w-]){re.escape(account)}(?![\w-])"), "<account>"))
        if container:
            rules.append((re.compile(re.escape(container)), "<blobstore>"))
    rules.append((_SECRETS, f"AccountKey={answers.SECRET}"))
    rules.append((re.compile(r"(?<![\w.-])[\w.+-]+@[\w-]+\.(?:com|net|org)(?!\w)"), "<email>"))

    def words(text: str) -> str:
        for pattern, word in rules:
            text = pattern.sub(word, text)
        return text

    return words


def _accounts(exchanges: list[Recorded]) -> Iterator[tuple[str, str]]:
    """Account and container of the workspace's default datastore; where none is seen, the account that is met most."""
    hosts: Counter[str] = Counter()
    for one in exchanges:
        listed = one.body.get("value") if isinstance(one.body, dict) else None
        for row in listed if isinstance(listed, list) else [one.body]:
            body = row.get("properties") if isinstance(row, dict) and row.get("name") == "workspaceblobstore" else None
            if "/datastores" in one.url and isinstance(body, dict) and body.get("accountName"):
                yield body["accountName"], body["containerName"]
                return
        for text in (one.url, json.dumps(one.body) if "/codes/" in one.url else ""):
            found = re.search(r"https://([^./]+?)(?:-secondary)?\.(?:blob|dfs)\.", text)
            hosts.update([found[1]] if found else [])
    if hosts:
        yield hosts.most_common(1)[0][0], ""
