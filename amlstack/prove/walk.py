"""The walk: each step does one thing by the project's own verbs, and says what it must see."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from amlstack import engine
from amlstack.base import paths
from amlstack.base.api_versions import POLICIES, RESOURCES
from amlstack.base.files import write_whole
from amlstack.prove.proof import AGAIN, Proof
from amlstack.provider.arm import API_VERSION, ArmClient, ArmError

if TYPE_CHECKING:
    from amlstack.prove.recorder import Recorder
    from amlstack.sandbox.server.daemon import Endpoint

_ENDED: Final = frozenset({"Completed", "Failed", "Canceled", "NotResponding"})
_PATIENCE: Final = 1800.0
"""Seconds that a job may take; nodes come within ten minutes on Azure."""
_IMAGE: Final = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
"""Python and Open MPI; an environment of an image alone is not built."""


class StepFailedError(Exception):
    """A step did not see what it must see; the message names both."""


@dataclass(slots=True)
class ProofWalk:
    """One walk, on Azure or on a sandbox.

    Attributes:
        proof: Its names.
        endpoint: The relay.
        recorder: The same, for naming the step.
        env: The environment of each verb.
        arm: A client through the relay.
        say: Prints one line.
    """

    proof: Proof
    endpoint: Endpoint
    recorder: Recorder
    env: Mapping[str, str]
    arm: ArmClient
    say: Callable[[str], None]

    @property
    def workspace(self) -> str:
        """ARM id of the open workspace."""
        return f"{self.group_id('open')}/providers/Microsoft.MachineLearningServices/workspaces/{self._name('open')}"

    def group_id(self, stack: str) -> str:
        """ARM id of a stack's group."""
        return f"/subscriptions/{self.proof.subscription}/resourceGroups/{self.proof.group(stack)}"

    def _name(self, stack: str) -> str:
        return f"mlw-{self.proof.id}-{stack}"

    def set(self, stack: str, **more: Any) -> None:
        """Write the settings of a stack; what it had stays."""
        file = self.proof.settings_file(stack)
        content = yaml.safe_load(file.read_text("utf-8")) if file.exists() else self._first(stack)
        content["config"] |= {f"amlstack:{name}": value for name, value in more.items()}
        write_whole(file, yaml.safe_dump(content, sort_keys=False))

    def _first(self, stack: str) -> dict[str, Any]:
        workspace: dict[str, Any] = {"name": self._name(stack), "key_vault": {"purge_protection": False}}
        if stack == "open":
            workspace |= {"public_network": True, "network": {"isolation": "off"}}
        config = {
            "azure-native:disableInstanceDiscovery": "true",
            "amlstack:location": self.proof.location,
            "amlstack:resource_group": self.proof.group(stack),
            "amlstack:workspace": workspace,
            "amlstack:tags": self.proof.tags,
            "amlstack:protect": "false",
        }
        return {"config": config, "encryptionsalt": engine.SALT}

    def verb(self, *words: str, code: int = 0) -> str:
        """Run a verb of the command line; its output.

        Raises:
            StepFailedError: It ended otherwise than it must.
        """
        text, ended = self._run([sys.executable, "-m", "amlstack.cli.main", *words])
        if ended != code:
            raise StepFailedError(
                f"`amlstack {' '.join(words)}` must end with {code}, ended with {ended}: {_last(text)}"
            )
        return text

    def pulumi(self, *words: str) -> str:
        """Run a command of the engine.

        Raises:
            StepFailedError: It failed.
        """
        text, ended = self._run(["pulumi", *words, "--non-interactive"])
        if ended:
            raise StepFailedError(f"`pulumi {' '.join(words[:2])}` failed: {_last(text)}")
        return text

    def _run(self, command: list[str]) -> tuple[str, int]:
        """Its text and exit status; Ctrl-C is passed on once, and its end is waited for."""
        log = self.proof.folder / "log.txt"
        at = log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            process = subprocess.Popen(
                command, cwd=paths.PROJECT, env=dict(self.env), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip
            try:
                process.wait()
            except BaseException:
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(60)
                process.kill()
                process.wait()
                raise
        return log.read_bytes()[at:].decode("utf-8", "replace"), process.returncode

    def up(self, stack: str, **settings: Any) -> None:
        """Change settings and bring the stack up."""
        self.set(stack, **settings)
        self.verb("up", "--stack", self.proof.stack(stack), "--yes")

    def settled(self, job: str, wanted: str) -> str:
        """Wait for the end of a run whose id begins so.

        Raises:
            StepFailedError: It ended otherwise.
        """
        begun, path = time.monotonic(), self._run_id(job)
        while (status := str(self.arm.get(path).body["properties"]["status"])) not in _ENDED:
            if time.monotonic() > begun + _PATIENCE:
                raise StepFailedError(f"the job {job} must end {wanted} within {_PATIENCE:.0f} s, is {status}")
            time.sleep(0.5 if self.proof.endpoint.startswith("https://127.0.0.1") else 10)
        if status != wanted:
            raise StepFailedError(f"the job {job} must end {wanted}, ended {status}")
        return status

    def _run_id(self, job: str) -> str:
        """The newest run of a job."""
        rows = [row for row in self.arm.rows(f"{self.workspace}/jobs") if str(row["name"]).startswith(job)]
        if not rows:
            raise StepFailedError(f"the workspace must have a run of {job}, lists none")
        return str(rows[0]["id"])

    def need(self, path: str, version: str = API_VERSION) -> dict[str, Any]:
        """A resource that must be there.

        Raises:
            StepFailedError: It is not.
        """
        try:
            body = self.arm.get(path, version).body
        except ArmError as error:
            raise StepFailedError(f"{path.rpartition('/')[2]} must be there: {error}") from None
        return dict(body)


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if "error" in line.lower() or "✗" in line or "Code=" in line]
    return " | ".join((told or lines)[-4:])[:900]


@dataclass(frozen=True, slots=True)
class WalkStep:
    """A step.

    Attributes:
        does: What it does, in words for the page.
        act: Does it, and says what it saw.
        after: Steps that it needs.
    """

    does: str
    act: Callable[[ProofWalk], str]
    after: tuple[str, ...] = ()


def _init(walk: ProofWalk, stack: str) -> None:
    walk.set(stack)
    name = walk.proof.stack(stack)
    walk.pulumi("stack", "init", name, "--no-select")


def _state(walk: ProofWalk) -> str:
    _init(walk, "open")
    known = json.loads(walk.pulumi("stack", "export", "--stack", walk.proof.stack("open")))
    if known.get("version") != 3:
        raise StepFailedError(f"the engine's state must have version 3, has {known.get('version')}")
    return "the engine has made the stack's state"


def _open(walk: ProofWalk) -> str:
    walk.up("open")
    properties = walk.need(walk.workspace)["properties"]
    if properties.get("publicNetworkAccess") != "Enabled":
        raise StepFailedError("the open workspace must answer from the internet (publicNetworkAccess Enabled)")
    return "group, parts and workspace are there"


def _cluster(walk: ProofWalk) -> str:
    cluster = {"name": "cpu", "size": walk.proof.size, "nodes": {"min": 0, "max": 2, "idle": "PT2M"}}
    walk.up("open", clusters=[cluster])
    inner = walk.need(f"{walk.workspace}/computes/cpu")["properties"]["properties"]
    if str(inner.get("vmSize")).casefold() != walk.proof.size.casefold():
        raise StepFailedError(f"the cluster must be of {walk.proof.size}, is of {inner.get('vmSize')}")
    return f"two nodes of {walk.proof.size} at most, none at rest"


def _environment(walk: ProofWalk) -> str:
    walk.set("open", environments=[{"name": "prove", "image": _IMAGE}])
    seen = _job("hello")(walk)
    rows = list(walk.arm.rows(f"{walk.workspace}/environments/prove/versions"))
    if len(rows) != 1:
        raise StepFailedError(f"the environment must have one version, has {len(rows)}")
    return f"one version, not built; {seen}"


def _job_files(proof: Proof) -> str:
    """Copies the job files, which are tiny and for CPUs, below the project; the folder's path in it."""
    folder = proof.folder / "jobs"
    shutil.copytree(Path(__file__).with_name("jobs"), folder, dirs_exist_ok=True)
    return str(folder.relative_to(paths.PROJECT))


def _data(walk: ProofWalk) -> str:
    folder = _job_files(walk.proof)
    walk.up("open", data=[{"name": "numbers", "path": f"{folder}/data"}])
    rows = list(walk.arm.rows(f"{walk.workspace}/data/numbers/versions"))
    if len(rows) != 1:
        raise StepFailedError(f"the data asset must have one version, has {len(rows)}")
    return "uploaded and registered"


def _job(name: str) -> Callable[[ProofWalk], str]:
    def act(walk: ProofWalk) -> str:
        file = f"{_job_files(walk.proof)}/{name}.yml"
        walk.verb("submit", file, "--stack", walk.proof.stack("open"), "--yes")
        return f"{name} ended {walk.settled(name, 'Completed')}"

    return act


def _edit(walk: ProofWalk) -> str:
    cluster = {"name": "cpu", "size": walk.proof.size, "nodes": {"min": 0, "max": 2, "idle": "PT5M"}}
    walk.up("open", clusters=[cluster])
    scale = walk.need(f"{walk.workspace}/computes/cpu")["properties"]["properties"]["scaleSettings"]
    if scale.get("nodeIdleTimeBeforeScaleDown") != "PT5M":
        raise StepFailedError(f"the idle time must be PT5M now, is {scale.get('nodeIdleTimeBeforeScaleDown')}")
    walk.up("open", clusters=[{**cluster, "tags": {"edited": "yes"}}])
    tags = walk.need(f"{walk.workspace}/computes/cpu").get("tags") or {}
    return f"the cluster was changed in place, its tags {'too' if tags.get('edited') == 'yes' else 'were not'}"


def _cancel(walk: ProofWalk) -> str:
    file, stack = f"{_job_files(walk.proof)}/endless.yml", walk.proof.stack("open")
    walk.verb("submit", file, "--stack", stack, "--yes")
    walk.verb("cancel", "endless", "--stack", stack)
    return f"endless ended {walk.settled('endless', 'Canceled')}"


def _schedule(walk: ProofWalk) -> str:
    walk.up("open", jobs=[f"{_job_files(walk.proof)}/nightly.yml"])
    rows = list(walk.arm.rows(f"{walk.workspace}/schedules"))
    if len(rows) != 1:
        raise StepFailedError(f"the workspace must list one schedule, lists {len(rows)}")
    return "made, and it has started nothing"


def _drift(walk: ProofWalk) -> str:
    stack = walk.proof.stack("open")
    walk.verb("drift", "--stack", stack)
    path = f"{walk.workspace}/computes/cpu"
    cluster = walk.need(path)
    tags = {**(cluster.get("tags") or {}), "by-hand": "yes"}
    body = {"properties": {"properties": cluster["properties"]["properties"]}, "tags": tags}
    scale = body["properties"]["properties"]["scaleSettings"]
    scale["maxNodeCount"] = 1
    walk.arm.finish(walk.arm.patch(path, {"properties": {"properties": {"scaleSettings": scale}}}))
    text = walk.verb("drift", "--stack", stack, code=1)
    if "max" not in text:
        raise StepFailedError("drift must name the most nodes, which were changed by hand")
    walk.verb("up", "--stack", stack, "--yes", "--refresh")
    walk.verb("drift", "--stack", stack)
    return "none, then the change by hand, then none again"


def _policy(walk: ProofWalk) -> str:
    walk.up("open", azurePolicy={"effect": "audit"})
    path = f"{walk.group_id('open')}/providers/Microsoft.Authorization/policyAssignments"
    own = [row for row in walk.arm.rows(path, POLICIES) if walk.proof.group("open") in str(row["id"])]
    if not own:
        raise StepFailedError("the group must have a policy assignment")
    return f"{len(own)} assignment on the group"


def _import(walk: ProofWalk) -> str:
    settings, file = walk.proof.settings_file("open"), walk.proof.folder / "import.json"
    words = ("import-ids", "--stack", walk.proof.stack("open"), "--output", str(file))
    before = settings.read_text("utf-8")
    # The verb first says which settings would describe what it found.
    told = [line for line in walk.verb(*words, code=1).splitlines() if line.startswith(("amlstack:", "  ", "- "))]
    found = yaml.safe_load("\n".join(line for line in told if "·" not in line and "✗" not in line))
    try:
        walk.set("open", **{key.removeprefix("amlstack:"): value for key, value in found.items()})
        walk.verb(*words)
    finally:
        write_whole(settings, before)
    resources = json.loads(file.read_text("utf-8")).get("resources") or []
    if len(resources) < 3:
        raise StepFailedError(
            f"the import file must name group, workspace and cluster, names {len(resources)} resources"
        )
    again = walk.proof.stack(AGAIN)
    write_whole(walk.proof.settings_file(AGAIN), before)
    walk.pulumi("stack", "init", again, "--no-select")
    try:
        options = ("--yes", "--generate-code=false", "--protect=false", "--skip-preview")
        walk.pulumi("import", "--file", str(file), "--stack", again, *options)
    finally:
        walk.pulumi("stack", "rm", again, "--force", "--yes")
    return f"{len(resources)} resources imported into another stack, which is forgotten"


def _closed(walk: ProofWalk) -> str:
    _init(walk, "closed")
    walk.up("closed")
    path = f"{walk.group_id('closed')}/providers/Microsoft.MachineLearningServices/workspaces/{walk._name('closed')}"  # noqa: SLF001
    if walk.need(path)["properties"].get("publicNetworkAccess") != "Disabled":
        raise StepFailedError("the closed workspace must not answer from the internet (publicNetworkAccess Disabled)")
    return "closed to the internet"


def _destroy(walk: ProofWalk) -> str:
    for stack in ("open", "closed"):
        if walk.proof.settings_file(stack).exists():
            walk.verb("down", "--stack", walk.proof.stack(stack), "--yes", "--delete-foreign", "*")
            answer = walk.arm.get(walk.group_id(stack), RESOURCES, allow=(404,))
            if answer.status != 404:
                raise StepFailedError(f"the group {walk.proof.group(stack)} must be gone, answers {answer.status}")
    return "both groups answer 404"


STEPS: Final[Mapping[str, WalkStep]] = {
    "state": WalkStep("makes a stack in a state of this proof's own", _state),
    "open": WalkStep("brings up an open workspace", _open, ("state",)),
    "cluster": WalkStep("adds a cluster of two nodes", _cluster, ("open",)),
    "environment": WalkStep("registers an environment with the first job that names it", _environment, ("cluster",)),
    "data": WalkStep("uploads and registers data", _data, ("open",)),
    "torchrun": WalkStep("runs a job on two nodes by torchrun", _job("torchrun"), ("environment",)),
    "mpi": WalkStep("runs a job on two nodes by mpirun", _job("mpi"), ("environment",)),
    "edit": WalkStep("changes the cluster", _edit, ("cluster",)),
    "cancel": WalkStep("submits a job and cancels it", _cancel, ("environment",)),
    "sweep": WalkStep("runs two trials", _job("sweep"), ("environment",)),
    "pipeline": WalkStep("runs two steps, the second with the first one's output", _job("pipeline"), ("environment",)),
    "schedule": WalkStep("makes a schedule", _schedule, ("environment",)),
    "drift": WalkStep("changes the cluster by hand and finds it", _drift, ("cluster",)),
    "policy": WalkStep("assigns the rules as Azure Policy", _policy, ("open",)),
    "import": WalkStep("imports what is there into another stack, and forgets that", _import, ("cluster",)),
    "closed": WalkStep("brings up a closed workspace", _closed, ("state",)),
    "destroy": WalkStep("destroys both stacks", _destroy, ("state",)),
}  # fmt: skip
"""Every step, in order."""


def chosen(only: tuple[str, ...]) -> tuple[str, ...]:
    """The steps that are asked for with those that they need; all where none is named. What stays, cleanup deletes."""
    wanted = set(only or STEPS)
    for name in reversed(tuple(STEPS)):
        if name in wanted:
            wanted |= set(STEPS[name].after)
    return tuple(name for name in STEPS if name in wanted)


def play(walk: ProofWalk, only: tuple[str, ...] = ()) -> bool:
    """Play steps; one that fails is named, and what does not need it goes on.

    Returns:
        True where all steps saw what they must see.
    """
    names = chosen(only)
    failed: set[str] = set()
    for number, name in enumerate(names, 1):
        step, began = STEPS[name], time.monotonic()
        walk.recorder.step = name
        walk.say(f"[{number}/{len(names)}] {name}: {step.does}")
        lacking = [each for each in step.after if each in failed]
        try:
            status, seen = ("skipped", f"needs {', '.join(lacking)}") if lacking else ("ok", step.act(walk))
        except (StepFailedError, ArmError, OSError, KeyError, TypeError, ValueError) as error:
            status, seen = "failed", f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)
        if status != "ok":
            failed.add(name)
        walk.proof.steps[name] = {"status": status, "seconds": round(time.monotonic() - began, 1), "seen": seen}
        walk.proof.save()
        walk.say(f"    {status}: {seen}")
    return not failed


def environment(proof: Proof, endpoint: Endpoint, pulumi: engine.Engine, *, stand_in: bool) -> dict[str, str]:
    """The environment of each verb of a walk.

    Args:
        proof: Its names.
        endpoint: The relay.
        pulumi: The engine.
        stand_in: Whether the sandbox's stand-in for azure-native takes the place of the real one.
    """
    own = engine.users_own(pulumi)
    path = [str(paths.PACKAGE / "amlstack" / "sandbox" / "bin")] if stand_in else []
    state = proof.folder / "state"
    state.mkdir(exist_ok=True, mode=0o700)
    return {
        **own,
        **endpoint.environ(),
        "AMLSTACK_HOME": str(proof.folder / "home"),
        "ARM_METADATA_HOSTNAME": endpoint.url.removeprefix("https://"),
        "ARM_USE_OIDC": "" if stand_in else "true",
        "ARM_OIDC_TOKEN_FILE_PATH": "" if stand_in else str(endpoint.token),
        "PATH": os.pathsep.join([*path, own["PATH"]]),
        "PULUMI_BACKEND_URL": f"file://{state}?metadata=skip",
        "PULUMI_CONFIG_PASSPHRASE": engine.PASSPHRASE,
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        **({"PULUMI_HOME": str(proof.folder / "pulumi-home")} if stand_in else {}),
    }
