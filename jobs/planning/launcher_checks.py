"""Launchers in a command and in the scripts that it starts, held against nodes, GPUs and the distribution.

A rule yields the row of `launchers.toml` that says it, and the values in its words. A launcher's own defaults count
where it is given nothing; what only the run knows is never judged.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.base.findings import Finding, Level
from amlstack.code_reading.code_files import text_of
from amlstack.code_reading.launches import LIGHTNING, VARIABLE, Launch, launches_in
from amlstack.code_reading.starters import MODES, STARTERS, counted_per_node, launch_of
from jobs.launchers import Lightning, Lowered, MpiDistribution, PyTorchDistribution
from jobs.values import Input

if TYPE_CHECKING:
    from jobs.model.job import Job
    from jobs.planning.plans import Target


Wrong = Iterator[tuple[str, Mapping[str, Any]]]

_LOCAL = re.compile(r"(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[?::1\]?)(?::.*)?")
_SETTING = re.compile(r"^\s*(\w+):[ \t]*[\"']?([^\s\"'#]*)", re.MULTILINE)
_HOSTS = frozenset({"H", "host", "hosts", "hostfile", "machinefile", "default-hostfile", "f", "host-discovery-script"})
_ONE_OF = ("multi-gpu", "cpu", "tpu", "use-deepspeed", "use-fsdp")
_ON_GPUS = re.compile(r"torch|horovod|deepspeed|tensorflow|\bjax|cuda")
_WITHOUT_SSH = frozenset({"standard", "nossh"})


class Machines(NamedTuple):
    """The machines on which a launcher runs; None in the place of what is not known.

    Attributes:
        nodes: Nodes of the job.
        gpus: GPUs of one; 0 on CPU sizes.
        size: The size's name.
        started: Processes that Azure ML starts on each node.
        kind: The distribution's name; empty for none.
        folder: The code.
    """

    nodes: int | None
    gpus: int | None
    size: str
    started: int | None
    kind: str
    folder: str | None

    @property
    def several(self) -> bool:
        """True where the job has several nodes for certain."""
        return self.nodes is not None and self.nodes > 1

    def differs(self, count: str) -> bool:
        """True where a number of nodes is known not to be the job's."""
        return count.isdigit() and int(count) > 0 and self.nodes not in (None, int(count))

    def text(self, name: str) -> str | None:
        """The text of a file of the code; None where it is not known."""
        known = name and "$" not in name and self.folder is not None
        return text_of(os.path.join(str(self.folder), name)) if known else None  # noqa: PTH118 - of each of many jobs

    def entry(self, launch: Launch) -> str:
        """The text of the script that a launch starts; empty where it is not known."""
        return self.text(next((word for word in launch.started if word.endswith(".py")), "")) or ""


def judged(launch: Launch, machines: Machines) -> Wrong:
    """Everything that is wrong with one launch."""
    if launch.name in STARTERS and (machines.started or 1) > 1:
        yield "under-azure", {}
        return
    machines = machines._replace(gpus=None) if launch.some_gpus else machines
    yield from _RULES.get(launch.name, _counted)(launch, machines)
    inner, count = _inner(launch), counted_per_node(launch.name, launch.options, machines.nodes)
    if inner and count is not None and count > 1:
        yield "in-each-other", {"inner": inner, "count": count}


def _variable(launch: Launch, machines: Machines) -> Wrong:
    if machines.several and _LOCAL.fullmatch(launch.options["value"]):
        # A script may start, in a branch, a launcher that sets it again.
        unsure = {"level": "warning"} if launch.script or machines.kind != "pytorch" else {}
        yield "local-variable", {"address": launch.options["value"], **unsure}


def _torchrun(launch: Launch, machines: Machines) -> Wrong:
    options, many = launch.options, machines.several
    if many and launch.complete and ("standalone" in options or "nnodes" not in options):
        yield "torchrun-alone", {"what": "`--standalone`" if "standalone" in options else "no `--nnodes`"}
        many = False
    least, _, most = options.get("nnodes", "").partition(":")
    most = most or least
    if machines.nodes and (least + most).isdigit() and not int(least) <= machines.nodes <= int(most):
        yield "nodes", {"told": f"--nnodes {options['nnodes']}"}
        many = many and int(most) > 1
    if many:
        yield from _meeting(launch)
    count = options.get("nproc-per-node", "1" if launch.complete else "")
    if count == "gpu" and machines.gpus == 0:
        yield "torchrun-cpu", {}
    missing = "" if "nproc-per-node" in options else "torchrun is given no count"
    yield from _count(count, machines, f"`--nproc_per_node {machines.gpus}`", missing)


def _meeting(launch: Launch) -> Wrong:
    """The place where torchrun's nodes meet, and their ranks."""
    options = launch.options
    backend = options.get("rdzv-backend", "static" if launch.complete else "$")
    endpoint = options.get("rdzv-endpoint", options.get("master-addr") if backend == "static" else None)
    if endpoint is None and launch.complete and "$" not in backend:
        yield "torchrun-address" if backend == "static" else "torchrun-endpoint", {}
    elif endpoint is not None and _LOCAL.fullmatch(endpoint):
        yield "local", {"address": endpoint}
    if backend == "static":
        yield from _rank(launch, launch.options, "--node_rank")


def _accelerate(launch: Launch, machines: Machines) -> Wrong:
    file = launch.options.get("config-file", "")
    text = machines.text(file) if file else ""
    config = {key.replace("_", "-"): value for key, value in _SETTING.findall(text or "")}
    given = {key: value for key, value in config.items() if value not in {"", "null", "-1"}} | {**launch.options}
    known = launch.complete and text is not None
    if len(modes := [f"--{each.replace('-', '_')}" for each in _ONE_OF if each in launch.options]) > 1:
        yield "accelerate-modes", {"modes": " ".join(modes), "first": modes[0]}
    if known and file and "num-processes" not in given:
        yield "accelerate-uncounted", {"file": file}
    count = given.get("num-machines", "1" if known else "")
    if machines.differs(count):
        yield ("nodes", {"told": f"num_machines {count}"}) if "num-machines" in given else ("accelerate-alone", {})
    elif count.isdigit() and int(count) > 0:
        if machines.several and known:
            yield from _accelerate_nodes(launch, given)
        yield from _accelerate_count(int(count), given, machines, file=file if known else None)


def _accelerate_nodes(launch: Launch, given: Mapping[str, str]) -> Wrong:
    deepspeed = "use-deepspeed" in given or given.get("distributed-type", "").upper() == "DEEPSPEED"
    if deepspeed and given.get("deepspeed-multinode-launcher", "pdsh") not in _WITHOUT_SSH:
        if "deepspeed-hostfile" not in given:
            yield "accelerate-ssh", {}
        return
    address = given.get("main-process-ip", "")
    if not address:
        yield "accelerate-address", {}
    elif _LOCAL.fullmatch(address):
        yield "local", {"address": address}
    if given.get("rdzv-backend", "static") == "static":
        yield from _rank(launch, given, "--machine_rank")


def _accelerate_count(count: int, given: Mapping[str, str], machines: Machines, *, file: str | None) -> Wrong:
    """Processes in total; ``file`` is accelerate's own, empty for none, None where more may be given than is known."""
    total = given.get("num-processes", "")
    one_process = not MODES & given.keys() and given.get("distributed-type", "NO").upper() == "NO"
    if not total and file == "" and count > 1:
        yield "accelerate-total", {}
    if not total.isdigit():
        return
    if int(total) % count:
        yield "accelerate-rest", {"count": total, "machines": count}
        return
    if int(total) == 1 and "multi-gpu" in given:
        yield "accelerate-one", {}
        return
    if file is not None and int(total) > 1 and one_process:
        if file:
            yield "accelerate-no", {"count": total}
        elif count > 1 and machines.gpus in (None, 1):
            yield "accelerate-one-gpu" if machines.gpus else "accelerate-unsure", {"count": total}
    counted = f"`--num_processes {total}` in total, " if count > 1 else ""
    goal = f"`--num_processes {count * (machines.gpus or 1)}`"
    yield from _count(str(int(total) // count), machines, goal, counted=counted)


def _deepspeed(launch: Launch, machines: Machines) -> Wrong:
    options = launch.options
    include = options.get("include", options.get("i", ""))
    gpus = options.get("num-gpus", options.get("num-accelerators", ""))
    if include and (gpus or "num-nodes" in options):
        yield "deepspeed-include", {}
        return
    if machines.differs(count := options.get("num-nodes", "")):
        yield "nodes", {"told": f"--num_nodes {count}"}
    elif machines.several and launch.complete:
        if "no-ssh" in options:
            yield from _rank(launch, options, "--node_rank")
            if _LOCAL.fullmatch(address := options.get("master-addr", "127.0.0.1")):
                yield "local", {"address": f"--master_addr {address}"}
        if not _HOSTS & options.keys() and "hostfile" not in (machines.text(launch.script) or ""):
            yield "hosts", {}
    slots = [each for each in include.partition("@")[0].partition(":")[2].split(",") if each]
    if machines.gpus and any(each.isdigit() and int(each) >= machines.gpus for each in slots):
        yield "deepspeed-slots", {"include": include, "last": machines.gpus - 1}
    else:
        written = f"`--num_gpus {machines.gpus}`" if not slots else "all GPUs, or leave `--include` out"
        yield from _count(gpus or (str(len(slots)) if slots else ""), machines, written)


def _mpirun(launch: Launch, machines: Machines) -> Wrong:
    options, row = launch.options, STARTERS[launch.name]
    hosts = options.get("H", options.get("host", options.get("hosts", "")))
    if machines.several and launch.complete:
        if not _HOSTS & options.keys():
            yield "hosts", {}
            return
        if hosts and all(_LOCAL.fullmatch(each) for each in hosts.split(",")):
            yield "local", {"address": hosts}
            return
    if launch.complete and machines.gpus != 0 and not {*row.ranks, *row.total, "map-by", "min-np"} & options.keys():
        yield "uncounted-horovod" if launch.name == "horovodrun" else "uncounted", {}
    each = None if _inner(launch) else counted_per_node(launch.name, options, machines.nodes)
    # MPI starts programs for the CPU, too: as many of them as there are cores may be meant.
    unsure = {} if launch.name == "horovodrun" or _ON_GPUS.search(machines.entry(launch)) else {"level": "warning"}
    for name, values in _count("" if each is None else str(each), machines, "as many on each node as it has GPUs"):
        yield name, {**values, **unsure}


def _counted(launch: Launch, machines: Machines) -> Wrong:
    """A launcher of `STARTERS` without a rule of its own."""
    each = counted_per_node(launch.name, launch.options, machines.nodes)
    yield from _count("" if each is None else str(each), machines, "as many on each node as it has GPUs")


def _lightning(launch: Launch, machines: Machines) -> Wrong:
    nodes, devices = launch.options.get("num-nodes", ""), launch.options.get("devices", "")
    text = machines.entry(launch)
    if "lightning" not in text and not any(word.startswith("--trainer.") for word in launch.started):
        return  # another script may count other things by these names
    if machines.differs(nodes):
        yield "nodes", {"told": f"num_nodes {nodes}"}
    if not devices.isdigit():
        return
    if machines.started and machines.started > 1 and int(devices) != machines.started:
        yield "lightning-count", {"count": devices}
        return
    alone = machines.kind == "pytorch" and machines.started == 1 and "LOCAL_RANK" not in launch.unset
    if alone and int(devices) > 1 and "lightning" in text and "LOCAL_RANK" not in text:
        yield "lightning-alone", {"count": devices}
    yield from _count(devices, machines, f"{machines.gpus} devices")


_RULES = {
    VARIABLE: _variable,
    LIGHTNING: _lightning,
    "torchrun": _torchrun,
    "accelerate": _accelerate,
    "deepspeed": _deepspeed,
    **dict.fromkeys(("mpirun", "mpiexec", "horovodrun"), _mpirun),
}


def _rank(launch: Launch, given: Mapping[str, str], option: str) -> Wrong:
    """The number of a node among the nodes, which no two may share."""
    value = given.get(option.lstrip("-").replace("_", "-"))
    if value is None and launch.complete:
        yield "rank", {"what": f"no `{option}`", "option": option}
    elif value is not None and value.isdigit():
        yield "rank", {"what": f"`{option} {value}`, the same everywhere,", "option": option}


def _count(written: str, machines: Machines, write: str, missing: str = "", counted: str = "") -> Wrong:
    """Processes of a node against its GPUs; nothing where either is not known."""
    if not written.isdigit() or not machines.gpus:
        return
    count = int(written)
    what = missing or f"{counted}{count} process{'' if count == 1 else 'es'} on each node"
    if count > machines.gpus:
        is_total = machines.several and count == machines.gpus * (machines.nodes or 0)
        total = f". {count} is the total of {machines.nodes} nodes" if is_total else ""
        yield "beyond", {"what": what, "write": write, "total_of": total}
    elif count < machines.gpus:
        yield "idle", {"what": what, "write": write}


def _inner(launch: Launch) -> str:
    """The launcher that a launcher starts; empty for none."""
    if not launch.started or launch.name not in STARTERS:
        return ""
    program, *rest = launch.started[0].rsplit("/", 1)[-1], *launch.started[1:]
    name = launch_of(program, rest)[0] if program in STARTERS or program.startswith("python") else ""
    return "" if name == "amlnode" else name


_INPUT = re.compile(r"\$\{\{\s*inputs\.(\w+)\s*\}\}")
_OPTIONAL = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)


@cache
def _rows() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("launchers.toml").read_text(encoding="utf-8"))


def launchers(job: Job, lowered: Lowered, target: Target, base: Path) -> Iterator[Finding]:
    """Findings on the launchers that a command starts.

    Args:
        job: As declared.
        lowered: Its own launcher in Azure ML's words.
        target: Where it runs; counts of GPUs are judged where its size is known.
        base: Folder that its code is relative to.
    """
    if any(each.code == "launcher-in-command" for each in lowered.findings):
        return
    code = job.code.path if job.code is not None and job.code.local else None
    folder = None if code is None else os.path.join(base, code)  # noqa: PTH118 - of each of many jobs
    found = tuple(launches_in(filled(job), job.environment_variables, folder))
    if not found:
        return
    machines = _machines(job, lowered, target, folder)
    made: dict[Finding, None] = {}
    for each in found:
        if each.name == VARIABLE and any(one.name != VARIABLE for one in found):
            continue
        if each.name == LIGHTNING and isinstance(job.launcher, Lightning):  # which has compared them
            continue
        file = os.path.normpath(os.path.join(str(folder), each.script)) if each.script else None  # noqa: PTH118 - as above
        for name, values in judged(each, machines):
            words = {**_words(machines), "launcher": each.name, **values}
            row = _rows()[name]
            seen, rule, remedy = (row[part].format_map(words) for part in ("seen", "rule", "remedy"))
            level = Level(values.get("level", row.get("level", Level.ERROR)))
            made[Finding(row["code"], "command", seen, rule, remedy, level, file, each.line or None)] = None
    yield from made


def _machines(job: Job, lowered: Lowered, target: Target, folder: str | None) -> Machines:
    size, distribution = target.facts, lowered.distribution
    started = getattr(distribution, "process_count_per_instance", None) or 1
    return Machines(
        nodes=None if job.max_instance_count or isinstance(job.nodes, str) else job.nodes or 1,
        gpus=size.gpus if size else None,
        size=size.name if size else "",
        started=started if isinstance(started, int) else None,
        kind=distribution.type if isinstance(distribution, PyTorchDistribution | MpiDistribution) else "",
        folder=folder,
    )


def _words(machines: Machines) -> dict[str, Any]:
    """The words of every text."""
    nodes, gpus = machines.nodes, machines.gpus
    words = {name: value or name.upper() for name, value in machines._asdict().items()}
    total = nodes * gpus if nodes and gpus else "NODES × GPUS"
    several = {"s": "" if nodes == 1 else "s", "s_gpus": "" if gpus == 1 else "s"}
    return words | several | {"total": total, "kind": machines.kind or "pytorch"}


def filled(job: Job) -> str:
    """The command with the inputs filled in that are plain values."""

    def value(found: re.Match[str]) -> str:
        given = job.inputs.get(found[1])
        return found[0] if given is None or isinstance(given, Input) or "${{" in str(given) else str(given)

    def kept(found: re.Match[str]) -> str:
        return found[1] if all(name in job.inputs for name in _INPUT.findall(found[1])) else ""

    command = job.command
    return _INPUT.sub(value, _OPTIONAL.sub(kept, command)) if "{{" in command or "[[" in command else command
