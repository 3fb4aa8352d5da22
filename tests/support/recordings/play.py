"""Plays stories against a running sandbox, each in a workspace of its own, and compares every answer with Azure's."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import time
from dataclasses import dataclass, replace
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import requests

from amlstack.base import paths
from amlstack.prove import forms
from amlstack.sandbox.store.store import Store
from tests.support.recordings import answers, assumed
from tests.support.recordings.answers import ComparedFact, GivenAnswer
from tests.support.recordings.distill import KEPT, SIGNED
from tests.support.recordings.stories import POLL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.server.daemon import Endpoint
    from tests.support.recordings.stories import Exchange, Story

VERSION: Final = "2024-10-01"
"""Of what is set up for a story."""
_RETRIES: Final = 400
_WITH_ID: Final = re.compile(r"\w+\.[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
"""A name that a service makes of another name and an id, as of connections of private endpoints."""
_ENDED: Final = frozenset({"Succeeded", "Failed", "Canceled"})


@dataclass(frozen=True)
class Outcome:
    """The end of one exchange of a story.

    Attributes:
        story, exchange: Whose it is.
        facts: Each fact of Azure's answer or the sandbox's; none where it was not played.
        why: Why it was not: the kind is not emulated, or needs something that is not.
    """

    story: Story
    exchange: Exchange
    facts: tuple[ComparedFact, ...] = ()
    why: str = ""

    @property
    def equal(self) -> bool:
        """True where each fact is equal."""
        return all(one.equal for one in self.facts)


class Player:
    """Plays stories one after the other.

    Args:
        endpoint: A sandbox that holds its jobs, so that what is cancelled has not run.
        polled: Kind → the states that recordings show of it (`stories.polled`).
    """

    def __init__(self, endpoint: Endpoint, polled: Mapping[str, frozenset[str]]) -> None:
        self._endpoint = endpoint
        self._polled = polled
        self._session = requests.Session()
        self._session.verify, self._session.trust_env = str(endpoint.ca), False
        arm, acting, storage = (
            self._token(audience) for audience in (endpoint.url, "https://ml.azure.com", "https://storage.azure.com")
        )
        person = self._token(endpoint.url, person="someone")
        self._callers = {
            who: {"Authorization": f"Bearer {token}", "x-azureml-token": acting}
            for who, token in ((assumed.APPLICATION, arm), (assumed.PERSON, person))
        }
        self._arm = self._callers[assumed.APPLICATION]
        self._blob = {"Authorization": f"Bearer {storage}", "x-ms-version": "2021-06-08"}
        self._stories = 0

    def _token(self, audience: str, person: str = "") -> str:
        one, said = self._endpoint, self._endpoint.token.read_text("utf-8")
        form = {"client_id": one.client, "client_assertion": said, "grant_type": "client_credentials"}
        if person:
            form = {"client_id": one.client, "username": person, "password": said, "grant_type": "password"}
        form["scope"] = f"{audience}/.default"
        answer = self._session.post(f"{one.url}/{one.tenant}/oauth2/v2.0/token", data=form, timeout=60)
        return str(answer.json()["access_token"])

    def play(self, story: Story) -> Iterator[Outcome]:
        """Sets up what the recording found, and plays it; an exchange whose ground is missing is named as such."""
        place, taken, callers = self._ground(story)
        replies: list[requests.Response | None] = []
        without: set[str] = set()
        sent = {path: body for _, path, body in taken}
        there = frozenset(sent)
        for one in story.exchanges:
            if why := _missing(one, replies, without):
                replies.append(None)
                if one.method not in {"GET", "HEAD", POLL} and one.path.startswith("/blob/"):
                    without.add(one.path.lower().replace(".dfs/", "/"))
                yield Outcome(story, one, why=why)
                continue
            self._arm = self._callers[callers.of(one.path)]
            states: tuple[str, ...] = ()
            if one.method == POLL:
                asked_later = self._polled.get(one.kind, frozenset()) - {*one.answer.states}
                reply, states = self._follow(replies[one.of], one.by, one.answer.states, asked_later)
            else:
                reply = self._send(place, one)
            replies.append(reply)
            if reply is None:
                yield Outcome(story, one, (ComparedFact(f"header {one.by}", "followed", answers.ABSENT),))
                continue
            if reply.status_code == 501:
                if "comp" not in one.query or one.method not in {"GET", "HEAD"}:
                    without.add(one.path.lower().replace(".dfs/", "/"))
                yield Outcome(story, one, why=f"not emulated: {_message(reply)}")
                continue
            key = one.path
            if one.method in {"PUT", "PATCH", "POST"} and one.answer.status < 300:
                sent[key] = one.sent
            place.learn(one, reply)
            blob = one.path.startswith("/blob/")
            said = place.answer(
                reply, states, blob=blob, file=blob and one.path.count("/") > 3 and "comp" not in one.query
            )
            azure = _of_its_group(one)
            if key in there and one.kind == "GET computes":
                azure, said = (replace(each, body=answers.of_moment(each.body)) for each in (azure, said))
            yield Outcome(story, one, tuple(answers.compared(azure, said, sent.get(key, one.sent))))

    def _ground(self, story: Story) -> tuple[_Place, list[assumed.Request], assumed.Callers]:
        """A place for a story with all that it takes as given; the requests by which that was made, and by whom."""
        self._stories += 1
        callers = assumed.Callers(story)
        place = _Place(self._endpoint, f"rec{self._stories}")
        for at, theirs in enumerate(assumed.unique_names(story)):
            place.rename(theirs, f"rec{self._stories}other{at}")
        for method, path, body in assumed.workspace(story):
            self._arm = self._callers[callers.of(path)]
            self._made(place, method, path, body)
        place.container = self._container(place)
        taken = assumed.by_story(story)
        with contextlib.closing(Store(paths.home())) as store:
            store.set_quota(assumed.quotas(story))
            for method, path, body in taken:
                self._arm = self._callers[callers.of(path)]
                self._made(place, method, path, body)
            store.set_quota({})
        return place, taken, callers

    def _made(self, place: _Place, method: str, path: str, body: Any) -> None:
        """One request of what a story takes as given, followed to its end; what it does not get, its facts will say."""
        blob = path.startswith("/blob/")
        said = dict(body or {}) if blob else {}
        count = int(said.pop(assumed.COUNT, said.get(assumed.LENGTH, "1") != "0"))
        size = int(said.pop(assumed.LENGTH, count))
        appends = said.get("x-ms-blob-type") == "AppendBlob"
        said["x-ms-blob-type"] = "AppendBlob" if appends else "BlockBlob"
        headers = {**self._blob, **said} if blob else self._arm
        data = b"x" * size if blob and path.count("/") > 3 and not appends else None
        query = {} if blob else {"api-version": assumed.version(path)}
        if blob and path.count("/") == 3:
            query = {"restype": "container"}
        given = None if blob else place.ours(body)
        address = self._endpoint.url + quote(place.ours(path), safe="/()$:'")
        reply = self._session.request(method, address, params=query, data=data, json=given, headers=headers, timeout=60)
        if blob and assumed.LEASED in (body or {}):
            asked = {**self._blob, "x-ms-lease-action": "acquire", assumed.LEASED: body[assumed.LEASED]}
            self._session.put(address, params={**query, "comp": "lease"}, headers=asked, timeout=60)
        for at in range(count) if appends else ():
            piece = b"x" * (size * (at + 1) // count - size * at // count)
            self._session.put(address, params={"comp": "appendblock"}, data=piece, headers=self._blob, timeout=60)
        if reply.status_code >= 400:
            place.refused.append(f"{method} {path}: {reply.status_code} {reply.text[:300]}")
        self._follow(reply, "azure-asyncoperation" if "azure-asyncoperation" in reply.headers else "location")

    def _container(self, place: _Place) -> str:
        path = place.ours(f"{assumed.WORKSPACE}/datastores/workspaceblobstore")
        reply = self._session.get(
            self._endpoint.url + path, params={"api-version": VERSION}, headers=self._arm, timeout=60
        )
        return str(reply.json()["properties"]["containerName"]) if reply.ok else ""

    def _send(self, place: _Place, one: Exchange) -> requests.Response:
        blob = one.path.startswith("/blob/")
        if one.method == "PUT" and one.answer.status == 201:
            place.another(one.path)
        headers = {**(self._blob if blob else self._arm), **place.ours(one.headers)}
        body: dict[str, Any] = {}
        if blob and isinstance(one.sent, int):
            body["data"] = b"x" * one.sent
        elif blob and one.sent is not None:
            body["data"] = place.ours(one.sent).encode()
        elif one.sent is not None:
            body["json"] = place.ours(one.sent)
        path = place.named(place.ours(one.path)).replace(".dfs/", ".dfs.core.windows.net/")
        address = self._endpoint.url + quote(path, safe="/()$:'")
        if one.kind == "GET jobs":
            self._until_queued(address, one)
        if blob and one.answer.status < 300:
            headers |= place.sums(one, headers)
        if headers.get("x-ms-copy-source", "").endswith(SIGNED):
            headers["x-ms-copy-source"] = headers["x-ms-copy-source"].removesuffix(SIGNED)
            headers["x-ms-copy-source-authorization"] = self._blob["Authorization"]
        return self._session.request(
            one.method,
            address,
            params=place.ours(one.query),
            headers=headers,
            timeout=120,
            allow_redirects=False,
            **body,
        )

    def _until_queued(self, address: str, one: Exchange) -> None:
        """Waits for a job that the service had looked at when it was asked for."""
        said = one.answer.body.get("properties", {}) if isinstance(one.answer.body, dict) else {}
        for _ in range(_RETRIES if said.get("status") == "Queued" else 0):
            reply = self._session.get(address, params={"api-version": VERSION}, headers=self._arm, timeout=60)
            if not reply.ok or reply.json()["properties"]["status"] != "NotStarted":
                return

    def _follow(
        self,
        reply: requests.Response | None,
        by: str,
        seen: tuple[str, ...] = ("",),
        passed: frozenset[str] = frozenset(),
    ) -> tuple[requests.Response | None, tuple[str, ...]]:
        """The last answer of an operation, and each status in its order; None where there is none to follow.

        The last state that a client has ``seen`` is no final one where it did not wait for the end, and one after a
        final one is of the result; states that it did not see because it asked later are ``passed`` over.
        """
        last = seen[-1]
        result = reply.headers.get("location") if reply is not None and _ENDED & {*seen[:-1]} else None
        address = reply.headers.get(by) if reply is not None else None
        if not address or "operation" not in address.lower():
            return None, ()
        states: list[str] = []
        for _ in range(_RETRIES):
            reply = self._session.get(address, headers=self._arm, timeout=60)
            running = reply.status_code == 202
            state = str(reply.status_code)
            if by != "location" and reply.status_code == 200:
                state = str(reply.json().get("status"))
                running = state not in _ENDED
            states += [] if states[-1:] == [state] or (running and state in passed) else [state]
            if not running or (state == last and last not in _ENDED):
                break
        if result and states[-1] in _ENDED:  # the client has looked at the result too
            reply = self._session.get(result, headers=self._arm, timeout=60)
            found = reply.json() if reply.status_code == 200 else {}
            states.append(str(found.get("status", reply.status_code)))
        return reply, tuple(states)


class _Place:
    """A story's own names in the sandbox, and back."""

    def __init__(self, endpoint: Endpoint, name: str) -> None:
        self._url, self._name = endpoint.url, name
        self.container = ""
        self.refused: list[str] = []
        self._renamed: dict[str, str] = {}
        self._named: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._unique: dict[str, str] = {}
        self._made: dict[str, int] = {}
        self._subscription = endpoint.subscription

    def ours(self, value: Any) -> Any:
        """A part of a story with the names of this place."""
        if isinstance(value, dict):
            return {self.ours(key): self.ours(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.ours(inner) for inner in value]
        if not isinstance(value, str):
            return value
        if found := re.fullmatch(r"<now([+-]\d+)>", value):
            return formatdate(time.time() + int(found[1]), usegmt=True)
        for theirs, here in self._renamed.items():
            value = value.replace(theirs, here)
        for word, name in (
            ("<sub>", self._subscription), ("<group>", self._name), ("<workspace>", f"{self._name}-ws"),
            ("<account>", f"{self._name}account"), ("<blobstore>", self.container), ("<arm>", self._url),
        ):  # fmt: skip
            value = value.replace(word, name)
        return value

    def rename(self, theirs: str, here: str) -> None:
        """Uses another name for one that is unique in all of Azure."""
        self._renamed[theirs], self._unique[here] = here, theirs

    def sums(self, one: Exchange, headers: Mapping[str, str]) -> dict[str, str]:
        """The digests that a request says or, by its answer, has asked for: a recording has no contents."""
        found, size = {}, one.sent if isinstance(one.sent, int) else 0
        if one.method == "PUT" and ("x-ms-blob-type" in headers or one.query.get("comp") == "appendblock"):
            self._sizes[one.path] = size + (self._sizes.get(one.path, 0) if "comp" in one.query else 0)
        if "x-ms-source-content-md5" in headers:
            source = re.sub(r"https://([^./]+)\.blob\.[^/]+", r"/blob/\1", one.headers["x-ms-copy-source"])
            first, last = re.findall(r"\d+", headers.get("x-ms-source-range", "")) or (
                1,
                self._sizes.get(source.partition("?")[0], 0),
            )
            found["x-ms-source-content-md5"] = _md5(int(last) - int(first) + 1)
        if "x-ms-blob-content-md5" in headers and "comp" not in one.query:
            found["x-ms-blob-content-md5"] = _md5(size)
        if one.query.get("comp") in {"block", "appendblock"} and "content-md5" in one.answer.headers and not found:
            found["content-md5"] = _md5(size)
        if one.query.get("comp") == "blocklist" and "content-md5" in one.answer.headers:
            digest = hashlib.md5(self.ours(one.sent).encode(), usedforsecurity=False).digest()
            found["content-md5"] = base64.b64encode(digest).decode()
        if one.answer.status == 206 and "content-md5" in one.answer.headers:
            found["x-ms-range-get-content-md5"] = "true"
        return found

    def named(self, path: str) -> str:
        """A path with the names of which an answer here said an id where Azure's had another."""
        return _WITH_ID.sub(lambda found: self._named.get(forms.written(found[0]), found[0]), path)

    def another(self, path: str) -> None:
        """Gives a job or code another name here where the recorder has made several of one name."""
        found = re.search(r"/(?:jobs|codes)/[^/]+", path)
        if found:
            turn = self._made[found[0]] = self._made.get(found[0], 0) + 1
            if turn > 1:
                self.rename(found[0], f"{found[0]}-{turn}")

    def learn(self, one: Exchange, reply: requests.Response) -> None:
        """Keeps the name that the service gave where the recording has another: later requests are to say it."""
        if "json" in reply.headers.get("content-type", ""):
            self._named |= {forms.written(name): name for name in _WITH_ID.findall(reply.text)}
        for name, theirs in one.given.items():
            if (here := reply.headers.get(name)) and here != theirs:
                self._renamed[theirs] = here
        if (
            one.method in {"PUT", "POST"}
            and len(one.ids) == 1
            and one.ids[0]
            and reply.status_code < 300
            and reply.content
        ):
            theirs = one.ids[0].rpartition("/")[2]
            here = str(reply.json().get("id", "")).rpartition("/")[2]
            if here and theirs != here:
                self._renamed[theirs] = here

    def answer(self, reply: requests.Response, states: tuple[str, ...], *, blob: bool, file: bool) -> GivenAnswer:
        """An answer as a template, with the words of stories for the names of this place."""
        kept = {
            name.lower(): forms.written(self._words(value)).partition("?")[0]
            for name, value in sorted(reply.headers.items())
            if name.lower() in KEPT or name.lower().startswith("x-ms-meta-")
        }
        body: Any = None
        media = reply.headers.get("content-type", "")
        if reply.content and "json" in media:
            body = self._without_others(reply.json())
        elif reply.content and "xml" in media:
            body = answers.of_xml(reply.text)
        elif reply.content and not blob:
            body = reply.text
        body = None if blob and reply.status_code < 300 and file else answers.template(self._worded(body))
        return GivenAnswer(reply.status_code, kept, body, states)

    def _without_others(self, body: Any) -> Any:
        """A list of the subscription without the rows of other stories."""
        rows = body.get("value") if isinstance(body, dict) else None
        if not isinstance(rows, list):
            return body
        others = re.compile(rf"(?i)/resourceGroups/rec(?!{self._name[3:]}(?:/|$))\d+(?:/|$)")
        return {
            **body,
            "value": [row for row in rows if not (isinstance(row, dict) and others.search(str(row.get("id"))))],
        }

    def _worded(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._words(key): self._worded(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._worded(inner) for inner in value]
        return self._words(value) if isinstance(value, str) else value

    def _words(self, text: str) -> str:
        host = urlsplit(self._url).netloc
        text = re.sub(rf"https://{host}/blob/(\w+)", r"https://\1.blob.core.windows.net", text)
        region = "<region>.api.azureml.ms"  # which the one endpoint stands for too
        text = text.replace(f"azureml://{host}/", f"azureml://{region}/")
        for plane in ("execution", "studioservice"):
            text = text.replace(f"{self._url}/{plane}/", f"https://{region}/{plane}/")
        text = text.replace(f"{self._url}/discovery", f"https://{region}/discovery").replace(self._url, "<arm>")
        for here, theirs in self._unique.items():
            text = text.replace(here, theirs)
        if self.container:
            text = text.replace(self.container, "<blobstore>")
        text = text.replace(f"{self._name}account", "<account>").replace(f"{self._name}-ws", "<workspace>")
        text = re.sub(r"(?i)(subscriptions/)[0-9a-f]{8}-[0-9a-f-]{27}", r"\1<sub>", text)  # of all, as distilled
        return re.sub(rf"(?<![\w-]){self._name}(?![\w-])", "<group>", text)


def _md5(size: int) -> str:
    return base64.b64encode(hashlib.md5(b"x" * size, usedforsecurity=False).digest()).decode()


_GROUP = re.compile(r"(?i)^/subscriptions/<sub>/resourceGroups/([^/<]+)/")


def _of_its_group(one: Exchange) -> GivenAnswer:
    """Azure's answer with the group by which was asked: some recorders have renamed theirs in requests alone."""
    names = {found[1] for each in one.ids if each and (found := _GROUP.match(each))}
    if len(names) != 1 or "/<group>/" not in one.path:
        return one.answer
    text = json.dumps(one.answer.body)
    return replace(one.answer, body=json.loads(text.replace(f"/{names.pop()}/", "/<group>/")))


def _missing(one: Exchange, replies: list[requests.Response | None], without: set[str]) -> str:
    """The reason why an exchange cannot be played; empty where it can."""
    if one.method == POLL and (replies[one.of] is None or replies[one.of].status_code == 501):
        return "needs what is not emulated"
    low = one.path.lower().replace(".dfs/", "/")
    source = one.headers.get("x-ms-copy-source", "").lower()
    source = re.sub(r"https://([^./]+)\.blob\.[^/]+", r"/blob/\1", source).partition("?")[0]
    for each in without:
        inside = low.startswith(f"{each}/") or each in {low, source}
        lists = one.query.get("comp") == "list" or (one.method, one.query.get("resource")) == ("GET", "filesystem")
        if inside or (lists and each.startswith(f"{low}/")):  # a list would show what was not made
            return "needs what is not emulated"
    return ""


def _message(reply: requests.Response) -> str:
    try:
        return str(reply.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return str((answers.of_xml(reply.text) or {}).get("Message", reply.text))
