"""`amlstack prove` against an Azure that answers one thing otherwise: its page names that, and nothing stays.

Azure is a sandbox behind a table of thirty changes; the side that it is held against is the same walk on another one.
Three of them run with the slow tests, two in one walk; all with `make prove`, each in a walk of its own.
"""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from amlstack.prove import proving
from amlstack.prove.proof import Proof
from amlstack.prove.recorder import ProvenAzure
from amlstack.prove.walk import chosen
from amlstack.provider import arm
from tests.support.prove.changed_azure import CHANGES, WRAPPER, change
from tests.support.running import ended_with_us
from tests.support.stack.small_jobs import store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.running import Engine

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

QUICK = (("a role that is unknown",), ("a cut connection", "a default of workspaces"))
ALL = os.environ.get("PROVE_CHANGES") == "all"
NAMES = tuple((name,) for name in CHANGES) if ALL else QUICK
WALKS = {"to an open workspace": ("open",), **({"whole": ()} if ALL else {})}
"""Walks without a change; the whole one takes minutes."""


@dataclass
class ChangedSide:
    """The sandbox in Azure's place; ``played`` gives a proof's page."""

    home: Path
    played: Callable[[tuple[str, ...], tuple[str, ...]], str]

    def left(self) -> list[str]:
        """Ids of what it has."""
        with store_of(self.home) as store:
            return [row.id for row in store.resources.all()]


@pytest.fixture(scope="module")
def side(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChangedSide]:
    from amlstack.sandbox.server import daemon

    del engine
    home, name = tmp_path_factory.mktemp("azure") / "home", f"p{secrets.token_hex(4)[:7]}"
    folder = PROJECT / ".amlstack-prove" / f"test-{name}"
    with ended_with_us(home), pytest.MonkeyPatch.context() as patch:
        patch.setenv("AMLSTACK_HOME", str(home))
        patch.setenv(*WRAPPER)
        endpoint = daemon.up(home)
        for variable, value in endpoint.environ().items():
            patch.setenv(variable, value)
        patch.delenv(WRAPPER[0])
        pulumi = proving.find_engine()
        sign_in = arm.SignIn.read({})
        azure = ProvenAzure(
            endpoint.url, endpoint.subscription, sign_in.credential(sign_in.cloud), endpoint.tenant, str(endpoint.ca)
        )

        def proof(place: str) -> Proof:
            made = Proof(name, folder / place, endpoint.subscription, "westeurope", "Standard_D4s_v3", endpoint.url)
            shutil.rmtree(made.folder, ignore_errors=True)
            made.folder.mkdir(parents=True)
            made.save()
            return made

        @cache
        def on_sandbox(steps: tuple[str, ...]) -> Path:
            change(home)
            return proving.on_sandbox(proof(f"of-{'-'.join(steps)}"), pulumi, steps, print)

        def played(names: tuple[str, ...], steps: tuple[str, ...]) -> str:
            other = on_sandbox(steps)
            change(home, *names)
            one = proof("azure")
            _, left = proving.on_azure(one, pulumi, azure, steps, print)
            return proving.compared(one, other, left)[0].read_text("utf-8")

        try:
            yield ChangedSide(home, played)
        finally:
            daemon.down(home, remove=True)
            shutil.rmtree(folder, ignore_errors=True)


def test_there_are_thirty_changes() -> None:
    assert len(CHANGES) == 30


@pytest.mark.parametrize("steps", WALKS.values(), ids=WALKS)
def test_an_azure_like_the_sandbox_has_no_difference(side: ChangedSide, steps: tuple[str, ...]) -> None:
    page = side.played((), steps)
    assert " 0 differ from the sandbox" in page, page
    assert all(f"| {step} | ok |" in page for step in chosen(steps)), page
    assert not side.left()


@pytest.mark.parametrize("names", NAMES, ids=", ".join)
def test_a_change_is_named_and_leaves_nothing(side: ChangedSide, names: tuple[str, ...]) -> None:
    page = side.played(names, (CHANGES[names[0]].step,))
    assert [name for name in names if CHANGES[name].named not in page] == [], page
    assert "each group answers 404" in page
    assert not side.left()
