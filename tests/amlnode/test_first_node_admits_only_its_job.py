"""A host that merely reaches the first node's port learns nothing and gets no command."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from amlnode.rank import NodeError
from amlnode.remote.agent import CommandAgent
from amlnode.remote.hub import Connection, Hub, HungUpError, proof

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOB = "secret-name-of-the-run"


class PortedHub(Hub):
    """With the port that nodes call."""

    port: int


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[PortedHub]:
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.2)
    deep = tmp_path / "folders-for-temporary-files" / ("deeper" * 12)  # a socket's path has 107 bytes at most
    deep.mkdir(parents=True)
    made = PortedHub(server, deep / "socket", JOB, ["node-0", "node-1"])
    made.port = server.getsockname()[1]
    yield made
    made.end()
    server.close()


def call(hub: PortedHub, source: str = "127.0.0.1") -> Connection:
    link = socket.create_connection(("127.0.0.1", hub.port), timeout=30, source_address=(source, 0))
    return Connection(link)


def hello(line: Connection, **changed: Any) -> dict[str, Any]:
    challenge = line.receive()["challenge"]
    number = changed.get("node", 1)
    return {"challenge": "c", "node": number, "address": "", "proof": proof(JOB, challenge, number), **changed}


@pytest.mark.parametrize(
    "changed",
    [
        {"proof": proof("another-run", "x", 1)},
        {"proof": JOB},
        {"proof": None},
        {"node": 7},
        {"node": -1},
        {"node": "one"},
    ],
)
def test_first_node_hangs_up_without_naming_the_run_when_the_proof_is_wrong(
    hub: PortedHub, changed: dict[str, Any]
) -> None:
    line = call(hub)
    line.send(**hello(line, **({"proof": "0" * 64} | changed if "proof" not in changed else changed)))
    with pytest.raises(HungUpError):
        line.receive()
    line.close()
    assert hub.missing(0) == ("node-1",)


def test_greeting_of_the_first_node_does_not_hold_the_runs_name(hub: PortedHub) -> None:
    line = call(hub)
    heard = [line.receive()]
    line.close()
    other = call(hub)
    other.send(**hello(other))
    heard.append(other.receive())
    other.close()
    assert JOB not in str(heard)
    assert heard[1]["proof"] == proof(JOB, "c")


def test_a_proof_is_of_no_use_a_second_time(hub: PortedHub) -> None:
    first = call(hub)
    sent = hello(first)
    first.send(**sent)
    assert "proof" in first.receive()
    again = call(hub)
    again.receive()
    again.send(**sent)
    with pytest.raises(HungUpError):
        again.receive()
    first.close()
    again.close()


def test_a_node_that_has_come_does_not_come_from_another_address(hub: PortedHub) -> None:
    first = call(hub)
    first.send(**hello(first))
    assert "proof" in first.receive()
    other = call(hub, "127.0.0.2")
    other.send(**hello(other))
    with pytest.raises(HungUpError):
        other.receive()
    first.close()
    other.close()


def test_node_refuses_a_host_that_does_not_know_the_run() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        served = threading.Event()

        def pose() -> None:
            link, _ = server.accept()
            line = Connection(link)
            line.send(challenge="c")
            greeting = line.receive()
            line.send(proof=greeting["proof"])
            line.close()
            served.set()

        threading.Thread(target=pose, daemon=True).start()
        with pytest.raises(NodeError, match="another job listens there"):
            CommandAgent("127.0.0.1", server.getsockname()[1], JOB, 1)._dial(0)
        assert served.wait(30)
