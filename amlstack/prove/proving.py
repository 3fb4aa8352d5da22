"""A whole proof: the walk on Azure, its end, the same walk on a sandbox of its own, and the page."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack import engine
from amlstack.base.files import write_whole
from amlstack.prove import cleanup, comparison
from amlstack.prove.page import page
from amlstack.prove.proof import Proof
from amlstack.prove.recorder import ProvenAzure, Recorder
from amlstack.prove.walk import ProofWalk, environment, play
from amlstack.provider.arm import ArmClient
from amlstack.provider.arm.sign_in import FederatedCredential
from amlstack.sandbox.protocol import entra
from amlstack.sandbox.server import daemon

if TYPE_CHECKING:
    from amlstack.engine import Engine
    from amlstack.sandbox.server.daemon import Endpoint

EXCHANGES = "exchanges.jsonl"


def is_local(address: str) -> bool:
    """True where an address is a sandbox of this machine."""
    return address.startswith("https://127.0.0.1:")


@contextlib.contextmanager
def walking(proof: Proof, pulumi: Engine, target: ProvenAzure, say: Callable[[str], None]) -> Iterator[ProofWalk]:
    """A walk whose every request is recorded in the proof's folder."""
    relay = Recorder(proof.folder / "relay", target)
    with relay as endpoint:
        env = environment(proof, endpoint, pulumi, stand_in=is_local(target.upstream))
        yield ProofWalk(proof, endpoint, relay, env, _client(endpoint), say)


def _client(endpoint: Endpoint) -> ArmClient:
    own = str(endpoint.ca)
    credential = FederatedCredential(endpoint.url, endpoint.tenant, endpoint.client, endpoint.token, own)
    return ArmClient(endpoint.url, credential, ca=own)


def on_azure(
    proof: Proof, pulumi: Engine, target: ProvenAzure, only: tuple[str, ...], say: Callable[[str], None]
) -> tuple[bool, list[str]]:
    """The walk on Azure, and whatever happens, its end.

    Returns:
        Whether each step saw what it must see; and what is left, in words.
    """
    with walking(proof, pulumi, target, say) as walk:
        try:
            good = play(walk, only)
        finally:
            left = ended(walk.arm, proof, say, walk.recorder)
    return good, left


def ended(arm: ArmClient, proof: Proof, say: Callable[[str], None], recorder: Recorder | None = None) -> list[str]:
    """Nothing of it stays in Azure or in the project's folder; what does, in words."""
    if recorder is not None:
        recorder.step = "cleanup"
    left = cleanup.cleanup(arm, proof, say)
    proof.steps.setdefault("cleanup", {"status": "ok", "seconds": 0, "seen": ""})["left"] = left
    proof.save()
    cleanup.forget(proof)
    return left


def on_sandbox(proof: Proof, pulumi: Engine, only: tuple[str, ...], say: Callable[[str], None]) -> Path:
    """The same walk on a sandbox in a folder of its own, which goes afterwards; its recording."""
    folder = proof.folder / "sandbox"
    shutil.rmtree(folder, ignore_errors=True)
    home = folder / "home"
    home.mkdir(parents=True, mode=0o700)
    endpoint = daemon.up(home)
    try:
        ca = str(endpoint.ca)
        credential = FederatedCredential(endpoint.url, endpoint.tenant, endpoint.client, endpoint.token, ca)
        target = ProvenAzure(endpoint.url, entra.SUBSCRIPTION, credential, endpoint.tenant, ca)
        twin = Proof(
            proof.id, folder, entra.SUBSCRIPTION, proof.location, proof.size, endpoint.url, began=time.time()
        )  # fmt: skip
        with walking(twin, pulumi, target, say) as walk:
            play(walk, only)
            walk.recorder.step = "cleanup"
            cleanup.cleanup(walk.arm, twin, lambda _: None)
    finally:
        cleanup.forget(proof)
        daemon.down(home, remove=True)
    return folder / "relay" / EXCHANGES


def compared(proof: Proof, other: Path, left: list[str]) -> tuple[Path, int]:
    """Write the page and the facts.

    Args:
        proof: What was proven.
        other: The recording of the same walk on a sandbox.
        left: What stays behind.

    Returns:
        The page, and the number of facts that differ.
    """
    own = comparison.read(proof.folder / "relay" / EXCHANGES)
    twin = comparison.read(other)
    same = comparison.both(own, twin)
    facts = [comparison.facts(some, proof.id, same) for some in (own, twin)]
    alike, differences = comparison.compare(*facts)
    file = proof.folder / "page.md"
    write_whole(file, page(proof, alike, differences, len(own), left))
    date = time.strftime("%Y-%m-%d", time.gmtime(proof.began))
    rows = [{**json.loads(one.line()), "source": f"prove, {proof.location}", "date": date} for one in differences]
    write_whole(proof.folder / "facts.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return file, len(differences)


def find_engine() -> Engine:
    """The released engine.

    Raises:
        EngineError: There is none.
    """
    os.environ.setdefault("PULUMI_SKIP_UPDATE_CHECK", "1")
    return engine.find()
