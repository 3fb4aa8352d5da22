"""A team's repository: the files that `amlstack init` writes and `amlstack upgrade` takes to a newer version."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple

from amlstack import __version__
from amlstack.base import paths
from amlstack.base.files import write_whole
from amlstack.base.text import did_you_mean
from amlstack.catalog import clock, regions, sizes
from amlstack.cli import stack_files
from amlstack.cli.console import confirmed, difference, say
from amlstack.cli.git import Repository
from amlstack.cli.gitops import files, touched
from amlstack.cli.stack import plan

NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}[a-z0-9]")
"""Names that a Python project, a Pulumi project and a workspace of Azure ML can have alike."""
_CODE: Final = ("review/review/train.py", "workloads/train/train.py")
"""The code of the first job: what a review stack trains too."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The answers that the files depend on.

    Attributes:
        name: Name of the project.
        workspace: Name of the workspace, new or existing.
        location: Its region.
        size: VM size of the cluster.
        nodes: The most nodes of the cluster, which the first job uses.
        requirement: amlstack as pyproject.toml names it.
    """

    name: str
    workspace: str
    location: str
    size: str
    nodes: int
    requirement: str


def faults(choices: Choices) -> Iterator[str]:
    """A sentence for each answer that cannot be; the rules of a deployment are `amlstack check --stack`'s."""
    for option, given in (("--name", choices.name), ("--workspace", choices.workspace)):
        if not NAME.fullmatch(given):
            yield f"`{option}` must be 2 to 32 small letters, digits and `-`, and begin with a letter, got `{given}`"
    if (found := regions.finding(choices.location, "--location")) is not None:
        yield str(found)
    size = sizes.get(choices.size)
    if size is None:
        yield f"`{choices.size}` is no known size. {did_you_mean(choices.size, sizes.near(choices.size))}".strip()
    elif (other := sizes.nearest_compliant(size, clock.today())) is not None and other.name != size.name:
        yield f"{size.name} is retired, or does not have the InfiniBand that several nodes need: take {other.name}"
    if choices.nodes < 1:
        yield f"`--nodes` must be 1 or more, got {choices.nodes}"


def requirement() -> str:
    """This installation as a requirement: the wheel, folder or commit that it is from, else its version."""
    found = metadata.distribution("amlstack").read_text("direct_url.json")
    if not found:
        return f"amlstack=={__version__}"
    origin = json.loads(found)
    if (version := origin.get("vcs_info")) is not None:
        return f"amlstack @ {version['vcs']}+{origin['url']}@{version['commit_id']}"
    return f"amlstack @ {origin['url']}"


def contents(choices: Choices) -> Iterator[tuple[Path, str]]:
    """Path in the repository and content of each file."""
    root = paths.shipped("deploy")
    values = {f"@{name}@": str(getattr(choices, name)) for name in Choices.__dataclass_fields__}
    for file in paths.files_below(root / "team"):
        text = file.read_text("utf-8")
        for token, value in values.items():
            text = text.replace(token, value)
        yield Path(str(file.relative_to(root / "team")).removesuffix(".in")), text
    yield Path(_CODE[1]), (root / _CODE[0]).read_text("utf-8")


def write(folder: Path, choices: Choices, *, dry_run: bool = False) -> Iterator[str]:
    """Writes the files that are not there, and makes a git repository where there is none; yields what it did."""
    for path, content in contents(choices):
        target = folder / path
        if target.exists():
            yield f"kept {path}" + ("" if target.read_text("utf-8", "replace") == content else ", which is yours")
            continue
        if not dry_run:
            write_whole(target, content, folders=True)
        yield f"{'would write' if dry_run else 'wrote'} {path}"
    if not dry_run and shutil.which("git") and not any((each / ".git").exists() for each in (folder, *folder.parents)):
        subprocess.run(["git", "init", "--quiet", "--initial-branch", "main", str(folder)], check=False)
        yield "made a git repository"


_PIN: Final = re.compile(r"""(["'])amlstack(?![\w.-])[^"']*\1""")
_TEAM: Final = {"Makefile": "Makefile", "Pulumi.yaml": "Pulumi.yaml", "__main__.py": "__main__.py.in"}
"""Files of `init` that a team leaves as they are, and their templates."""
_ASK: Final = (
    "from amlstack import __version__ as v; from amlstack.base.paths import shipped; print(v, shipped('deploy'))"
)


class UpgradeError(Exception):
    """There is nothing to upgrade; the message is for the user."""


class NewerFile(NamedTuple):
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


def by_that_version(to: str, options: Sequence[str]) -> int:
    """Has a version do it, which has the newer files; its exit status.

    Raises:
        UpgradeError: It is neither a version nor a wheel, or there is no uv.
    """
    if not (wheel := paths.is_file(to)) and not re.fullmatch(r"\d[\w.+!-]*", to):
        raise UpgradeError(f"There is no wheel `{to}`, and a version begins with a digit")
    uv = shutil.which("uv") or str(Path(sys.prefix) / "bin" / "uv")
    if not paths.is_file(uv):
        raise UpgradeError("`amlstack upgrade VERSION` needs uv: https://docs.astral.sh/uv")
    source = str(Path(to).absolute()) if wheel else f"amlstack=={to}"
    return _run(Path.cwd(), uv, "tool", "run", "--from", source, "amlstack", "upgrade", *options, shown=True).returncode


def run(*, sandbox: bool, dry_run: bool, yes: bool) -> int:
    """Shows what this version changes in the repository around, and after a yes writes it.

    Args:
        sandbox: Whether stacks are previewed on the sandbox.
        dry_run: Whether nothing is written.
        yes: Whether nothing is asked.

    Returns:
        0 written, shown or nothing to do; 1 where files have conflicts or the answer was no.

    Raises:
        UpgradeError: The repository pins no amlstack, or has no other version of it in its environment.
    """
    root, manifest = paths.PROJECT, paths.PROJECT / "pyproject.toml"
    text = manifest.read_text("utf-8") if manifest.is_file() else ""
    if not (root / ".venv/bin/python").is_file() or not (pinned := _PIN.search(text)):
        raise UpgradeError("`upgrade` works in a repository whose pyproject.toml pins amlstack, after `make venv`")
    if Path(sys.prefix).resolve() == (root / ".venv").resolve():
        raise UpgradeError("Name what to upgrade to: `amlstack upgrade VERSION`, or the path of a wheel")
    done = _run(root, str(root / ".venv/bin/python"), "-P", "-c", _ASK)
    if done.returncode:
        raise UpgradeError(f"The amlstack of .venv cannot be asked for its files: {done.stderr.strip()[-300:]}")
    old, _, deploy = done.stdout.strip().partition(" ")
    say(f"amlstack {old} → {__version__}")
    pin = NewerFile(Path(manifest.name), text, text.replace(pinned[0], json.dumps(requirement())))
    found = [each for each in (pin, *_merged(root, Path(deploy))) if each.before != each.after]
    for each in found:
        say(difference(each.before, each.after, f"{each.path} (now)", f"{each.path} (then)"), nl=False)
    for line in _of_stacks(root, found, sandbox=sandbox):
        say(line)
    if conflicts := [str(each.path) for each in found if each.conflicts]:
        say(f"to be settled by hand, where <<<<<<< stands: {', '.join(conflicts)}")
    if dry_run or not found or not (yes or confirmed("Write this?")):
        say("nothing was written")
        return 0 if dry_run or not found else 1
    for each in found:
        write_whole(root / each.path, each.after, folders=True)
        say(f"wrote {each.path}")
    return 1 if _run(root, "make", "venv", shown=True).returncode or conflicts else 0


def _run(folder: Path, *words: str, shown: bool = False, **more: str) -> subprocess.CompletedProcess[str]:
    # What an activated environment says would send `make venv` of a copy into it.
    env = {**more, **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}}
    return subprocess.run(words, cwd=folder, env=env, capture_output=not shown, text=True, check=False)


def _templates(deploy: Path, root: Path) -> dict[Path, str]:
    """The files that a version writes into this repository: those of `init`, and of the services that it uses."""
    name = stack_files.project_name()
    found = {
        Path(file): (deploy / "team" / template).read_text("utf-8").replace("@name@", name)
        for file, template in _TEAM.items()
    }
    for target in files.TARGETS:
        for stack in touched.deployed(root):
            of_stack = [each for each in files.files_of(target, stack, deploy) if not each.is_start]
            if any((root / each.path).is_file() for each in of_stack):
                found |= {each.path: each.content for each in of_stack}
    return found


def _merged(root: Path, deploy: Path) -> Iterator[NewerFile]:
    """The files that the newer version has otherwise, with what the team has changed in them kept."""
    bases = _templates(deploy, root)
    for path, theirs in sorted(_templates(paths.shipped("deploy"), root).items()):
        base, file = bases.get(path, ""), root / path
        ours = file.read_text("utf-8") if file.is_file() else ""
        if theirs in (base, ours) or (base and not ours):  # a file that the team has removed stays so
            continue
        with tempfile.TemporaryDirectory() as folder:
            for side, text in (("yours", ours), ("before", base), (__version__, theirs)):
                write_whole(Path(folder) / side, text)
            done = _run(Path(folder), "git", "merge-file", "--stdout", "yours", "before", __version__)
        yield NewerFile(path, ours, done.stdout, done.returncode)


def _of_stacks(root: Path, found: Sequence[NewerFile], *, sandbox: bool) -> Iterator[str]:
    """Findings and plan of each stack that the newer version has otherwise, tried in a copy of the repository."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch).resolve() / root.resolve().name
        for name in Repository(root).names("ls-files", "--cached", "--others", "--exclude-standard"):
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)
        for each in found:
            if not each.conflicts:
                write_whole(copy / each.path, each.after, folders=True)
        made = _run(copy, "make", "venv")
        for stack in touched.deployed(root) if made.returncode == 0 else ():
            yield f"stack `{stack}`:"
            yield from (f"  {line}" for line in _changes(root, copy, stack, sandbox=sandbox))
    if made.returncode:
        yield f"the newer version cannot be tried, as `make venv` fails: {made.stderr.strip()[-300:]}"


def _changes(root: Path, copy: Path, stack: str, *, sandbox: bool) -> Iterator[str]:
    plans: list[Path] = []
    found: list[set[str]] = []
    for folder in (root, copy):
        words = ("up", "--stack", stack, "--preview", *(("--sandbox",) if sandbox else ()))
        answer = _answer(folder, root, *words)
        found.append({f"{one['file']}: {one['message']} [{one['code']}]" for one in answer.get("findings", ())})
        if answer.get("error") or "plan" not in answer:
            yield f"no preview: {str(answer.get('error') or 'it printed none').splitlines()[0]}"
            continue
        plans.append(copy.with_name(f"plan-{len(plans)}"))
        write_whole(plans[-1], json.dumps(answer))
    yield from (f"found no more: {line}" for line in sorted(found[0] - found[1]))
    yield from (f"found newly: {line}" for line in sorted(found[1] - found[0]))
    if len(plans) == 2:
        then, now = map(plan.read_agreed, plans)
        yield from list(then.differences(now.steps)) or ["the same plan"]


def _answer(folder: Path, root: Path, *words: str) -> dict[str, Any]:
    """The JSON that a verb of a folder's environment prints, else its error. State is the repository's own."""
    command = (str(folder / ".venv/bin/amlstack"), *words, "--json")
    done = _run(folder, *command, AMLSTACK_HOME=str(root / ".amlstack"))
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"error": done.stderr.strip()}
