"""A newer version of amlstack in a team's repository: its pin, the files that it wrote, what changes of each stack."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack import __version__
from amlstack.base import paths
from amlstack.base.files import write_whole
from amlstack.cli import repository, stack_files
from amlstack.cli.console import confirmed, say
from amlstack.cli.git import Repository
from amlstack.cli.gitops import files, touched
from amlstack.cli.stack import plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PIN: Final = re.compile(r"""(["'])amlstack(?![\w.-])[^"']*\1""")
_TEAM: Final = ("Makefile", "Pulumi.yaml", "__main__.py")
"""Files of `init` that stay as they are."""
_ASK: Final = (
    "from amlstack import __version__ as v; from amlstack.base.paths import shipped; print(v, shipped('deploy'))"
)


@dataclass(frozen=True, slots=True)
class AskedUpgrade:
    """A person's request.

    Attributes:
        to: A version or a wheel; None for the version that runs.
        sandbox: Whether stacks are previewed on the sandbox.
        dry_run: Whether nothing is written.
        yes: Whether nothing is asked.
    """

    to: str | None
    sandbox: bool
    dry_run: bool
    yes: bool


@dataclass(frozen=True, slots=True)
class NewerFile:
    """A file as the newer version has it.

    Attributes:
        path: From the repository's root.
        before: Its text now; empty where it is not there.
        after: Its text then.
        conflicts: Places that the team and the newer version have changed otherwise; they are marked.
    """

    path: Path
    before: str
    after: str
    conflicts: int = 0

    def difference(self) -> str:
        """A unified difference."""
        now, then = (text.splitlines(keepends=True) for text in (self.before, self.after))
        return "".join(difflib.unified_diff(now, then, f"{self.path} (now)", f"{self.path} (then)"))


def run(asked: AskedUpgrade) -> int:
    """Shows what a newer version changes, and after a yes writes it.

    Returns:
        0 written, shown or nothing to do; 1 where files have conflicts or the answer was no; 2 for wrong use.
    """
    root = paths.PROJECT
    if asked.to is not None:
        return _by_that_version(asked)
    python, manifest = root / ".venv" / "bin" / "python", root / "pyproject.toml"
    if not python.is_file() or not manifest.is_file() or not (pinned := _PIN.search(manifest.read_text("utf-8"))):
        return _ended("`upgrade` works in a repository whose pyproject.toml pins amlstack, after `make venv`", 2)
    if Path(sys.prefix).resolve() == (root / ".venv").resolve():
        return _ended("Name what to upgrade to: `amlstack upgrade VERSION`, or the path of a wheel", 2)
    done = subprocess.run([str(python), "-P", "-c", _ASK], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        return _ended(f"The amlstack of .venv cannot be asked for its files: {done.stderr.strip()[-300:]}", 2)
    old, _, deploy = done.stdout.strip().partition(" ")
    say(f"amlstack {old} → {__version__}")
    text = manifest.read_text("utf-8")
    pin = NewerFile(Path(manifest.name), text, text.replace(pinned[0], json.dumps(repository.requirement())))
    edits = [each for each in (pin, *_merged(root, Path(deploy))) if each.before != each.after]
    for each in edits:
        say(each.difference(), nl=False)
    for line in _of_stacks(root, edits, asked):
        say(line)
    conflicts = [str(each.path) for each in edits if each.conflicts]
    if conflicts:
        say(f"to be settled by hand, where <<<<<<< stands: {', '.join(conflicts)}")
    if asked.dry_run or not edits:
        say("nothing was written" if edits else "nothing is to be written")
        return 0
    if not asked.yes and not confirmed("Write this?"):
        return _ended("nothing was written", 1)
    for each in edits:
        (root / each.path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(root / each.path, each.after)
        say(f"wrote {each.path}")
    made = subprocess.run(["make", "venv"], cwd=root, env=_clean(), check=False)
    return 1 if conflicts or made.returncode else 0


def _by_that_version(asked: AskedUpgrade) -> int:
    """Has the newer version do it, which has the newer files."""
    to = str(asked.to)
    wheel = paths.is_file(to)
    if not wheel and not re.fullmatch(r"\d[\w.+!-]*", to):
        return _ended(f"There is no wheel `{to}`, and a version begins with a digit", 2)
    source = str(Path(to).absolute()) if wheel else f"amlstack=={to}"
    uv = shutil.which("uv") or str(Path(sys.prefix) / "bin" / "uv")
    options = [f"--{name.replace('_', '-')}" for name in ("sandbox", "dry_run", "yes") if getattr(asked, name)]
    words = [uv, "tool", "run", "--from", source, "amlstack", "upgrade", *options]
    try:
        return subprocess.run(words, env=_clean(), check=False).returncode
    except OSError:
        return _ended("`amlstack upgrade VERSION` needs uv: https://docs.astral.sh/uv", 2)


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}


def _templates(deploy: Path, root: Path) -> dict[Path, str]:
    """The files that a version writes into this repository: those of `init`, and of the services that it uses."""
    name = stack_files.project_name()
    found = {Path(each): (deploy / "team" / each) for each in _TEAM}
    texts = {
        path: next(file for file in (source, source.with_name(f"{source.name}.in")) if file.is_file()).read_text(
            "utf-8"
        )
        for path, source in found.items()
    }
    texts = {path: text.replace("@name@", name) for path, text in texts.items()}
    for target in files.TARGETS:
        for stack in touched.deployed(root):
            of_stack = [each for each in files.files_of(target, stack, deploy) if not each.is_start]
            if any((root / each.path).is_file() for each in of_stack):
                texts |= {each.path: each.content for each in of_stack}
    return texts


def _merged(root: Path, deploy: Path) -> Iterator[NewerFile]:
    """The files that the newer version has otherwise, with what the team has changed in them kept."""
    bases, newer = _templates(deploy, root), _templates(paths.shipped("deploy"), root)
    for path, theirs in sorted(newer.items()):
        base, file = bases.get(path), root / path
        if not file.is_file():
            if base is None:
                yield NewerFile(path, "", theirs)
            continue
        ours = file.read_text("utf-8")
        if theirs in (base, ours):
            continue
        with tempfile.TemporaryDirectory() as folder:
            sides = [Path(folder) / name for name in ("ours", "base", "theirs")]
            for side, text in zip(sides, (ours, base or "", theirs), strict=True):
                write_whole(side, text)
            labels = ("-L", "yours", "-L", "amlstack's, before", "-L", f"amlstack {__version__}")
            words = ["git", "merge-file", "--stdout", *labels, *map(str, sides)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
        yield NewerFile(path, ours, done.stdout, done.returncode)


def _of_stacks(root: Path, edits: Sequence[NewerFile], asked: AskedUpgrade) -> Iterator[str]:
    """Findings and plan of each stack that the newer version has otherwise, tried in a copy of the repository."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch).resolve() / root.resolve().name
        for name in Repository(root).names("ls-files", "--cached", "--others", "--exclude-standard"):
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)
        for each in edits:
            if not each.conflicts:
                (copy / each.path).parent.mkdir(parents=True, exist_ok=True)
                write_whole(copy / each.path, each.after)
        made = subprocess.run(["make", "venv"], cwd=copy, env=_clean(), capture_output=True, text=True, check=False)
        if made.returncode:
            yield f"the newer version cannot be tried, as `make venv` fails: {made.stderr.strip()[-300:]}"
            return
        for stack in touched.deployed(root):
            yield f"stack `{stack}`:"
            before, after = (_findings(_answer(one, root, "check", "--stack", stack)) for one in (root, copy))
            yield from (f"  found no more: {line}" for line in sorted(before - after))
            yield from (f"  found newly: {line}" for line in sorted(after - before))
            words = ("up", "--stack", stack, "--preview", *(("--sandbox",) if asked.sandbox else ()))
            plans = []
            for folder, place in ((root, "before"), (copy, "after")):
                answer = _answer(folder, root, *words)
                plans.append(Path(scratch) / place)
                write_whole(plans[-1], json.dumps(answer))
                if answer.get("error") or "plan" not in answer:
                    yield f"  no preview: {str(answer.get('error') or 'it printed none').splitlines()[0]}"
                    break
            else:
                then, now = map(plan.read_agreed, plans)
                lines = list(then.differences(now.steps))
                yield from (f"  {line}" for line in lines or ["the same plan"])


def _answer(folder: Path, root: Path, *words: str) -> dict[str, Any]:
    """The JSON that a verb of a folder's environment prints, else its error. State is the repository's own."""
    env = {"AMLSTACK_HOME": str(root / ".amlstack"), **_clean()}
    command = [str(folder / ".venv" / "bin" / "amlstack"), *words, "--json"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {"error": done.stderr.strip()}
    return found if isinstance(found, dict) else {}


def _findings(answer: dict[str, Any]) -> set[str]:
    every = [*answer.get("findings", ()), *(one for file in answer.get("files", ()) for one in file["findings"])]
    return {f"{one['file']}: {one['message']} [{one['code']}]" for one in every}


def _ended(message: str, code: int) -> int:
    say(message, err=True)
    return code
