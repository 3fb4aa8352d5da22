"""The gate of a pull request: the files that decide about its checks, and the exceptions that it asks for.

The gate of a pull request is that of the branch it goes into. `take` brings a commit's declarations into a checkout of
that branch, and leaves the guards as they are there.
"""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.paths import PACKAGE
from amlstack.cli.git import GitError, Repository

if TYPE_CHECKING:
    from policies.config import Config

FOLDERS: Final = (
    ".azure-pipelines", ".github", "amlcpu", "amlnode", "amlparallel", "amlstack", "deploy", "infra", "jobs",
    "kubernetes", "policies", "rules", "tools",
)  # fmt: skip
"""Folders of the gate: the services' files, the tools, the program, the rules."""
FILES: Final = (
    ".gitattributes", ".gitmodules", ".python-version", "CODEOWNERS", "GNUmakefile", "Makefile", "Pulumi.yaml",
    "catalogue.yaml", "docs/CODEOWNERS", "makefile", "pyproject.toml", "setup.cfg", "setup.py", "uv.lock", "uv.toml",
)  # fmt: skip
"""Files of the gate. What make, uv and Python would read before ours is among them."""
SEEN: Final = ("Pulumi.review.yaml", "review/")
"""Part of the checks that the pull request itself brings: they are listed, and owned, and run as it has them."""


@dataclass(frozen=True, slots=True)
class GateSide:
    """The settings of one checkout.

    Attributes:
        policies: Files of configurations and exceptions, of every stack.
        own: That of the stack that is meant; empty for none.
        scripts: Python job files, which run while they are read.
        rules: The stack's configuration.
        wrong: Why there is none.
    """

    policies: frozenset[str] = frozenset()
    own: str = ""
    scripts: frozenset[str] = frozenset()
    rules: Config | None = None
    wrong: str = ""


@dataclass(slots=True)
class GateChanges:
    """The changes that a commit makes to its gate.

    Attributes:
        kept: Guards that it changes; this checkout's count.
        seen: What it changes and is run or read as it has it.
        declares: All else that it changes.
        config: This checkout's configuration of the rules; empty for none.
        in_force: Exceptions and lowered rules of this checkout.
        asked_for: What the commit's own configuration would have otherwise.
    """

    kept: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    declares: list[str] = field(default_factory=list)
    config: str = ""
    in_force: list[str] = field(default_factory=list)
    asked_for: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for `gitops comment`."""
        return {name: each for name, each in asdict(self).items() if name != "declares"}

    def words(self) -> tuple[str, ...]:
        """The options by which this checkout's rules judge."""
        return ("--policy-pack", str(PACKAGE / "policies"), *(("--policy-config", self.config) if self.config else ()))


def gate_changes(commit: str, stack: str) -> GateChanges:
    """Compare a commit with the checkout of the working folder.

    Args:
        commit: What a pull request would make of the branch.
        stack: Name of the stack that is deployed.

    Raises:
        GitError: There is no such commit, or git failed.
    """
    repository = Repository.around(Path.cwd())
    repository.require(commit)
    here = side(repository.root, stack)
    with repository.files_of(commit) as folder:
        there = side(folder, stack)
        changed = sorted(repository.names("diff", "--name-only", "--no-renames", "HEAD", commit, "--"))
        astray = {path for path in changed if _leads_out(folder / path, folder)}
    found = GateChanges(config=here.own, in_force=list(_lowered(here.rules)), asked_for=list(_asked(here, there)))
    policies, scripts = here.policies | there.policies, here.scripts | there.scripts
    for path in changed:
        if path in astray or is_guard(path, policies) or _shadows(path, folder=repository, commit=commit):
            found.kept.append(path)
            continue
        found.declares.append(path)
        if path in scripts or path in SEEN or path.startswith(tuple(each for each in SEEN if each.endswith("/"))):
            found.seen.append(path)
    return found


def take(commit: str, guards: GateChanges) -> None:
    """Bring what a commit declares into the checkout of the working folder.

    Raises:
        GitError: Git failed.
    """
    root = Repository.around(Path.cwd()).root
    has = set(Repository(root).files_at(commit, ""))
    for words, paths in (
        (("rm", "--quiet", "--force", "--ignore-unmatch"), [path for path in guards.declares if path not in has]),
        (("checkout", "--quiet", commit), [path for path in guards.declares if path in has]),
    ):
        if paths:
            _git(root, "--literal-pathspecs", *words, "--pathspec-from-file=-", "--pathspec-file-nul", given=paths)


def is_guard(path: str, policies: frozenset[str]) -> bool:
    """True for a file that decides about the checks: of tools and rules, or a configuration that settings name."""
    whole = PurePosixPath(path)
    named = {*FILES, *policies}
    if whole.parts[0] in FOLDERS or (len(whole.parts) == 1 and whole.suffix == ".py"):
        return True
    # Neither may a folder stand where a guard is, nor a link where its folder is.
    return not named.isdisjoint(map(str, (whole, *whole.parents))) or any(one.startswith(f"{path}/") for one in named)


def _leads_out(path: Path, root: Path) -> bool:
    """True for a link out of its repository: the checks would read its target with their own rights."""
    return path.is_symlink() and not path.resolve().is_relative_to(root.resolve())


def _shadows(path: str, *, folder: Repository, commit: str) -> bool:
    """True for a file in a folder that Python would import in place of a module of the tools."""
    top, _, rest = path.partition("/")
    if not rest or not top.isidentifier() or folder.content(commit, f"{top}/__init__.py") is None:
        return False
    return not (folder.root / top / "__init__.py").is_file() and importlib.util.find_spec(top) is not None


def side(root: Path, stack: str) -> GateSide:
    """The files that the settings of a checkout name.

    Args:
        root: Its top folder.
        stack: Name of the stack whose rules are meant.
    """
    from infra.settings import read_file
    from policies.gate import read

    policies, scripts, own = set(), set(), ""
    for file in sorted(root.glob("Pulumi.*.yaml")):
        settings = read_file(file).partial
        if settings is None:
            continue
        scripts |= {path for each in settings.jobs if (path := normpath(each.file)).endswith(".py")}
        if settings.policies:
            policies.add(normpath(settings.policies))
            own = normpath(settings.policies) if file.name == f"Pulumi.{stack.rpartition('/')[2]}.yaml" else own
    rules, wrong = read(root / own if own else None, written=own)
    return GateSide(frozenset(policies), own, frozenset(scripts), rules, "; ".join(map(str, wrong)))


def _lowered(rules: Config | None) -> Iterator[str]:
    """The rules that a configuration lowers, and its exceptions."""
    from policies.config import ALL, Config

    if rules is None:
        return
    default = Config()
    for rule in ALL:
        level, usual = rules.level(rule.code), default.level(rule.code)
        if _STRENGTH[level] < _STRENGTH[usual]:
            yield f"{rule.code}: {level} (by default {usual})"
    for one in rules.exceptions:
        yield f"{one.rule} on {one.resource} until {one.expires}, {one.owner}: {one.reason}"


def _asked(here: GateSide, there: GateSide) -> Iterator[str]:
    """In what another side's configuration differs."""
    from policies.config import ALL

    if there.wrong:
        yield there.wrong
    if here.own != there.own:
        yield f"amlstack:policies: {there.own or 'none'} (here {here.own or 'none'})"
    if here.rules is None or there.rules is None or there.wrong:
        return
    for rule in ALL:
        level, usual = there.rules.level(rule.code), here.rules.level(rule.code)
        if level != usual:
            yield f"{rule.code}: {level} (here {usual})"
        if (values := there.rules.settings(rule.code)) != here.rules.settings(rule.code) and rule.code not in _META:
            changed = {name: value for name, value in values.items() if value != here.rules.settings(rule.code)[name]}
            yield f"{rule.code}: {', '.join(f'{name} {value}' for name, value in changed.items())}"
    for one in there.rules.exceptions:
        if one not in here.rules.exceptions:
            yield f"{one.rule} on {one.resource} until {one.expires}, {one.owner}: {one.reason}"
    for one in here.rules.exceptions:
        if one not in there.rules.exceptions:
            yield f"no more: {one.rule} on {one.resource} until {one.expires}"


_STRENGTH: Final = {"disabled": 0, "advisory": 1, "remediate": 2, "mandatory": 3}
_META: Final = frozenset({"exception-expired"})
"""Its settings are the exceptions, which are listed one by one."""


def _git(root: Path, *words: str, given: list[str] | None = None) -> None:
    text = "\0".join(given or ())
    done = subprocess.run(["git", "-C", str(root), *words], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GitError(f"`git {words[0]}` failed: {done.stderr.strip()}")
