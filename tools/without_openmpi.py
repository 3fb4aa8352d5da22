"""Rehearses examples as on a fresh machine: no Open MPI on PATH, an empty HOME, nothing of the caller's environment.

``python tools/without_openmpi.py [EXAMPLE…]`` prints a line for each and ends with 1 when one of them did not complete.
Run it as an ordinary user to show that root is not needed. Environments are built anew unless AMLSTACK_CACHE is set.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (
    *("ddp_per_process", "ddp_torchrun", "mpi_per_process", "mpi_per_node", "deepspeed_mpi", "deepspeed_pytorch"),
    *("lightning", "huggingface_per_node", "accelerate", "tensorflow_multiworker", "horovod", "checkpoint_resume"),
)
"""Examples of the systems that Azure ML's guide to distributed training has."""
_HIDDEN = re.compile(r"(mpi|orte|ompi|prte|prun|opal_|shmem|osh)")
_KEPT = ("LANG", "AMLSTACK_CACHE")
_KEPT_PREFIXES = ("UV_", "PIP_", "SSL_", "REQUESTS_", "HTTP_", "HTTPS_", "http_", "https_", "no_proxy", "NO_PROXY")


def path_without_mpi(folder: Path) -> str:
    """A PATH of one folder with links to all programs of this one's, but those of an MPI."""
    folder.mkdir()
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for program in sorted(Path(place).glob("*")) if place else ():
            link = folder / program.name
            if not _HIDDEN.match(program.name) and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def main(names: list[str]) -> int:
    """Rehearses each; 0 when all completed."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="fresh-machine-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
        environ = kept | {"PATH": path_without_mpi(folder / "bin"), "HOME": str(folder / "home")}
        environ["AMLSTACK_HOME"] = str(folder / "amlstack")
        Path(environ["HOME"]).mkdir()
        if shutil.which("mpirun", path=environ["PATH"]) is not None:
            print("mpirun is still on PATH")
            return 2
        command = [sys.executable, "-m", "amlstack.cli"] if (ROOT / "amlstack/cli/__main__.py").is_file() else []
        command = command or [str(Path(sys.executable).with_name("amlstack"))]
        print(f"user {os.getuid()}, HOME empty, no mpirun on PATH")
        try:
            for name in names or GUIDE:
                job = next(path for path in sorted((ROOT / "examples" / name).glob("job.*")) if path.suffix != ".md")
                began = time.monotonic()
                done = subprocess.run(
                    [*command, "rehearse", str(job), "--quiet"],
                    env=environ,
                    cwd=ROOT,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                failed += done.returncode != 0
                how = "completed" if done.returncode == 0 else "FAILED"
                print(f"{name:28} {how:10} {time.monotonic() - began:6.0f} s", flush=True)
                if done.returncode != 0:
                    print("\n".join((done.stdout + done.stderr).splitlines()[-30:]))
        finally:
            subprocess.run([*command, "sandbox", "down"], env=environ, cwd=ROOT, capture_output=True, check=False)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
