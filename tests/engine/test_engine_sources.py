"""Where the engine comes from: the order of the sources, and what each of them refuses. Run as users run it."""

from __future__ import annotations

import fcntl
import hashlib
import http.server
import io
import json
import os
import platform
import signal
import subprocess
import sys
import tarfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amlstack.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PINNED = "3.259.0"
MACHINE = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
TARBALL = f"pulumi-v{PINNED}-linux-{MACHINE}.tar.gz"
CHECKSUMS = f"pulumi-{PINNED}-checksums.txt"
NAMES = ("pulumi", "pulumi-language-python", "pulumi-language-python-exec")
NOWHERE = "http://127.0.0.1:9"  # the discard port: refused at once


def cli(version: str) -> str:
    return f"#!/bin/sh\necho v{version}\n"


HOST = "#!/bin/sh\necho '  -tracing string' >&2\n"

# Speaks as much `go` as the build needs; each build leaves a line in $FAKE_GO_LOG and then waits for $FAKE_GO_GATE.
FAKE_GO = f"""#!{sys.executable}
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
        open(gate).read()
        if os.getppid() != parent:  # orphaned by a kill: the real one ends at its next line, too
            sys.exit(1)
    if complaint := os.environ.get("FAKE_GO_FAILS"):
        sys.exit(complaint)
    out.write_text({cli(PINNED)!r} if out.name == "pulumi" else {HOST!r})
"""


@dataclass
class Machine:
    """A user's machine made of a PATH folder, an empty cache and an empty home."""

    root: Path
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
            "AMLSTACK_PULUMI_RELEASES": NOWHERE,
            "FAKE_GO_LOG": str(self.root / "go.log"),
            **self.environ,
        }
        command = [sys.executable, str(PROJECT / "tools" / "engine"), *words]
        return subprocess.Popen(
            command,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A test run in the background of a shell inherits SIGINT as ignored; a person at a terminal has it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - one system call
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        with self.start(*words) as process:
            out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def found(self) -> tuple[str, str]:
        """Source and version of a run that must succeed."""
        done = self.run("--json")
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        (folder,) = said["path"]
        assert all(os.access(Path(folder) / name, os.X_OK) for name in NAMES if said["source"] != "path")
        return said["source"], said["version"]

    @property
    def cached(self) -> list[str]:
        """What the cache holds, the lock files aside."""
        return sorted(path.name for path in self.root.glob("cache/engine/*") if not path.name.endswith(".lock"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture
def serve() -> Iterator[Callable[[dict[str, Answer | bytes]], str]]:
    """Starts a release server on loopback; a file's answer is its bytes, or status, headers and body."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def start(files: dict[str, Answer | bytes]) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = files.get(self.path.lstrip("/"), (404, {}, b""))
                status, headers, body = answer if isinstance(answer, tuple) else (200, {}, answer)
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


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


# --- source: path


@pytest.mark.parametrize("version", ["3.230.0", "3.259.0", "3.400.1", "4.0.0"])
def test_a_recent_engine_on_path_is_used_as_it_is(machine: Machine, version: str) -> None:
    for name in NAMES:
        machine.install(name, cli(version) if name == "pulumi" else HOST)
    done = machine.run("--json")
    assert json.loads(done.stdout) == {"version": version, "source": "path", "path": [str(machine.root / "bin")]}
    assert done.stderr == ""
    assert machine.cached == []


def test_an_engine_behind_a_link_finds_its_host_beside_itself(machine: Machine) -> None:
    for name in NAMES:
        machine.install(name, cli(PINNED) if name == "pulumi" else HOST, folder="opt")
    (machine.root / "bin" / "pulumi").symlink_to(machine.root / "opt" / "pulumi")
    assert machine.found() == ("path", PINNED)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "no pulumi on PATH"),
        ({"pulumi": cli("3.229.9"), "pulumi-language-python": HOST}, "is 3.229.9; at least 3.230.0 is needed"),
        ({"pulumi": "#!/bin/sh\nexit 1\n"}, "does not tell its version"),
        ({"pulumi": cli(PINNED)}, "no Python language host"),
        ({"pulumi": cli(PINNED), "pulumi-language-python": "#!/bin/sh\nexit 127\n"}, "no Python language host"),
        ({"pulumi": cli(PINNED), "pulumi-language-python": HOST}, "no pulumi-language-python-exec beside it"),
    ],
    ids=["none", "too-old", "broken", "no-host", "broken-host", "no-launcher"],
)
def test_an_engine_on_path_that_would_not_work_is_passed_over_with_the_reason(
    machine: Machine, files: dict[str, str], reason: str
) -> None:
    for name, text in files.items():
        machine.install(name, text)
    done = machine.run("--source", "path")
    assert done.returncode == 1
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


# --- source: release


def test_a_release_with_the_published_checksum_is_taken_and_kept(
    machine: Machine, serve: Callable[[dict[str, Answer | bytes]], str]
) -> None:
    files: dict[str, Answer | bytes] = {TARBALL: tarball(extra=("../../evil/pulumi-python-outside",))}
    files[CHECKSUMS] = checksums(files[TARBALL])  # type: ignore[arg-type]
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = serve(files)
    assert machine.found() == ("release", PINNED)
    (folder,) = machine.cached
    content = {path.name for path in (machine.root / "cache" / "engine" / folder).iterdir()}
    # Only what Python needs is unpacked, and by its last name: nothing climbs out of the folder.
    assert content == {*NAMES, "engine.json", "pulumi-python-outside"}

    files.clear()
    assert machine.found() == ("release", PINNED)


def test_a_release_whose_checksum_differs_is_refused_and_nothing_of_it_stays(
    machine: Machine, serve: Callable[[dict[str, Answer | bytes]], str]
) -> None:
    machine.install_go()
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = serve({TARBALL: tarball(), CHECKSUMS: checksums(b"another")})
    done = machine.run()
    assert done.returncode == 1
    assert hashlib.sha256(b"another").hexdigest() in done.stderr
    assert "AMLSTACK_ENGINE=build" in done.stderr
    assert (machine.cached, machine.builds, done.stdout) == ([], [], "")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({TARBALL: (200, {"Content-Length": "999999"}, b"half")}, "broke off"),
        ({TARBALL: (503, {}, b"")}, "HTTP 503"),
        ({CHECKSUMS: (404, {}, b"")}, "HTTP 404"),
        ({CHECKSUMS: b"<html>please log in</html>"}, "names no SHA-256"),
    ],
    ids=["interrupted", "unavailable", "unpublished", "captive-portal"],
)
def test_a_release_that_cannot_be_had_leaves_nothing_and_the_build_is_next(
    machine: Machine,
    serve: Callable[[dict[str, Answer | bytes]], str],
    change: dict[str, Answer | bytes],
    reason: str,
) -> None:
    machine.install_go()
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = serve({TARBALL: tarball(), CHECKSUMS: checksums(tarball()), **change})
    done = machine.run("--json")
    assert reason in done.stderr
    assert json.loads(done.stdout)["source"] == "build"
    assert [name for name in machine.cached if "release" in name] == []


def test_a_release_that_does_not_run_here_is_refused(
    machine: Machine, serve: Callable[[dict[str, Answer | bytes]], str]
) -> None:
    wrong = tarball(version="3.1.0")
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = serve({TARBALL: wrong, CHECKSUMS: checksums(wrong)})
    done = machine.run()
    assert done.returncode == 1
    assert f"did not answer v{PINNED}" in done.stderr
    assert machine.cached == []


@pytest.mark.parametrize("place", ["http://example.org/releases", "ftp://example.org"])
def test_releases_are_fetched_over_tls_only(machine: Machine, place: str) -> None:
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = place
    done = machine.run()
    assert done.returncode == 1
    assert "https only" in done.stderr


def test_a_redirect_does_not_lead_out_of_tls(
    machine: Machine, serve: Callable[[dict[str, Answer | bytes]], str]
) -> None:
    away: Answer = (302, {"Location": "http://example.org/checksums.txt"}, b"")
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = serve({CHECKSUMS: away})
    done = machine.run()
    assert done.returncode == 1
    assert "https only" in done.stderr


# --- source: build


def test_without_release_the_engine_is_built_once_and_then_needs_no_go(machine: Machine) -> None:
    machine.install_go()
    assert machine.found() == ("build", PINNED)
    assert sorted(machine.builds) == ["pulumi", "pulumi-language-python"]
    (machine.root / "bin" / "go").unlink()
    done = machine.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert len(machine.builds) == 2


def test_a_cached_engine_on_path_keeps_its_true_source(machine: Machine) -> None:
    machine.install_go()
    machine.environ["PATH"] = f"{machine.run().stdout.strip()}:{machine.root / 'bin'}"
    assert machine.found() == ("build", PINNED)


def test_an_engine_that_lost_a_file_is_made_again(machine: Machine) -> None:
    machine.install_go()
    folder = Path(machine.run().stdout.strip())
    (folder / "pulumi").unlink()
    assert machine.found() == ("build", PINNED)
    assert len(machine.builds) == 4


def test_two_at_once_build_once(machine: Machine) -> None:
    machine.install_go()
    gate = machine.root / "gate"
    os.mkfifo(gate)
    machine.environ["FAKE_GO_GATE"] = str(gate)
    with machine.start() as first:
        gate.open("w").close()  # opens when the first build has started; its reader goes on to the second part
        machine.environ.pop("FAKE_GO_GATE")
        with machine.start() as second:
            assert second.stderr is not None
            while "waiting for it" not in (line := second.stderr.readline()):
                assert line, "the second one did not wait"
            gate.open("w").close()
            answers = {one.communicate(timeout=60)[0] for one in (first, second)}
            assert (first.returncode, second.returncode) == (0, 0)
    assert len(answers) == 1
    assert sorted(machine.builds) == ["pulumi", "pulumi-language-python"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_build_that_is_ended_leaves_no_half_engine_and_the_next_one_cleans_up(
    machine: Machine, number: signal.Signals
) -> None:
    machine.install_go()
    gate = machine.root / "gate"
    os.mkfifo(gate)
    machine.environ["FAKE_GO_GATE"] = str(gate)
    with machine.start() as process, gate.open("w"):
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode != 0
    assert [name for name in machine.cached if not name.endswith(".tmp")] == []
    if number is not signal.SIGKILL:
        assert machine.cached == []

    machine.environ.pop("FAKE_GO_GATE")
    assert machine.found() == ("build", PINNED)
    assert len(machine.cached) == 1


def test_the_lock_of_a_dead_process_does_not_block(machine: Machine) -> None:
    machine.install_go()
    machine.run()
    (lock,) = machine.root.glob("cache/engine/.*build*.lock")
    with lock.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # free: the file alone is no lock


def test_no_go_names_what_is_missing_and_every_way_out(machine: Machine) -> None:
    done = machine.run()
    assert done.returncode == 1
    for words in ("not found on PATH", "apt-get install golang", "Pulumi CLI, 3.230 or newer", "get.pulumi.com"):
        assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_go_without_toolchain_download_is_refused_by_its_version(machine: Machine) -> None:
    machine.install_go()
    machine.environ["FAKE_GO_VERSION"] = "go1.19.8"
    done = machine.run()
    assert done.returncode == 1
    assert "is go1.19.8; building the engine needs Go 1.21 or newer" in done.stderr
    assert machine.builds == []


@pytest.mark.parametrize(
    ("complaint", "remedy"),
    [
        ("x: verifying module: checksum mismatch", "was refused"),
        ("write /tmp/x: no space left on device", "disk is full"),
        ("dial tcp: lookup proxy.golang.org: no such host", "Set GOPROXY"),
        ("internal compiler error", "Run again"),
    ],
)
def test_a_failed_build_shows_its_last_words_and_a_remedy(machine: Machine, complaint: str, remedy: str) -> None:
    machine.install_go()
    machine.environ["FAKE_GO_FAILS"] = complaint
    done = machine.run()
    assert done.returncode == 1
    assert complaint in done.stderr
    assert remedy in done.stderr
    assert machine.cached == []


# --- the command line


def test_plain_output_is_ready_for_path(machine: Machine) -> None:
    machine.install_go()
    (folder,) = machine.run().stdout.splitlines()
    assert (Path(folder) / "pulumi").is_file()


def test_a_cache_that_cannot_be_written_is_named(machine: Machine) -> None:
    machine.install_go()
    (machine.root / "file").write_text("")
    machine.environ["AMLSTACK_CACHE"] = str(machine.root / "file")
    done = machine.run()
    assert done.returncode == 1
    assert "Set AMLSTACK_CACHE" in done.stderr


def test_an_unknown_source_is_wrong_use(machine: Machine) -> None:
    machine.environ["AMLSTACK_ENGINE"] = "sources"
    done = machine.run()
    assert done.returncode == 2
    assert "sources is none of path, release, build" in done.stderr


def test_the_module_locks_name_the_pinned_version() -> None:
    modules = PROJECT / "tools" / "engine" / "modules"
    assert f"github.com/pulumi/pulumi/pkg/v3 v{PINNED}" in (modules / "cli" / "go.mod").read_text()
    for lock in ("cli", "python_host"):
        assert "github.com/pulumi/pulumi/sdk/v3" in (modules / lock / "go.sum").read_text()
