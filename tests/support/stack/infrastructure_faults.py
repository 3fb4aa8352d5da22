"""Every resource of a stack × every fault, with the real engine: what happens at once, and what a plain re-run makes of it.

Nothing here knows the resources: they are found in the requests of an `up`, so what a stack gets later is covered too.

Each operation (create, update, delete) of all resources is played twice with each fault. First the fault passes: each
resource's request meets it once, and the one command has to get through. Then it lasts: each resource that has its turn
meets it for as long as the command goes on, and the command fails; a plain re-run, in which the next resources have
their turn, goes on from there, until there is nothing left to fail. What is refused for good, an operation that fails
and a quota, is played the second way alone.
"""

# ruff: noqa: E501 - the first line is the table's title

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.sandbox import kinds
from amlstack.sandbox.protocol.addresses import parse
from amlstack.sandbox.server import daemon
from tests.support.sandbox import injected_faults
from tests.support.sandbox.injected_faults import OPERATION, QUOTA, THROTTLED
from tests.support.sandbox.sandbox_client import Arm
from tests.support.stack.small_jobs import job, runs, settings, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.support.engine_result import Result
    from tests.support.harness import Stack

SOON = {"retry-after-ms": "5"}
OURS = r".*/workspaces/[^/]+/(codes|data|environments|components|jobs|schedules)/.*"
"""Paths of what our provider makes. It waits out a throttled request for an hour, so that a lasting one says longer."""
GIVES_UP = {"retry-after": "3601"}
LONGEST = 40
"""Commands in a row that may fail: more than any chain of resources that depend on each other."""
FINAL = frozenset({OPERATION, QUOTA})
"""Faults that no client gets through by asking again."""
OPERATIONS = {"create": "PUT", "update": "PUT", "delete": "DELETE"}
CLUSTERS = [{"name": "busy", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}}]
COMMAND = "the command itself"


def everything(home: Path, folder: Path) -> dict[str, Any]:
    """Settings under which a stack has every kind of resource beside those of a default one.

    Args:
        home: Of the sandbox, which gets a storage account of somebody else.
        folder: Gets a schedule and data of this machine.
    """
    arm = Arm(daemon.find(home))
    account = f"{arm.make_group('rg-lake')}/providers/Microsoft.Storage/storageAccounts/stlake"
    arm.finish(arm.put(account, {"location": "westeurope", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}))
    (folder / "words.txt").write_text("hello\n")
    (folder / "nightly.schedule.yml").write_text(NIGHTLY)
    (folder / "pipeline.yml").write_text(PIPELINE)
    vnet = {"address_space": ["10.20.0.0/16"], "compute": "10.20.0.0/22", "endpoints": "10.20.4.0/26"}
    return {
        "amlstack:workspace": {
            "name": "ws-faults",
            "locks": True,
            "encryption": "metadata",
            "network": {"isolation": "off", "vnet": vnet},
        },
        "amlstack:datastores": [{"name": "lake", "account": account, "container": "corpora"}],
        "amlstack:data": [{"name": "words", "path": str(folder / "words.txt"), "type": "uri_file"}],
    }


NIGHTLY = """\
name: nightly
trigger: {type: cron, expression: "0 3 * * *"}
create_job: ./pipeline.yml
"""
PIPELINE = """type: pipeline
jobs:
  one: {command: echo nightly, environment: azureml:small, compute: azureml:busy}
"""


@dataclass
class FaultCell:
    """One kind of resource under one fault."""

    at_once: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "BAD" if self.wrong else " / ".join(sorted(self.at_once))


Cells = dict[str, FaultCell]
"""By kind of resource."""


@dataclass
class Ground:
    """A stack on a sandbox of its own, and what it looks like without any fault.

    Attributes:
        stack: The stack, not up.
        home: The sandbox's home.
        expected: What the service has after each operation without a fault.
        shares: Path → the one fault that it meets, where faults are played at the same time.
    """

    stack: Stack
    home: Path
    expected: dict[str, Any] = field(default_factory=dict)
    shares: dict[str, str] = field(default_factory=dict)

    @classmethod
    def made(
        cls,
        stack: Stack,
        home: Path,
        folder: Path,
        operations: Sequence[str] = tuple(OPERATIONS),
        more: Mapping[str, Any] | None = None,
    ) -> Ground:
        """A ground with the settings of small jobs, ``more`` over them, and one job with code in a folder of the test's."""
        for key, value in {**settings("ws-faults"), "amlstack:clusters": CLUSTERS, **(more or {})}.items():
            stack.set(key, value, path=False)
        (folder / "src").mkdir()
        (folder / "src" / "quick.py").write_text("print('quick')\n")
        files = [str(job(folder, "quick", "python quick.py", code="src")), *map(str, folder.glob("*.schedule.yml"))]
        stack.set("amlstack:jobs", files)
        ground = cls(stack, home)
        for operation in operations:
            ground.act(operation).ok()
            ground.expected[operation] = ground.seen()
        return ground

    def act(self, operation: str) -> Result:
        """The command of an operation; the same again is the re-run."""
        self.stack.set("amlstack:tags", {"edited": "yes" if operation == "update" else "no"})
        return self.stack.destroy() if operation == "delete" else self.stack.up()

    def seen(self) -> dict[str, Any]:
        """The service's resources and the state's records: equal where the same was done."""
        with store_of(self.home) as store:
            rows = store.resources.all()
        state = self.stack.state()
        resources = state.get("resources", ())
        return {
            "held": {row.id.lower(): _plain(row.body) for row in rows},
            "states": {row.id.lower(): row.state for row in rows},
            "ids": {str(one.get("id", "")).lower() for one in resources},
            "recorded": sorted(one["urn"] for one in resources if not one["type"].startswith("pulumi:")),
            "pending": len(state.get("pending_operations") or ()),
        }

    def share(self, faults: Sequence[str]) -> None:
        """Gives each resource that the state has an id of one of the faults, so that one chain plays them all.

        An operation can fail where there is one: of each two kinds that have one, at one.
        """
        paths = [path for path in sorted(self.expected["create"]["held"]) if path in self.expected["create"]["ids"]]
        others = [fault for fault in faults if fault != OPERATION]
        self.shares = {path: others[index % len(others)] for index, path in enumerate(paths)}
        if OPERATION in faults:
            slow = [
                path for path in paths if (found := parse(path)) and (kind := kinds.find(found.type)) and kind.ticks
            ]
            self.shares |= dict.fromkeys(slow[::2], OPERATION)


def played(ground: Ground, faults: Sequence[str], operations: Sequence[str] = tuple(OPERATIONS)) -> dict[str, Cells]:
    """Operation → kind of resource → cell."""
    cells: dict[str, Cells] = {operation: defaultdict(FaultCell) for operation in operations}
    for times in (None,) if set(faults) & FINAL else (1, None):
        for operation in operations:
            _chain(ground, operation, faults, times, cells[operation])
    return cells


def _chain(ground: Ground, operation: str, faults: Sequence[str], times: int | None, cells: Cells) -> None:
    """One operation, again and again until it succeeds."""
    before, known = len(injected_faults.injected(ground.home)), len(runs(ground.home))
    had: set[str] = set()
    try:
        for _ in range(LONGEST):
            injected_faults.inject(ground.home, *_rules(ground, operation, faults, times, had))
            result = ground.act(operation)
            fired = injected_faults.injected(ground.home)[before:]
            before += len(fired)
            met = {path for _, _, path in fired}
            had |= met
            wrong = _wrong_words(result, times) if result.code else []
            for path in met:
                cells[kind_of(path)].at_once.add("error" if result.code else "done")
                cells[kind_of(path)].wrong += wrong
            if not result.code:
                break
            if not met:
                cells[COMMAND].wrong.append(f"a plain re-run fails: {result.errors}")
                break
    finally:
        injected_faults.inject(ground.home)
    for path, wrong_end in _differences(ground, operation, known):
        cells[kind_of(path)].wrong.append(wrong_end)


def _rules(
    ground: Ground, operation: str, faults: Sequence[str], times: int | None, had: set[str]
) -> Iterator[dict[str, Any]]:
    """Rules for all resources that have not had their turn."""
    passed = "".join(f"(?!{re.escape(path)}$)" for path in sorted(had))
    asked = {"method": OPERATIONS[operation], **({"times": times} if times else {})}
    paths = [(re.escape(path), fault) for path, fault in ground.shares.items()]
    for pattern, fault in paths or [("/subscriptions/.*", fault) for fault in faults]:
        rule = {**asked, "fault": fault, "headers": SOON}
        if fault == THROTTLED and times is None:
            yield {**rule, "path": f"(?={OURS}){passed}{pattern}", "headers": GIVES_UP}
        yield {**rule, "path": f"{passed}{pattern}"}


def _wrong_words(result: Result, times: int | None) -> list[str]:
    """The faults of a command that failed."""
    text = "\n".join(result.errors)
    found = [f"failed at once, though it could be repeated: {text}"] if times else []
    if not text or re.search(r"Traceback|unexpected \w+Error", text):
        found.append(f"no sentence for a person: {text or result.output[-500:]}")
    return found


def _differences(ground: Ground, operation: str, known: int) -> Iterator[tuple[str, str]]:
    """The differences from a run without a fault: path and words."""
    seen, expected = ground.seen(), ground.expected[operation]
    for path in sorted({*seen["held"], *expected["held"]}):
        if path not in seen["held"]:
            yield path, "lost"
        elif path not in expected["held"]:
            yield path, "one too many"
        elif seen["held"][path] != expected["held"][path]:
            yield path, "has another content"
        elif seen["states"][path] != expected["states"][path]:
            yield path, f"is left as {seen['states'][path]}"
    if seen["recorded"] != expected["recorded"]:
        yield COMMAND, f"the state differs in {sorted({*seen['recorded']} ^ {*expected['recorded']})}"
    if seen["pending"]:
        yield COMMAND, "operations are left pending in the state"
    made = len(runs(ground.home)) - known
    if operation != "delete" and made != (operation == "create"):  # records of runs go with their workspace
        yield COMMAND, f"{made} runs where one was declared"


def kind_of(path: str) -> str:
    """``Storage/storageAccounts`` of an ARM path in any letter case; what is none stays."""
    parsed = parse(path)
    if parsed is None:
        return path
    kind = kinds.find(parsed.type)
    return (kind.type if kind else parsed.type).removeprefix("Microsoft.")


def _plain(body: Mapping[str, Any]) -> Any:
    """A stored body without what is drawn anew for each creation: ids of principals, versions of keys and times."""
    text = json.dumps(body, sort_keys=True, default=str)
    text = re.sub(r"(?<=/)[0-9a-f]{8}-[0-9a-f](?=-[0-9a-f]{8}-)", "SPACE", text)  # of containers of uploads
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID", text)
    text = re.sub(r"(/keys/[0-9A-Za-z-]+)/[0-9a-f]{32}", r"\1/VERSION", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)?", "TIME", text)
