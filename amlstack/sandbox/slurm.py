"""Slurm: its commands, what a profile asks of them, and its states in the service's words.

Options and formats are those of the manual pages of sbatch, squeue, srun and scancel. A job's nodes are one allocation,
named after the sandbox and the job, so that whoever comes later finds it without a record of its own.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from amlstack.base import home as homes
from amlstack.base.files import write_whole
from amlstack.sandbox.store.folders import job_folder, private

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

QUERY: Final = "amlstack-site"
"""Query parameter of a job's PUT by which `amlstack rehearse --on slurm` hands over what `SlurmProfile.text` is."""

OPTIONS: Final = ("account", "partition", "qos", "constraint", "gres", "reservation", "nodelist", "exclude")
"""Keys of a profile that are options of sbatch by the same name."""
_OWN: Final = ("mpirun", "container")

ALLOCATION, HELD = "slurm.json", "held"
"""In a job's folder: the nodes that it was given, and the pipe by which its runner keeps them."""

GRACE = 600
"""Seconds that Slurm lets a job run past `limits.timeout`: the sandbox ends it first, and collects its outputs."""
UNCLAIMED = 600
"""Seconds after which nodes are let go of that no runner has claimed: the sandbox is gone."""
PATIENCE = 60
"""Seconds that a command of Slurm, or the end of an allocation, is waited for."""

_HOLD = """\
#!/bin/sh
# Keeps the nodes as long as the job's runner does: a step that it starts holds the other end of the pipe.
timeout {unclaimed} sh -c ': <"$0"' {held} && exec cat {held}
"""


class SlurmError(Exception):
    """Slurm refused, or does not answer; the message is its own."""


@dataclass(frozen=True, slots=True)
class SlurmProfile:
    """The part of a site that jobs run on.

    Attributes:
        name: As the settings call it; empty for the site's defaults.
        options: Values by key of `OPTIONS`.
        mpirun: Path of the site's mpirun on the nodes; empty for the environment's own.
        container: The way into the image of a job's environment: ``pyxis``, or apptainer or singularity by name or
            path; empty for the stand-in.
    """

    name: str = ""
    options: tuple[tuple[str, str], ...] = ()
    mpirun: str = ""
    container: str = ""

    @classmethod
    def read(cls, text: str) -> SlurmProfile:
        """The inverse of `text`.

        Raises:
            ValueError: It is no profile; the message says why.
        """
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError("a profile of Slurm is a JSON object")  # noqa: TRY004 - of the text, not of the program
        if unknown := sorted(values.keys() - {"name", *_OWN, *OPTIONS}):
            raise ValueError(f"a profile of Slurm has no {', '.join(unknown)}; it has {', '.join((*OPTIONS, *_OWN))}")
        options = tuple((key, str(values[key])) for key in OPTIONS if values.get(key))
        return cls(str(values.get("name") or ""), options, *(str(values.get(key) or "") for key in _OWN))

    def text(self) -> str:
        """As JSON, without what is not set."""
        values = {"name": self.name, **dict(self.options), "mpirun": self.mpirun, "container": self.container}
        return json.dumps({key: value for key, value in values.items() if value})

    def words(self) -> tuple[str, ...]:
        """As options of sbatch."""
        return tuple(f"--{key}={value}" for key, value in self.options)


@dataclass(frozen=True, slots=True)
class Allocation:
    """A job's nodes as Slurm knows them.

    Attributes:
        number: Slurm's number of the job.
        state: ``PENDING``, ``RUNNING`` and so on.
        reason: Why it waits, or ended; ``None`` in Slurm's words for no reason.
        nodes: Names of the nodes, in Slurm's short form; empty while it waits.
    """

    number: str
    state: str
    reason: str
    nodes: str

    @property
    def waits(self) -> bool:
        """It has no nodes yet."""
        return self.state in {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SUSPENDED"}


def profile_for(home: Path, given: str | None) -> SlurmProfile | None:
    """The profile that a new job was given, else that of all jobs of the sandbox; None for ``machine``, this one.

    Raises:
        ValueError: It is no profile.
    """
    try:
        text = (home / homes.SITE).read_text() if given is None else given
    except FileNotFoundError:
        return None
    return None if text == "machine" else SlurmProfile.read(text)


def is_here() -> bool:
    """True where this machine can submit to a Slurm."""
    return all(shutil.which(program) for program in ("sbatch", "squeue", "srun", "scancel", "sinfo"))


def asked(*words: str) -> str:
    """The output of a command of Slurm.

    Raises:
        SlurmError: It failed; with its own words.
    """
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except FileNotFoundError:
        raise SlurmError(f"{words[0]} is not on PATH: this machine submits to no Slurm.") from None
    except subprocess.TimeoutExpired:
        raise SlurmError(f"{words[0]} has not answered for {PATIENCE} s.") from None
    if done.returncode != 0:
        raise SlurmError(re.sub(rf"^{words[0]}: (error: )?", "", done.stderr.strip(), flags=re.MULTILINE))
    return done.stdout


def _prefix(home: Path) -> str:
    return f"amlstack-{hashlib.sha256(os.fsencode(home)).hexdigest()[:8]}-"


def submit(home: Path, job: str, profile: SlurmProfile, nodes: int, timeout: float | None) -> None:
    """Asks for a job's nodes, each whole.

    Args:
        home: The sandbox's home.
        job: The job's table key.
        profile: Where.
        nodes: How many.
        timeout: Seconds that the job may run; None leaves it to the partition.

    Raises:
        SlurmError: Slurm refused.
    """
    folder = private(job_folder(home, job))
    held = folder / HELD
    held.unlink(missing_ok=True)
    os.mkfifo(held, 0o600)
    script = folder / "slurm.sh"
    write_whole(script, _HOLD.format(held=shlex.quote(str(held)), unclaimed=UNCLAIMED))
    limit = () if timeout is None else (f"--time={math.ceil((timeout + GRACE) / 60)}",)
    whole = (f"--nodes={nodes}", "--ntasks-per-node=1", "--exclusive", "--no-requeue", "--kill-on-invalid-dep=yes")
    files = (f"--chdir={folder}", f"--output={folder / 'slurm.log'}", f"--job-name={_prefix(home)}{job}")
    asked("sbatch", "--parsable", *whole, *files, *limit, *profile.words(), str(script))


def allocations(home: Path) -> dict[str, Allocation]:
    """The allocations of a sandbox's jobs that Slurm still knows, by the job's table key.

    Raises:
        SlurmError: Slurm does not answer.
    """
    found = {}
    for line in asked("squeue", "--noheader", "--me", "--states=all", "--format=%i|%T|%r|%N|%j").splitlines():
        number, state, reason, nodes, name = line.split("|", 4)
        if name.startswith(prefix := _prefix(home)):
            found[name.removeprefix(prefix)] = Allocation(number, state, reason, nodes)
    return found


def cancel(*numbers: str) -> None:
    """Lets go of allocations; those that are gone, and a Slurm that does not answer, are no error."""
    if numbers:
        try:
            asked("scancel", "--quiet", *numbers)
        except SlurmError as error:
            print(f"scancel: {error}")  # noqa: T201 - the server's and the runner's log


def keep(home: Path, job: str, given: Allocation, profile: SlurmProfile) -> int:
    """Notes the nodes that a job was given, for its runner; how many they are.

    Raises:
        SlurmError: Slurm does not answer.
    """
    hosts = asked("scontrol", "show", "hostnames", given.nodes).split()
    config = asked("scontrol", "show", "config")
    binds = re.search(r"^TaskPlugin\s*=\s*\S*(affinity|cgroup)", config, re.MULTILINE) is not None
    noted = {"number": given.number, "hosts": hosts, "profile": profile.text(), "binds": binds}
    write_whole(job_folder(home, job) / ALLOCATION, json.dumps(noted) + "\n")
    return len(hosts)


Reason = Literal["canceled", "timeout", "preempted", "lost"]
_ENDS: Final[Mapping[str, tuple[Reason, str]]] = {
    "CANCELLED": ("canceled", "was cancelled"),
    "TIMEOUT": ("timeout", "reached the time limit of its partition or job"),
    "DEADLINE": ("timeout", "reached its deadline"),
    "PREEMPTED": ("preempted", "was pre-empted"),
    "NODE_FAIL": ("lost", "lost a node"),
    "BOOT_FAIL": ("lost", "lost a node that did not boot"),
    "OUT_OF_MEMORY": ("lost", "ran out of memory"),
    "COMPLETED": ("lost", "ended by itself"),
}
"""States of an allocation that ended without its job's doing (squeue(1), JOB STATE CODES)."""


def end_of(given: Allocation) -> tuple[Reason, str] | None:
    """The reason that an allocation ended, and a sentence that says so; None while it lives."""
    reason, words = _ENDS.get(given.state, ("lost", f"ended as {given.state}"))
    if given.waits or given.state in {"RUNNING", "COMPLETING"}:
        return None
    told = "" if given.reason in {"None", ""} else f" ({given.reason})"
    return reason, f"Slurm's job {given.number} {words}{told}."


def loss(number: str) -> tuple[Reason, str] | None:
    """The same of an allocation by its number, once Slurm has ended it; None where it goes on or nobody knows."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            words = asked("squeue", "--noheader", "--states=all", f"--jobs={number}", "--format=%i|%T|%r|%N")
        except SlurmError:
            return None
        if not words.strip():
            return None
        given = Allocation(*words.splitlines()[0].split("|", 3))
        if given.state != "COMPLETING":
            return None if given.state == "COMPLETED" else end_of(given)
        time.sleep(0.5)
    return None


@dataclass(frozen=True, slots=True)
class Partition:
    """One kind of nodes of a partition, as sinfo lists it.

    Attributes:
        name: Of the partition.
        default: It is the one of a job that names none.
        up: It takes jobs.
        nodes: Nodes of the kind that are not down.
        gres: Their devices, such as ``gpu:a100:8``.
        features: What a constraint can name.
        limit: Seconds that a job may run; None for no limit.
    """

    name: str
    default: bool
    up: bool
    nodes: int
    gres: str
    features: tuple[str, ...]
    limit: float | None


def partitions() -> list[Partition]:
    """The partitions that this user's jobs can name.

    Raises:
        SlurmError: Slurm does not answer.
    """
    found = []
    for line in asked("sinfo", "--noheader", "--format=%P|%a|%F|%G|%f|%l").splitlines():
        name, state, counts, gres, features, limit = line.split("|", 5)
        allocated, idle, _, _ = map(int, counts.split("/"))
        found.append(
            Partition(
                name.removesuffix("*"),
                name.endswith("*"),
                state == "up",
                allocated + idle,
                "" if gres == "(null)" else gres,
                tuple(features.split(",")) if features != "(null)" else (),
                _seconds(limit),
            )
        )
    return found


def _seconds(limit: str) -> float | None:
    """Seconds of ``[days-]hours:minutes:seconds``, or shorter from the right; None for ``infinite``."""
    days, _, clock = limit.rpartition("-")
    parts = clock.split(":")
    if not all(part.isdigit() for part in parts):
        return None
    total = 0
    for part in parts:
        total = total * 60 + int(part)
    return int(days or 0) * 86400 + total


def obstacles(profile: SlurmProfile, there: list[Partition], nodes: int, timeout: float | None) -> Iterator[str]:
    """A sentence for each thing of a profile, or of a job, that a site does not have.

    Args:
        profile: What is asked for.
        there: The site's partitions.
        nodes: How many nodes a job wants.
        timeout: Seconds that it may run; None where it does not say.
    """
    wanted = dict(profile.options)
    name = wanted.get("partition")
    kinds = [kind for kind in there if (kind.name == name if name else kind.default)]
    if not kinds:
        names = ", ".join(dict.fromkeys(kind.name for kind in there)) or "none"
        yield f"the site has no partition {name or 'that is its default'}; it has: {names}"
        return
    name = kinds[0].name
    if not kinds[0].up:
        yield f"the partition {name} takes no jobs now"
    if constraint := wanted.get("constraint"):
        features = {each for kind in kinds for each in kind.features}
        have = ", ".join(sorted(features)) or "none"
        for missing in sorted(set(re.findall(r"[\w.-]+", constraint)) - features):
            yield f"no node of the partition {name} has the feature {missing}; they have: {have}"
    if gres := wanted.get("gres"):
        kinds = [kind for kind in kinds if all(_offers(kind.gres, each) for each in gres.split(","))]
        if not kinds:
            yield f"no node of the partition {name} has {gres}"
            return
    if (most := sum(kind.nodes for kind in kinds)) < nodes:
        yield f"the job wants {nodes} nodes, and the partition {name} has {most} that are up"
    limit = kinds[0].limit
    if limit is not None and timeout is not None and timeout + GRACE > limit:
        yield (
            f"the job may run {timeout:g} s, and with {GRACE} s for its end that is more than the {limit:g} s of the "
            f"partition {name}"
        )


def _offers(there: str, wanted: str) -> bool:
    """True where a node's devices (``gpu:a100:8(S:0-1)``) hold what is asked for (``gpu:8``, ``gpu:a100``)."""
    kind, *rest = wanted.split(":")
    count = int(rest[-1]) if rest and rest[-1].isdigit() else 1
    model = next((each for each in rest if not each.isdigit()), None)
    have = 0
    for each in re.sub(r"\([^)]*\)", "", there).split(","):
        name, *more = each.split(":")
        if name == kind and (model is None or model in more):
            have += int(more[-1]) if more and more[-1].isdigit() else 1
    return have >= count
