"""``make mutants``: breaks each promise of the docs in a copy of the tree, and fails unless the test named for it does.

The table is tests/mutants/mutants.toml. First all named tests have to pass as the tree is. Then one change at a time is
made, and the test has to fail by what it asserts: not for want of a name, a module or a key, which proves nothing.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Sequence

TABLE: Final = Path("tests", "mutants", "mutants.toml")
SECONDS: Final = 300
"""A test that hangs under a mutant is ended, and has proved nothing."""
_ASSERTED: Final = re.compile(
    r"AssertionError|assert |Failed|(\w+\.)*Refused: (?!unexpected )|ValueError: (not enough|too many) values to unpack"
)
"""Words by which a test says that something is wrong; `Refused` is the provider's own answer to the engine."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken promise.

    Attributes:
        name: For the list.
        doc, heading, promise: The page, the heading, and the words that are broken.
        file, old, new: A text that stands once in a file, and what takes its place.
        test: Id of the test that fails then.
    """

    name: str
    doc: str
    heading: str
    promise: str
    file: str
    old: str
    new: str
    test: str

    def applied(self, text: str) -> str:
        """The file's text with the change.

        Raises:
            ValueError: The old text does not stand there exactly once.
        """
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: the old text stands {count} times in {self.file}")
        return text.replace(self.old, self.new)


def table() -> tuple[Mutant, ...]:
    """All mutants.

    Raises:
        ValueError: An entry lacks something or has too much.
    """
    with (PROJECT / TABLE).open("rb") as file:
        entries = tomllib.load(file)["mutant"]
    wanted = {field.name for field in fields(Mutant)}
    if wrong := [entry.get("name") for entry in entries if set(entry) != wanted]:
        raise ValueError(f"each mutant has {', '.join(sorted(wanted))}; these do not: {wrong}")
    return tuple(Mutant(**entry) for entry in entries)


class MutantTree:
    """A folder with code and its tests, where mutants are played."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writes = 0

    @classmethod
    def copied(cls, folder: Path) -> MutantTree:
        """A copy of this tree, with its environment."""
        listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        known = subprocess.run(listed, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=True).stdout
        for name in filter(None, known.split("\0")):
            if (PROJECT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(PROJECT / name, folder / name)
        (folder / ".venv").symlink_to(PROJECT / ".venv")
        return cls(folder)

    def asked(self, tests: Sequence[str]) -> tuple[int, list[str]]:
        """Runs tests; pytest's exit status, and for each that failed why, errors of setup and collection included."""
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        environ = {**os.environ, "PYTHONPATH": str(self.folder), "CI": "1"}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={SECONDS}"]
        ended = subprocess.run(
            [*command, f"--junitxml={report}", *tests],
            cwd=self.folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if not report.exists():
            return ended.returncode, [f"error: {ended.stdout[-2000:]}"]
        cases = ET.parse(report).getroot().iter("testcase")
        return ended.returncode, [
            f"{'' if one.tag == 'failure' else 'error: '}{one.get('message', '')}"
            for case in cases
            for one in case
            if one.tag in {"failure", "error"}
        ]

    def put(self, file: str, text: str) -> None:
        """Writes a file; Python would take what it compiled of a text of the same second and size."""
        self._writes += 1
        (self.folder / file).write_text(text, "utf-8")
        at = time.time() + 10 * self._writes
        os.utime(self.folder / file, (at, at))

    def killed(self, mutant: Mutant) -> str:
        """Empty when the test fails by an assertion under the mutant, else what happened in its place."""
        text = (self.folder / mutant.file).read_text("utf-8")
        self.put(mutant.file, mutant.applied(text))
        try:
            code, failed = self.asked([mutant.test])
        finally:
            self.put(mutant.file, text)
        if code == 0:
            return f"survived {mutant.test}"
        if code == 1 and failed and all(map(_ASSERTED.match, failed)):
            return ""
        return f"proved nothing by {mutant.test} (exit status {code}): {(failed or [''])[0][:300]}"


def main(names: Sequence[str]) -> int:
    """Plays the mutants of these names, all without names; a line for each."""
    mutants = [one for one in table() if not names or one.name in names]
    if not mutants:
        sys.stderr.write(f"there is no mutant {', '.join(names)}\n")
        return 2
    workers = min(os.cpu_count() or 1, 4)
    since = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="amlstack-mutants-") as folder, ThreadPoolExecutor(workers) as pool:
        trees: queue.Queue[MutantTree] = queue.Queue()
        for number in range(workers):
            trees.put(MutantTree.copied(Path(folder) / str(number)))
        first = trees.get()
        code, failed = first.asked(sorted({one.test for one in mutants}))
        trees.put(first)
        if code:
            sys.stdout.writelines(f"fails without a mutant: {words[:300]}\n" for words in failed or [str(code)])
            return 1

        def played(mutant: Mutant) -> str:
            tree = trees.get()
            try:
                return tree.killed(mutant)
            finally:
                trees.put(tree)

        bad = 0
        for mutant, wrong in zip(mutants, pool.map(played, mutants), strict=True):
            bad += bool(wrong)
            sys.stdout.write(f"{mutant.name}: {wrong or 'killed'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"\n{len(mutants) - bad} of {len(mutants)} killed in {time.monotonic() - since:.0f} s\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
