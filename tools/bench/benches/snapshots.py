"""A code folder of 20,000 files and 2 GB (half Python modules, half binary data), hashed for an upload and for a run.

Ours is the scan of the folder and the identity of a run in it, in a running process: the content hash of azure-ai-ml,
the same without what tools leave, a digest of each file, a look for secrets, and which job files nothing uses. The
anchor is one process of `sha256sum` over the same files, which lie in the memory of the machine for both. Best of two
turns each. Coreutils' own SHA-256 is slower than OpenSSL's, which Python has: where `sha256sum` is linked with OpenSSL,
its figure is about a third of the one here.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Spent = tuple[float, float]

FULL, QUICK = (20_000, 2_000_000_000), (2_000, 200_000_000)
"""Files and bytes; files of the same size on average."""
_MODULE = 20_000
_PROJECT = Path(__file__).resolve().parents[3]


def run(*, quick: bool = False) -> Iterator[Row]:
    """Time a scan that knows nothing and one that finds nothing changed."""
    sys.path.insert(0, str(_PROJECT))
    from amlstack import snapshot  # noqa: PLC0415 - what is measured is imported where it is measured
    from amlstack.snapshot import remembered  # noqa: PLC0415

    files, size = QUICK if quick else FULL
    former = os.environ.get("AMLSTACK_CACHE")
    with tempfile.TemporaryDirectory() as made:
        code, cache = Path(made, "code"), Path(made, "cache")
        names = generate(code, files, size)
        time.sleep(remembered.GRAIN / 1e9)  # younger files are not remembered
        os.environ["AMLSTACK_CACHE"] = str(cache)

        def anchor() -> None:
            subprocess.run(["sha256sum", "--", *names], cwd=code, stdout=subprocess.DEVNULL, check=True)

        def ours() -> tuple[Any, Any]:
            scanned = snapshot.scan(code)
            return scanned, snapshot.own_code(scanned, declared_in=(code / "p0/m0.py",), commands=("python p1/m2.py",))

        def cold() -> None:
            shutil.rmtree(cache, ignore_errors=True)
            found.append(ours())

        def unchanged() -> None:
            found.append(ours())

        try:
            found: list[tuple[Any, Any]] = []
            spent: dict[Callable[[], None], list[Spent]] = {each: [] for each in (anchor, cold, unchanged)}
            for _ in range(2):
                for work, figures in spent.items():
                    figures.append(_spent(work))
            if any(each != found[0] for each in found):
                message = "the scans differ"
                raise RuntimeError(message)
        finally:
            os.environ.pop("AMLSTACK_CACHE")
            os.environ.update({} if former is None else {"AMLSTACK_CACHE": former})
    what = f"{files:,} files, {size / 1e9:g} GB"
    for title, work, most in (("cold", cold, 1.3), ("unchanged", unchanged, 0.1)):
        for number, unit in enumerate(("CPU", "clock")):
            figure, theirs = (min(each[number] for each in spent[one]) for one in (work, anchor))
            goal = f"at most {most:g} times"
            yield Row(f"{what}, {title}, {unit}", figure, "s", "sha256sum", theirs, goal, figure <= most * theirs)


def _spent(work: Callable[[], None]) -> Spent:
    """CPU seconds of this process and its children, and seconds by the clock."""
    before, start = os.times(), time.perf_counter()
    work()
    after = os.times()
    return sum(after[:4]) - sum(before[:4]), time.perf_counter() - start


def generate(root: Path, files: int, size: int) -> list[str]:
    """Makes the folder; names of its files."""
    rng = random.Random(7)  # noqa: S311 - the same files in every run
    lines = [f"name_{number} = values[{number}] + {number * 7}  # what it is for\n" for number in range(400)]
    text = "".join(rng.choice(lines) for _ in range(4_000)).encode()
    data = rng.randbytes(8 * _MODULE)
    rest = (size - files // 2 * _MODULE // 2) // (files // 2)
    names = []
    for number in range(files):
        folder = f"p{number % 200}"
        (root / folder).mkdir(parents=True, exist_ok=True)
        if number % 2:
            name, start = f"{folder}/d{number}.bin", rng.randrange(len(data))
            content = (number.to_bytes(8) + (data[start:] + data) * (rest // len(data) + 1))[:rest]
        else:
            name, start = f"{folder}/m{number}.py", rng.randrange(len(text) - _MODULE)
            content = f"import m{number}\n".encode() + text[start : start + rng.randrange(_MODULE)]
        (root / name).write_bytes(content)
        names.append(name)
    (root / ".gitignore").write_text("*.pyc\n__pycache__/\n/build/\n.venv/\n*.tmp\n")
    return [*names, ".gitignore"]
