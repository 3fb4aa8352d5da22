"""A real Slurm of two nodes on this machine, from Debian's packages, started and ended by the tests that use it.

The packages are fetched once into the user's cache and unpacked there, not installed. Without munge, on loopback.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amlstack.base import paths
from amlstack.sandbox import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins")
PROGRAMS = ("sbatch", "squeue", "srun", "scancel", "sinfo", "scontrol")
LIMIT = 60.0
"""Seconds that a daemon may take to answer on a busy machine."""

_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
PluginDir={plugins}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
SlurmdTimeout=5
KillWait=2
MessageTimeout=10
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
NodeName=n[0-1] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[2]}] \\
  CPUs=1 RealMemory=1000 Feature=small State=UNKNOWN
PartitionName=gpu Nodes=n[0-1] Default=YES MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName=short Nodes=n[0-1] MaxTime=30 PriorityTier=1 State=UP
PartitionName=single Nodes=n[0-1] MaxNodes=1 MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName=urgent Nodes=n[0-1] MaxTime=INFINITE PriorityTier=9 State=UP
"""


def packages() -> tuple[Path | None, str]:
    """The folder with the unpacked packages, and why there is none."""
    root = paths.cache() / "test-slurm"
    if (root / "usr/sbin/slurmctld-wlm").is_file():
        return root, ""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return None, "this machine has no apt-get to fetch Debian's Slurm with"
    part = root.with_name(f"test-slurm.{os.getpid()}")
    shutil.rmtree(part, ignore_errors=True)
    (part / "debs").mkdir(parents=True)
    options = ("APT::Sandbox::User=root", "Acquire::Retries=0", "Acquire::http::Timeout=20")
    words = ["apt-get", *(word for option in options for word in ("-o", option)), "download", *PACKAGES]
    got = subprocess.run(words, cwd=part / "debs", capture_output=True, text=True, check=False)
    if got.returncode != 0:
        return None, f"Debian's Slurm cannot be fetched: {got.stderr.strip().splitlines()[-1]}"
    for package in sorted((part / "debs").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(package), str(part)], check=True)
    shutil.rmtree(part / "debs")
    plugins = part / "usr/lib/x86_64-linux-gnu/slurm-wlm"
    daemon = part / "usr/sbin/slurmctld-wlm"
    environ = {**os.environ, "LD_LIBRARY_PATH": str(plugins)}
    linked = subprocess.run(["ldd", str(daemon)], capture_output=True, text=True, env=environ, check=False).stdout
    if missing := [line.split()[0] for line in linked.splitlines() if "not found" in line]:
        return None, f"Debian's Slurm needs libraries that this machine lacks: {', '.join(missing)}"
    part.replace(root)
    return root, ""


@dataclass
class Slurm:
    """One controller and two node daemons in a folder of a test.

    Attributes:
        folder: Holds configuration, state, logs, and ``bin`` with the commands.
        root: The unpacked packages.
        daemons: By name: ``slurmctld``, ``n0``, ``n1``.
    """

    folder: Path
    root: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def commands(self) -> Path:
        """Folder of the commands, to be put on PATH."""
        return self.folder / "bin"

    @property
    def environ(self) -> dict[str, str]:
        libraries = str(self.root / "usr/lib/x86_64-linux-gnu/slurm-wlm")
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), "LD_LIBRARY_PATH": libraries}

    def start(self) -> None:
        """Starts all daemons, and returns once both nodes are idle."""
        self.commands.mkdir(parents=True)
        (self.folder / "state").mkdir()
        ports = self._ports()
        plugins = self.root / "usr/lib/x86_64-linux-gnu/slurm-wlm"
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        host = socket.gethostname().split(".")[0]
        conf = _CONF.format(host=host, ports=ports, user=user, folder=self.folder, plugins=plugins)
        (self.folder / "slurm.conf").write_text(conf)
        for name in PROGRAMS:
            # As where Slurm is installed: whoever calls them needs none of these variables.
            script = self.commands / name
            variables = f"SLURM_CONF='{self.folder}/slurm.conf' LD_LIBRARY_PATH='{plugins}'"
            script.write_text(f"#!/bin/sh\n{variables} exec '{self.root}/usr/bin/{name}' \"$@\"\n")
            script.chmod(0o755)
        self.daemon("slurmctld")
        for node in ("n0", "n1"):
            self.daemon(node)
        self.wait(lambda: self.says("sinfo", "-h", "-t", "idle", "-p", "gpu", "-o", "%D").strip() == "2")

    def daemon(self, name: str) -> None:
        """Starts one daemon."""
        sbin = self.root / "usr/sbin"
        node = ["-N", name, "-d", str(sbin / "slurmstepd-wlm")]
        words = [str(sbin / "slurmctld-wlm"), "-D"] if name == "slurmctld" else [str(sbin / "slurmd-wlm"), "-D", *node]
        with (self.folder / f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(
                words, env=self.environ, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def kill(self, name: str, sig: signal.Signals = signal.SIGKILL) -> None:
        """Ends one daemon, and waits for its end."""
        self.daemons[name].send_signal(sig)
        self.daemons[name].wait(LIMIT)

    def says(self, *words: str) -> str:
        """The output of a command, and its errors: the controller may just not be there."""
        done = subprocess.run(
            [str(self.commands / words[0]), *words[1:]], capture_output=True, text=True, check=False, timeout=LIMIT
        )
        return done.stdout + done.stderr

    def allocations(self) -> list[str]:
        """Number and state of the jobs that have not ended."""
        return self.says("squeue", "-h", "-o", "%i %T").split("\n")[:-1]

    def wait(self, done: Callable[[], bool]) -> None:
        """Asks until something holds: Slurm tells nobody by itself."""
        until = time.monotonic() + LIMIT
        while not done():
            if time.monotonic() > until:
                logs = "\n".join(f"{file.name}: {file.read_text()[-2000:]}" for file in self.folder.glob("*.log"))
                raise AssertionError(f"Slurm did not get there.\n{logs}")
            select.select([], [], [], 0.1)

    def end(self) -> None:
        """Cancels what is left and ends the daemons."""
        self.says("scancel", "--state=PENDING", "--me")
        self.says("scancel", "--me")
        for daemon in reversed(self.daemons.values()):
            if daemon.poll() is None:
                daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(LIMIT)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for pid in self.left():  # steps that still try to tell a controller of their end
            processes.send(pid, signal.SIGKILL)

    def left(self) -> list[int]:
        """The processes of Slurm itself that live on this cluster's configuration."""
        marked = f"SLURM_CONF={self.folder}/slurm.conf".encode()
        found = []
        for pid in processes.living():
            with contextlib.suppress(OSError):  # gone meanwhile
                program = Path(f"/proc/{pid}/cmdline").read_bytes()
                if program.startswith(b"slurmstepd") and marked in Path(f"/proc/{pid}/environ").read_bytes().split(
                    b"\0"
                ):
                    found.append(pid)
        return found

    @staticmethod
    def _ports() -> tuple[int, int, int]:
        """Three free ports, the last two side by side."""
        while True:
            first, second = processes.free_ports(2)
            with socket.socket() as probe:
                try:
                    probe.bind(("", second + 1))
                except OSError:
                    continue
            return first, second, second + 1


def started(folder: Path) -> Iterator[Slurm]:
    """A cluster for a fixture; the test is skipped where there are no packages."""
    root, reason = packages()
    if root is None:
        pytest.skip(reason)
    made = Slurm(folder, root)
    try:
        made.start()
        yield made
    finally:
        made.end()


def main() -> int:
    """``python -m tests.support.slurm``: two nodes until Ctrl-C, for trying things out."""
    root, reason = packages()
    if root is None:
        sys.stderr.write(f"{reason}\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        made = Slurm(Path(folder), root)
        try:
            made.start()
            sys.stdout.write(f'Two nodes are idle. In another shell: export PATH="{made.commands}:$PATH"\n')
            sys.stdout.flush()
            with contextlib.suppress(KeyboardInterrupt):
                signal.signal(signal.SIGTERM, signal.default_int_handler)
                signal.pause()
        finally:
            made.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
