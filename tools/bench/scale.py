"""Clusters and jobs by the thousand."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from measure import PROJECT, Row, taken

from amlstack import engine
from amlstack.sandbox.protocol.entra import SUBSCRIPTION
from amlstack.sandbox.server import daemon
from tests.support.harness import ANALYZER, STAND_IN, Stack
from tests.support.policies.accepting_provider import attached
from tests.support.sandbox.sandbox_client import Arm

PACK = ("--policy-pack", str(ANALYZER))
CLUSTERS = 20
"""Of the rows of jobs on the accepting provider."""
ID = "11111111-1111-1111-1111-111111111111"
KEEPS_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
SKIP_CHECKPOINTS = {"PULUMI_SKIP_CHECKPOINTS": "1"}
TICK = os.sysconf("SC_CLK_TCK")
JOBS = """\
from jobs import Job, Limits, TorchRun

IMAGE = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7"
jobs = [
    Job(
        name=f"j{{i:05}}", command="train.py", code="src", inputs={{"seed": i}}, environment=IMAGE, nodes=2,
        compute=f"c{{i % {clusters}:05}}", launcher=TorchRun(), limits=Limits(timeout=3600),
    )
    for i in range({count})
]
"""
PLAIN = """\
import pulumi
from pulumi_azure_native import machinelearningservices as ml, resources

NAMES = {{"resource_group_name": "rg", "workspace_name": "ws-bench"}}
group = resources.ResourceGroup("group", resource_group_name="rg", location="westeurope")
workspace = ml.Workspace("workspace", resource_group_name=group.name, workspace_name="ws-bench", location="westeurope")
behind = pulumi.ResourceOptions(depends_on=[workspace])
clusters = [
    ml.Compute(
        f"c{{i:05}}", compute_name=f"c{{i:05}}", **NAMES, location="westeurope", opts=behind,
        identity=ml.ManagedServiceIdentityArgs(type="SystemAssigned"),
        properties=ml.AmlComputeArgs(
            compute_type="AmlCompute", disable_local_auth=True,
            properties=ml.AmlComputePropertiesArgs(
                vm_size="Standard_ND96isr_H100_v5", vm_priority="Dedicated", os_type="Linux",
                remote_login_port_public_access="Disabled",
                scale_settings=ml.ScaleSettingsArgs(
                    min_node_count=0, max_node_count=2, node_idle_time_before_scale_down="PT10M"
                ),
            ),
        ),
    )
    for i in range({clusters})
]
for i in range({jobs}):
    ml.Job(
        f"j{{i:05}}", id=f"j{{i:05}}", **NAMES, opts=pulumi.ResourceOptions(depends_on=[clusters[i % {clusters}]]),
        properties=ml.CommandJobArgs(
            job_type="Command", command="python train.py --seed ${{{{inputs.seed}}}}",
            compute_id=f"/subscriptions/s/computes/c{{i % {clusters}:05}}",
            code_id="/subscriptions/s/codes/c/versions/1",
            environment_id="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7",
            distribution=ml.PyTorchArgs(distribution_type="PyTorch", process_count_per_instance=8),
            resources=ml.JobResourceConfigurationArgs(instance_count=2, shm_size="950g"),
            inputs={{"seed": ml.LiteralJobInputArgs(job_input_type="literal", value=str(i))}},
            limits=ml.CommandJobLimitsArgs(job_limits_type="Command", timeout="PT1H"),
            environment_variables={{"NCCL_SOCKET_IFNAME": "eth0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}},
        ),
    )
"""
SANDBOXED = """\
import sys
import pulumi

sys.path.insert(0, PROJECT)
from infra.components import registration

registration.leave_out_unread()
GROUP, WORKSPACE = "scale", "scale"
HOME = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"
HOME += f"/providers/Microsoft.MachineLearningServices/workspaces/{WORKSPACE}"
SCALE = {"minNodeCount": 0, "maxNodeCount": 2, "nodeIdleTimeBeforeScaleDown": "PT10M"}
INNER = {"vmSize": "Standard_ND96isr_H100_v5", "scaleSettings": SCALE}
NAMES = {"resourceGroupName": GROUP, "workspaceName": WORKSPACE, "location": "eastus"}

clusters = []
for i in range(CLUSTERS):
    compute = {"computeType": "AmlCompute", "disableLocalAuth": True, "properties": INNER}
    inputs = {"computeName": f"cluster-{i}", **NAMES, "properties": compute}
    clusters.append(pulumi.CustomResource("azure-native:machinelearningservices:Compute", f"cluster-{i}", inputs))
record = pulumi.CustomResource("amlstack:stack:Record", "stack", {"stackId": "of-the-benchmark"})
known = {"workspace": HOME, "stackId": record.id}
guard = {"jobs": {f"job-{i}": "refuse" for i in range(JOBS)}}
guard |= {f"cluster:cluster-{i}": one.id for i, one in enumerate(clusters)}
runs = pulumi.CustomResource("amlstack:runs:Guard", "runs", {**known, **guard})
for i in range(JOBS):
    cluster = clusters[i % CLUSTERS]
    properties = {
        "jobType": "Command",
        "command": "python train.py --epochs 3 --learning-rate 0.1",
        "computeId": cluster.id,
        "limits": {"jobLimitsType": "Command", "timeout": "PT1H"},
        "environmentId": "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/1",
        "resources": {"instanceCount": 2, "shmSize": "950g"},
        "environmentVariables": {"NCCL_DEBUG": "INFO", "UCX_TLS": "rc,self,sm"},
        "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 8},
        "experimentName": "scale",
        "tags": {"team": "a"},
    }
    declared = {"name": f"job-{i}", "declaration": {"job": i}, "body": {"properties": properties}}
    options = pulumi.ResourceOptions(depends_on=[runs])
    pulumi.CustomResource("amlstack:jobs:Job", f"job-{i}", {**known, **declared, "placedOn": [cluster.id]}, options)
"""


def scale(*, quick: bool, full: bool = False) -> Iterator[Row]:
    """Clusters and jobs by the thousand: our program beside plain classes, and the sandbox beside no service at all.

    The first rows are our program with all its rules, on a provider that takes everything and gives back what it was
    given, over twenty clusters. Plain are azure-native's generated classes without a pack. Times are by the clock, each
    once: a turn costs minutes, and the ratios lie far from their goals. Plain's preview stands for its `up` with
    nothing to change as well, which takes a little longer. The engine has the settings of `make up` on all sides.
    Memory is the highest resident set of a process, as the kernel has it.

    An `up` is measured with 200 jobs, as its time grows with the square of their number; `--full` measures 1,000, which
    takes minutes more, and on 2026-11-22 took 239 s (1.35 times plain's). What has nothing to change was made without
    checkpoints and is then measured with them. With `--quick` it is twenty jobs, which shows that all of it works.

    Seven eighths of the engine's CPU in an `up` is its checkpoint. It makes the whole state anew, as values and twice
    as JSON, before and after each step, so that a kill at any moment loses nothing. `PULUMI_SKIP_CHECKPOINTS` would end
    it, and with it the record of what a killed `up` had begun: this project does not set it. The engine's journal,
    which writes only what a step changed, is for Pulumi's own service. On 2026-11-22 a job had 5,600 bytes in the
    state; its ARM body alone is 1,285, in the inputs and in the outputs, and 2.5 times faster than plain leaves 1,410.

    The rows of the sandbox are up, refresh and destroy of one program, by the clock and in CPU. Their anchor is the
    same program on a provider in this process that takes everything, which leaves the engine's own cost. Of the SDK it
    leaves out what this project's own program leaves out. The sandbox holds the jobs in its queue, so that none runs;
    they are submitted, read, and at the end cancelled one by one. CPU seconds are those of the engine, the program, the
    providers and the sandbox's server. First are 20 clusters and 200 jobs as users run them, with checkpoints on both
    sides, which bring the ratio nearer to one. The rows that name no checkpoints show what the sandbox and the provider
    cost: 100 clusters and 1,000 jobs with `PULUMI_SKIP_CHECKPOINTS`, where the state is written at the end only. With
    `--quick` it is 5 clusters and 50 jobs with checkpoints alone.

    A job costs two requests in an up and two in a destroy: cancel, and a look at how it ended. A refresh asks for the
    first 32 jobs one by one and finds the others in a list of the workspace, which serves for two seconds. On
    2026-11-23 a look at a job took 0.33 ms of CPU in the provider's HTTP client and 0.52 ms in the server, a cancel
    0.28 and 0.62, a submission 0.37 and 1.03. An up of 1,000 jobs without checkpoints took 17.8 s of CPU, and 7.3 s
    with the accepting provider: the provider 4.7, the server 4.1, the program 3.9, the engine 3.5, the stand-in of
    azure-native 0.7. A destroy took 1.8 s of CPU in requests alone, and the accepting provider's whole destroy 1.2 s. A
    list cannot take the place of the looks: the engine deletes as many jobs at once as it has workers, and a look has
    to follow its cancel. Twice the anchor's CPU is out of reach while each job is asked for.
    """
    with tempfile.TemporaryDirectory() as folder:
        with attached() as provider:
            yield from _registered(Path(folder), provider.environ | KEEPS_BYTECODE, quick=quick, full=full)
        for jobs, clusters, checkpoints in ((50, 5, True),) if quick else ((200, 20, True), (1000, 100, False)):
            with tempfile.TemporaryDirectory(dir=folder) as made:
                yield from _sandboxed(Path(made), jobs, clusters, checkpoints=checkpoints)


def _registered(folder: Path, env: Mapping[str, str], *, quick: bool, full: bool) -> Iterator[Row]:
    """Rows of our program beside plain classes, and of ten times as many jobs beside these."""
    count = 20 if quick else 1000
    name = f"{count:,} jobs"
    with _ours(folder, count, env) as stack:
        preview = _seconds(stack, "preview", *PACK)
        stack.env.update(SKIP_CHECKPOINTS)
        _seconds(stack, "up", *PACK)
        stack.env.pop(*SKIP_CHECKPOINTS)
        again = _seconds(stack, "up", *PACK)
    with _plain(folder, count, env) as stack:
        plain = _seconds(stack, "preview")
    yield _faster(f"preview of {name}", preview, plain, 3)
    yield _faster(f"up of {name}, nothing to change", again, plain, 3)
    ups = count if full or quick else 200
    with _ours(folder, ups, env) as ours, _plain(folder, ups, env) as stack:
        yield _faster(f"up of {ups:,} jobs", _seconds(ours, "up", *PACK), _seconds(stack, "up"), 2.5)
    if quick:
        return
    many = 10 * count
    with _ours(folder, many, env) as stack:
        home = stack.env["PULUMI_HOME"]
        folder_of_pack = f"{ANALYZER.parent}\x00"  # a word of its process; the engine's words name the executable
        with _peak_of("pulumi-language-python-exec", home) as program, _peak_of(folder_of_pack, home) as pack:
            each, before = _seconds(stack, "preview", *PACK) / many, preview / count
    goal = "at most 1.2 times"
    yield Row(f"preview of {many:,} jobs, per job", each, "s", f"of {name}", before, goal, each <= 1.2 * before)
    yield Row(f"memory of the program, {many:,} jobs", program[0], "GB", goal="below 1.5", met=program[0] < 1.5)
    yield Row(f"peak memory of the pack, {many:,} jobs", pack[0], "GB", goal="below 0.5", met=0 < pack[0] < 0.5)


@contextmanager
def _ours(folder: Path, jobs: int, env: Mapping[str, str]) -> Iterator[Any]:
    """A stack of this project with so many jobs."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        made = Path(name)
        (made / "src").mkdir()
        (made / "src" / "train.py").write_text("print('trained')\n")
        (made / "jobs.py").write_text(JOBS.format(clusters=CLUSTERS, count=jobs))
        stack = Stack.of_project(made / "stack", engine.find().folders, env=env)
        cluster = {"size": "Standard_ND96isr_H100_v5", "nodes": {"max": 2}, "identity": "system"}
        config = {
            "azure-native:subscriptionId": ID,
            "azure-native:tenantId": ID,
            "amlstack:location": "westeurope",
            "amlstack:workspace": "ws-bench",
            "amlstack:assign_roles": False,
            "amlstack:clusters": [{"name": f"c{number:05}", **cluster} for number in range(CLUSTERS)],
            "amlstack:jobs": [str(made / "jobs.py")],
        }
        stack.settings.write_text(yaml.safe_dump({"config": config}))
        try:
            yield stack
        finally:
            stack.close()


@contextmanager
def _plain(folder: Path, jobs: int, env: Mapping[str, str]) -> Iterator[Any]:
    """A stack of as many jobs by azure-native's classes."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        stack = Stack(PLAIN.format(clusters=CLUSTERS, jobs=jobs), Path(name) / "stack", engine.find().folders, env=env)
        try:
            yield stack
        finally:
            stack.close()


def _seconds(stack: Any, verb: str, *words: str) -> float:
    more = () if verb == "preview" else ("--yes", "--skip-preview")
    return taken(lambda: stack.pulumi(verb, *more, *words).ok())[0]


def _faster(what: str, ours: float, theirs: float, goal: float) -> Row:
    words = f"at least {goal} times faster (now {theirs / ours:.2f})"
    return Row(what, ours, "s", "azure-native's classes, no pack", theirs, words, ours * goal <= theirs)


def _sandboxed(folder: Path, jobs: int, clusters: int, *, checkpoints: bool) -> Iterator[Row]:
    """Rows of each step on the sandbox and on the accepting provider."""
    mode = KEEPS_BYTECODE | ({} if checkpoints else SKIP_CHECKPOINTS)
    with attached() as provider:
        accepted = _steps(folder / "accepting", jobs, clusters, provider.environ | mode)
    home = folder / "home"
    home.mkdir()
    endpoint = daemon.up(home, hold_jobs=True)
    try:
        Arm(endpoint).make_workspace("scale")
        env = {**endpoint.environ(), "AMLSTACK_HOME": str(home), **mode}
        steps = _steps(folder / "sandbox", jobs, clusters, env, endpoint.pid)
    finally:
        daemon.down(home)
    for step, figures in steps.items():
        for unit, ours, anchor in zip(("", ", CPU"), figures, accepted[step], strict=True):
            short = "" if checkpoints else ", no checkpoints"
            what = f"{step} of {clusters} clusters and {jobs:,} jobs on the sandbox{short}{unit}"
            yield Row(what, ours, "s", "accepting provider", anchor, "at most 2 times as much", ours <= 2 * anchor)


def _steps(
    folder: Path, jobs: int, clusters: int, env: Mapping[str, str], server: int | None = None
) -> dict[str, tuple[float, float]]:
    """Step → seconds by the clock and of CPU, those of the sandbox's server included."""
    given = f"SUBSCRIPTION, CLUSTERS, JOBS, PROJECT = {SUBSCRIPTION!r}, {clusters}, {jobs}, {str(PROJECT)!r}\n"
    stack = Stack(given + SANDBOXED, folder, engine.find().folders, env=env, path=(STAND_IN,))
    found = {}
    try:
        for step in ("up", "refresh", "destroy"):
            before = _spent(server)
            clock, cpu = taken(partial(_seconds, stack, step))
            found[step] = clock, cpu + _spent(server) - before
            print(f"{step}: {clock:.1f} s, CPU {found[step][1]:.1f} s", file=sys.stderr, flush=True)
    finally:
        stack.close()
    return found


def _spent(server: int | None) -> float:
    """CPU seconds so far of a process that is no child of this one."""
    if server is None:
        return 0.0
    words = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICK


@contextmanager
def _peak_of(word: str, home: str) -> Iterator[list[float]]:
    """GB that a process of an engine had resident at most, the one entry of a list that is filled meanwhile.

    Args:
        word: Part of its command line.
        home: `PULUMI_HOME` of the engine, which tells its processes from those of another.
    """
    peaks = [0.0]
    over = threading.Event()
    own = f"PULUMI_HOME={home}"

    def watch() -> None:
        while not over.wait(0.2):
            peaks[0] = max(peaks[0], *(_peak(process, word, own) for process in Path("/proc").glob("[0-9]*")))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        over.set()
        watcher.join()


def _peak(process: Path, word: str, own: str) -> float:
    try:
        if word not in (process / "cmdline").read_text() or own not in (process / "environ").read_text():
            return 0.0
        status = (process / "status").read_text()
    except (OSError, UnicodeDecodeError):
        return 0.0
    return next((int(line.split()[1]) / 1e6 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)
