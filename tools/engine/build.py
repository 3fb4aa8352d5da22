"""Source ``build``: the engine from Go modules, locked by the go.mod and go.sum files in ``modules/``."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import store
from .model import SDK_MODULE, VERSION, FoundEngine, NoEngineError, StepProgress, target

MODULES = Path(__file__).resolve().parent / "modules"
OLDEST_GO = (1, 21)
"""From 1.21 on, `go` fetches the newer toolchain that go.mod asks for by itself, verified like any module."""
LAUNCHER = "pulumi-language-python-exec"


@dataclass(frozen=True)
class Part:
    """One command to build: its lock folder in ``modules/``, its package, and the linker's words."""

    lock: str
    command: str
    package: str
    ldflags: str = "-s -w"


PARTS = (
    # The newest SDK module that still contains the host; later ones live in a module that is not published as such.
    # It speaks the protocol of the newer engine, but takes `python` from PATH instead of from Pulumi.yaml.
    Part("python_host", "pulumi-language-python", f"{SDK_MODULE}/python/cmd/pulumi-language-python"),
    Part(
        "cli",
        "pulumi",
        "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        f"-s -w -X {SDK_MODULE}/go/common/version.Version=v{VERSION}",
    ),
)


def recipe() -> str:
    """Digest of everything that decides what comes out: the locks, the linker's words, the platform."""
    digest = hashlib.sha256(repr((PARTS, target())).encode())
    for path in sorted(MODULES.glob("*/*")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def build() -> FoundEngine:
    """Builds into the cache; three to six minutes on two cores, the first time.

    Raises:
        NoEngineError: Go is missing or too old, or the build failed; the text holds its last lines.
    """
    go = _find_go()

    def fill(folder: Path) -> None:
        locks = folder / "modules"
        shutil.copytree(MODULES, locks)
        for part in PARTS:
            _compile(go, locks / part.lock, part, folder / part.command)
        shutil.copyfile(_sdk_folder(go, locks / "cli") / "python" / "cmd" / LAUNCHER, folder / LAUNCHER)
        shutil.rmtree(locks)

    return store.make("build", recipe(), fill)


def _find_go() -> str:
    go = shutil.which("go")
    if go is None:
        spare = [place for place in ("/usr/local/go/bin", "/usr/lib/go/bin") if Path(place, "go").is_file()]
        hint = f"\nA Go lies in {spare[0]}, which is not on PATH: export PATH=$PATH:{spare[0]}" if spare else ""
        raise NoEngineError(
            "No Pulumi engine: there is none on PATH, its release cannot be had here, and building it needs Go, which "
            f"was not found on PATH.{hint}\nOne of these helps:\n"
            "  · Go 1.21 or newer: https://go.dev/dl/, or apt-get install golang-go from Debian 13 on\n"
            "  · the Pulumi CLI, 3.230 or newer, on PATH: https://www.pulumi.com/docs/install/\n"
            "  · a connection to github.com and get.pulumi.com, or AMLSTACK_PULUMI_RELEASES=<URL of a copy>"
        )
    answer = subprocess.run([go, "env", "GOVERSION"], env=_environ(), capture_output=True, text=True, check=False)
    found = re.search(r"go(\d+)\.(\d+)", answer.stdout)
    if answer.returncode or (found and (int(found[1]), int(found[2])) < OLDEST_GO):
        seen = answer.stdout.strip() or answer.stderr.strip()
        raise NoEngineError(f"{go} is {seen}; building the engine needs Go 1.21 or newer: https://go.dev/dl/")
    return go


def _compile(go: str, module: Path, part: Part, output: Path) -> None:
    with StepProgress(f"building {part.command} from Go modules") as progress:
        downloads = 0
        packages = 0

        def on_listing(line: str) -> None:
            nonlocal downloads
            downloads += line.startswith("go: downloading ")
            progress.update(f"{downloads} modules downloaded")

        listing = _run([go, "list", "-mod=readonly", "-deps", part.package], module, on_listing)
        total = len(listing)

        def on_building(line: str) -> None:
            nonlocal packages
            packages += not line.startswith("#")
            progress.update(f"package {packages} of {total} at most")

        command = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-v", "-ldflags", part.ldflags]
        _run([*command, "-o", str(output), part.package], module, on_building)


def _sdk_folder(go: str, module: Path) -> Path:
    return Path(_run([go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", SDK_MODULE], module, lambda _: None)[0])


def _run(command: list[str], folder: Path, on_line: Callable[[str], None]) -> list[str]:
    """Runs ``go``, hands each line of its stderr to ``on_line``, returns the lines of its stdout."""
    last: deque[str] = deque(maxlen=15)
    answer = folder / "stdout.txt"
    # Its stdout goes to a file, so that reading one pipe can never block the other.
    with answer.open("wb") as out, _process(command, folder, out.fileno()) as process:
        for line in process.stderr or ():
            last.append(line.rstrip("\n"))
            on_line(last[-1])
        code = process.wait()
    if code != 0:
        raise NoEngineError(_failure(command, code, list(last)))
    return answer.read_text("utf-8").splitlines()


@contextlib.contextmanager
def _process(command: list[str], folder: Path, out: int) -> Iterator[subprocess.Popen[str]]:
    # A session of its own, so that an interrupted build ends with all its compilers. If we are killed outright, the
    # broken stderr pipe ends `go` at its next line.
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=_environ(),
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stderr:
            process.stderr.close()


def _environ() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"GOOS", "GOARCH", "GOEXPERIMENT"}}
    # No C compiler is asked for, no workspace above the cache folder joins in, and distributions that switch the
    # toolchain download off by default are overruled (a person's own GOTOOLCHAIN is not).
    fixed = {"CGO_ENABLED": "0", "GOWORK": "off", "GO111MODULE": "on", "LC_ALL": "C"}
    return {"HOME": str(Path.home()), "GOTOOLCHAIN": "auto"} | kept | fixed


def _failure(command: list[str], code: int, last: list[str]) -> str:
    text = "\n".join(last)
    if "no space left on device" in text:
        remedy = (
            "The disk is full. The build needs about 4 GB, most of it in Go's own caches (go env GOCACHE GOMODCACHE)."
        )
    elif "SECURITY ERROR" in text or "checksum mismatch" in text:
        remedy = (
            "A module differs from its committed checksum and was refused. Is a proxy rewriting downloads (GOPROXY)?"
        )
    elif re.search(r"dial tcp|no such host|i/o timeout|proxyconnect|TLS handshake", text):
        remedy = (
            "The module proxy cannot be reached. Set GOPROXY or HTTPS_PROXY as your network needs it and run again."
        )
    elif code < 0:
        remedy = (
            f"It was ended by signal {-code}; if nobody did that, the machine may be out of memory (3 GB are enough)."
        )
    else:
        remedy = "Run again to see whether it lasts; what was built so far is kept in Go's own cache."
    shown = " ".join(command[:2])
    return f"`{shown}` failed while building the Pulumi engine:\n{text}\n{remedy}"
