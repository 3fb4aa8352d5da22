"""Fixtures of every test that runs the real engine. Sockets stay bound to loopback by the options in pyproject.toml."""

from __future__ import annotations

import functools
import gc
import itertools
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from hypothesis import HealthCheck, settings

from amlstack.base.paths import PROJECT
from amlstack.cli import main as verbs
from tests.support import azure_ai_ml
from tests.support.harness import STAND_IN, Stack
from tests.support.processes import pytest_addoption, pytest_runtestloop  # noqa: F401 - hooks
from tests.support.running import Engine, Sandbox, running_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.running import MakeStack


# How long an example takes is the machine's business and no test's; a busy one must not fail.
settings.register_profile("amlstack", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
# In CI the same examples each time: what turns red there has been turned red by the change, and does so here with CI=1.
# New ones are looked for wherever else the tests run, and by the hundred with --hypothesis-profile=thorough.
settings.register_profile("ci", settings.get_profile("amlstack"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("amlstack"), max_examples=1000)
settings.load_profile("ci" if os.environ.get("CI") else "amlstack")


# Where gRPC looks after forks, its threads have a child abort that is still to start its program, now and then. Tests
# fork in order to start programs alone. It is read when gRPC is imported.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"


def _own_surroundings() -> None:
    """Nothing of the shell that runs the tests decides what they see: no login, no stack, no day, no colour."""
    kept = {
        "AMLSTACK_AZURE",
        "AMLSTACK_AZURE_COMPUTE",
        "AMLSTACK_AZURE_WORKSPACE",
        "AMLSTACK_PUBLIC_POLICIES",
        "AMLSTACK_CACHE",
        "AMLSTACK_CORPUS",
        "AMLSTACK_PIPELINES_SCHEMA",
        "AMLSTACK_ENGINE",
        "AMLSTACK_OPERATOR_CRDS",
        "AMLSTACK_PUBLIC_JOBS",
        "AMLSTACK_PUBLIC_LOGS",
        "AMLSTACK_PULUMI_RELEASES",
    }
    foreign = ("AMLSTACK_", "AMLNODE_", "ARM_", "AZURE_", "AZUREML_", "PULUMI_")
    shown = {"COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE", "GITHUB_ACTIONS"}
    for name in set(os.environ) - kept:
        if name.startswith(foreign) or name in shown:
            del os.environ[name]
    # A proxy leads to the world, never to what a test itself has started.
    direct = ",".join(filter(None, (os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), "127.0.0.1,localhost")))
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = direct
    # A shell starts what it runs in the background with SIGINT ignored, and every child would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_own_surroundings()

# Comparisons with azure-ai-ml make and drop a million small objects in a process that holds a million others: with the
# interpreter's own 700, 10, 10 a tenth of the time goes into looking for circles among them.
gc.set_threshold(50_000, 50, 50)


_app_of: Any = verbs.app_of
_made = functools.cache(lambda verb, function: _app_of(verb))
# Tests run verbs by the hundred in one process: the options of each are made of its signature once, as for a user.
verbs.app_of = lambda verb: _made(verb, pkgutil.resolve_name(verb.target))
typer.main.get_command = functools.cache(typer.main.get_command)

MARKS = {"engine": "engine", "lab": "ranks", "weeks": "tools", "pip_stand_in": "tools"}
"""Fixture → the mark of every test that uses it, itself or through another fixture."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives each test the marks of its fixtures, before ``-m`` selects by them."""
    for item in items:
        for fixture in MARKS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS[fixture])


LONGEST = {
    "test_every_example_deploys_and_trains",
    "test_a_team_works_by_pull_requests",
    "test_active_runs_are_not_ended_by_surprise",
    "test_a_newcomers_sandbox",
    "test_a_teams_repository",
}
"""Modules that take minutes each."""


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")
def pytest_collection_by_folder(items: list[pytest.Item]) -> None:
    """Keeps the tests of a folder together, in the shuffled order of folders, and in theirs within each.

    Several workers begin with a part of the list each. What the tests of a folder share (a sandbox, azure-ai-ml, facts
    that are read once) is then made in one of them, or two, instead of in each. The longest stories come first: one
    that began last would be waited for alone.
    """
    met: dict[Path, int] = {}
    order: dict[Path, tuple[bool, int]] = {}
    for path in dict.fromkeys(item.path for item in items):
        order[path] = path.stem not in LONGEST, met.setdefault(path.parent, len(met))
    items.sort(key=lambda item: order[item.path])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Modules and tests live to the end: no search for unreachable objects need look at these million again."""
    if session.config.option.processes:
        azure_ai_ml.module("entities")  # else each process imports it, in two seconds
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """One search finds what tests left open: pytest makes five, of which the others then have nothing to look at."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def surroundings_of_a_module() -> Iterator[None]:
    """Takes back what a module leaves in the environment: a verb that a test runs in this process signs in there."""
    before = dict(os.environ)
    yield
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)


FOLDERS = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own, which lists the folders of all tests before it to number each, and links to the newest."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}{next(FOLDERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    """The engine as a user gets it: from PATH, released, or built on first use (minutes, with progress shown)."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    finder = [sys.executable, str(PROJECT / "tools" / "engine"), "--json"]
    with capture.global_and_fixture_disabled():
        done = subprocess.run(finder, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        pytest.fail("no Pulumi engine; tools/engine says why above", pytrace=False)
    answer = json.loads(done.stdout)
    return Engine(tuple(Path(folder) for folder in answer["path"]), answer["version"], answer["source"])


@pytest.fixture
def stack(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeStack]:
    """Makes stacks, each in a folder of its own; with ``sandbox``, azure-native is the stand-in that talks to it."""

    made: list[Stack] = []

    def make(
        program: str | Path, *, sandbox: Sandbox | None = None, name: str = "test", env: dict[str, str] | None = None
    ) -> Stack:
        folder = tmp_path_factory.mktemp("stack")
        environ = {**(sandbox.environ if sandbox else {}), **(env or {})}
        path = (STAND_IN,) if sandbox else ()
        if program == PROJECT:
            made.append(Stack.of_project(folder, engine.folders, name=name, env=environ, path=path))
        else:
            made.append(Stack(program, folder, engine.folders, name=name, env=environ, path=path))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One sandbox for the whole session: name what you create after your test."""
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as running:
        yield running


@pytest.fixture
def own_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox for this test alone: to kill it, fill it, or count what is in it."""
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as running:
        yield running
