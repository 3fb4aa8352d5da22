"""A machine for the engine finder: what stands on PATH, a `go` that is none, a release archive. Run as users run it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from amlstack.base.paths import PROJECT

PINNED = "3.259.0"
MACHINE = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
TARBALL = f"pulumi-v{PINNED}-linux-{MACHINE}.tar.gz"
CHECKSUMS = f"pulumi-{PINNED}-checksums.txt"
NAMES = ("pulumi", "pulumi-language-python", "pulumi-language-python-exec")


Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""
Files = dict[str, "Answer | bytes"]
Serve = Callable[[Files], str]
"""Starts a release server of these files; its address."""


def cli(version: str) -> str:
    return f"#!/bin/sh\necho v{version}\n"


HOST = "#!/bin/sh\necho '  -tracing string' >&2\n"

# Speaks as much `go` as the build needs; each build leaves a line in $FAKE_GO_LOG and then waits for a byte from
# $FAKE_GO_GATE.
FAKE_GO = f"""#!{sys.executable} -IS
import os, pathlib, sys
words = sys.argv[1:]
log = pathlib.Path(os.environ["FAKE_GO_LOG"])
if words[:2] == ["env", "GOVERSION"]:
    print(os.environ.get("FAKE_GO_VERSION", "go1.26.0"))
elif words[:2] == ["list", "-mod=readonly"] and "-m" in words:
    (log.parent / "sdk/python/cmd").mkdir(parents=True, exist_ok=True)
    (log.parent / "sdk/python/cmd/pulumi-language-python-exec").write_text("#!/bin/sh\\n")
    print(log.parent / "sdk")
elif words[0] == "list":
    print("go: downloading example.org/x v1.0.0", file=sys.stderr)
    print("example.org/x")
elif words[0] == "build":
    out = pathlib.Path(words[words.index("-o") + 1])
    with log.open("a") as lines:
        lines.write(out.name + "\\n")
    if gate := os.environ.get("FAKE_GO_GATE"):
        out.write_text("half")
        print("example.org/x", file=sys.stderr, flush=True)
        parent = os.getppid()
        os.read(os.open(gate, os.O_RDONLY), 1)
        if os.getppid() != parent:  # orphaned by a kill: the real one ends at its next line, too
            sys.exit(1)
    if complaint := os.environ.get("FAKE_GO_FAILS"):
        sys.exit(complaint)
    out.write_text({cli(PINNED)!r} if out.name == "pulumi" else {HOST!r})
"""


@dataclass
class Machine:
    """A user's machine made of a PATH folder, an empty cache and an empty home; at ``nowhere`` nobody answers."""

    root: Path
    nowhere: str
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("bin", "cache", "home"):
            (self.root / name).mkdir()

    def install(self, name: str, text: str, folder: str = "bin") -> Path:
        path = self.root / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def install_go(self) -> None:
        self.install("go", FAKE_GO)

    @property
    def builds(self) -> list[str]:
        log = self.root / "go.log"
        return log.read_text().split() if log.exists() else []

    def start(self, *words: str) -> subprocess.Popen[str]:
        env = {
            "PATH": str(self.root / "bin"),
            "HOME": str(self.root / "home"),
            "AMLSTACK_CACHE": str(self.root / "cache"),
            "AMLSTACK_PULUMI_RELEASES": self.nowhere,
            "FAKE_GO_LOG": str(self.root / "go.log"),
            **self.environ,
        }
        command = [sys.executable, str(PROJECT / "tools" / "engine"), *words]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        with self.start(*words) as process:
            out, err = process.communicate()
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def found(self) -> tuple[str, str]:
        """Source and version of a run that must succeed."""
        done = self.run("--json")
        assert done.returncode == 0, done.stderr
        messages = json.loads(done.stdout)
        (folder,) = messages["path"]
        assert all(os.access(Path(folder) / name, os.X_OK) for name in NAMES if messages["source"] != "path")
        return messages["source"], messages["version"]

    @property
    def cached(self) -> list[str]:
        """The contents of the cache, the lock files aside."""
        return sorted(path.name for path in self.root.glob("cache/engine/*") if not path.name.endswith(".lock"))


def tarball(version: str = PINNED, extra: tuple[str, ...] = ()) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in (*(f"pulumi/{name}" for name in NAMES), "pulumi/pulumi-language-go", *extra):
            content = (cli(version) if name == "pulumi/pulumi" else HOST).encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def checksums(content: bytes) -> bytes:
    return f"{'0' * 64}  pulumi-v{PINNED}-windows-x64.zip\n{hashlib.sha256(content).hexdigest()}  {TARBALL}\n".encode()
