<<<<<<< HEAD
"""What a pull request may not judge itself by: the files that decide about its checks, and the exceptions it asks for.

The gate of a pull request is that of the branch it goes into. `take` brings a commit's declarations into a checkout of
that branch, and leaves the guards as they are there.
=======
"""What judges a pull request, in which its branch has no say: rules, tools and their settings as the base has them.

The workflow restores the files of `TOOLS` from the base before anything of them runs. What a branch changed of the
guards, and each exception that it grants or has, is listed for those who approve it.
>>>>>>> 54165e15 (A pull request cannot open its own gate: the base's rules and tools judge it, and its preview waits for an approval)
"""

from __future__ import annotations

<<<<<<< HEAD
import contextlib
import importlib.util
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from amlstack.cli.jobfiles.changes.git import GitError, Repository
=======
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from policies import config as configuration
>>>>>>> 54165e15 (A pull request cannot open its own gate: the base's rules and tools judge it, and its preview waits for an approval)

if TYPE_CHECKING:
    from collections.abc import Iterator

<<<<<<< HEAD
    from policies.config import Config

FOLDERS: Final = (
    ".azure-pipelines", ".github", "amlcpu", "amlnode", "amlparallel", "amlstack", "deploy", "infra", "jobs",
    "kubernetes", "policies", "tools",
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
    """What the settings of one checkout say.

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
    """What a commit changes of its gate.

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
        named = ("kept", "seen", "config", "in_force", "asked_for")
        return {name: getattr(self, name) for name in named}

    def words(self) -> tuple[str, ...]:
        """The options by which this checkout's rules judge."""
        return ("--policy-pack", "policies", *(("--policy-config", self.config) if self.config else ()))


def of(commit: str, stack: str) -> GateChanges:
    """Compare a commit with the checkout of the working folder.

    Args:
        commit: What a pull request would make of the branch.
        stack: Name of the stack that is deployed.

    Raises:
        GitError: There is no such commit, or git failed.
    """
    repository = Repository.around(Path.cwd())
    if repository.commit(commit) is None:
        message = f"this clone has no commit `{commit}`"
        raise GitError(message)
    here = side(repository.root, stack)
    with _checkout(repository, commit) as folder:
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
    """Whether a file decides about the checks: of tools and rules, or named by settings as their configuration."""
    whole = PurePosixPath(path)
    named = {*FILES, *policies}
    if whole.parts[0] in FOLDERS or (len(whole.parts) == 1 and whole.suffix == ".py"):
        return True
    # Neither may a folder stand where a guard is, nor a link where its folder is.
    return not named.isdisjoint(map(str, (whole, *whole.parents))) or any(one.startswith(f"{path}/") for one in named)


def _leads_out(path: Path, root: Path) -> bool:
    """Whether a path is a link out of its repository: what is there would be read with the rights of the checks."""
    return path.is_symlink() and not path.resolve().is_relative_to(root.resolve())


def _shadows(path: str, *, folder: Repository, commit: str) -> bool:
    """Whether a file lies in a folder that Python would import in place of a module that the tools use."""
    top, _, rest = path.partition("/")
    if not rest or not top.isidentifier() or folder.content(commit, f"{top}/__init__.py") is None:
        return False
    return not (folder.root / top / "__init__.py").is_file() and importlib.util.find_spec(top) is not None


def side(root: Path, stack: str) -> GateSide:
    """What the settings of a checkout name.

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
        scripts |= {path for each in settings.jobs if (path := _inside(each.file)).endswith(".py")}
        if settings.policies:
            policies.add(_inside(settings.policies))
            own = _inside(settings.policies) if file.name == f"Pulumi.{stack.rpartition('/')[2]}.yaml" else own
    rules, wrong = read(root / own if own else None, written=own)
    return GateSide(frozenset(policies), own, frozenset(scripts), rules, "; ".join(map(str, wrong)))


def _inside(path: str) -> str:
    import posixpath

    return posixpath.normpath(path)


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


@contextlib.contextmanager
def _checkout(repository: Repository, commit: str) -> Iterator[Path]:
    """The files of a commit in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="amlstack-guards-") as folder:
        place = Path(folder) / "tree"
        _git(repository.root, "worktree", "add", "--quiet", "--detach", str(place), commit)
        try:
            yield place
        finally:
            _git(repository.root, "worktree", "remove", "--force", str(place))


def _git(root: Path, *words: str, given: list[str] | None = None) -> None:
    text = "\0".join(given or ())
    done = subprocess.run(["git", "-C", str(root), *words], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"`git {words[0]}` failed: {done.stderr.strip()}"
        raise GitError(message)
=======
TOOLS: Final = (
    "Makefile", "GNUmakefile", "makefile", "Pulumi.yaml", "pyproject.toml", "uv.lock", "uv.toml",
    ".python-version", ".venv", "catalogue.yaml",
    "sitecustomize", "sitecustomize.py", "usercustomize", "usercustomize.py",
    "amlcpu", "amlnode", "amlparallel", "amlstack", "deploy", "infra", "jobs", "policies", "tools",
)  # fmt: skip
"""Files and folders of the repository that judge; the workflows take them from the base.

Some are in no good repository: what make, uv and Python would take before or beside the others.
"""
OTHERS: Final = (".github", ".azure-pipelines", "kubernetes", "Pulumi.*.yaml", "Pulumi.review.yaml", "review")
"""What decides beside them what is judged, and how: the branch's own counts, and somebody must approve it."""


class GuardsError(Exception):
    """The base cannot be read; the message is for the user."""


def seen(root: Path, stack: str, base: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a branch changed of its guards, and the configuration of the rules that the base has.

    Args:
        root: The checkout, at a commit of the branch.
        stack: Name of the stack.
        base: The commit of the base.

    Returns:
        Plain data for ``guards.json``, and the configuration.

    Raises:
        GuardsError: There is no such commit, or its configuration is none.
    """
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}").strip()
    if not commit:
        message = f"this clone has no commit {base!r}; it must be fetched with its history (fetch-depth: 0)"
        raise GuardsError(message)
    name = f"Pulumi.{stack.rpartition('/')[2]}.yaml"
    theirs, ours = (_named(root, rev, name) for rev in (commit, "HEAD"))
    files = [each for each in dict.fromkeys((theirs, ours)) if each]
    paths = [f":(glob){each}" if "*" in each else f":(literal){each}" for each in (*TOOLS, *OTHERS, *files)]
    changed = _git(root, "diff", "--name-only", "--no-renames", "-z", commit, "HEAD", "--", *paths).split("\0")
    rules = _configured(root, commit, theirs)
    if isinstance(rules, str):
        message = f"the base's configuration of the rules cannot be read: {rules}"
        raise GuardsError(message)
    before, now = set(_waivers(rules)), _configured(root, "HEAD", ours)
    listed = [f"{ours}: {now}"] if isinstance(now, str) else list(_waivers(now))
    waivers = [{"text": each, "new": each not in before} for each in listed]
    return {"base": commit, "changed": sorted(each for each in changed if each), "waivers": waivers}, rules


def code_owners(root: Path, owner: str) -> str:
    """The file ``CODEOWNERS``: every guard, and each Python file that a stack lists as a job.

    Args:
        root: The repository.
        owner: Who must approve, ``@ORG/TEAM``.
    """
    listed: dict[str, None] = {}
    for file in sorted(root.glob("Pulumi.*.yaml")):
        config = _config(file.read_text("utf-8", "replace"))
        for job in config.get("jobs") or ():
            name = job.get("file") if isinstance(job, dict) else job
            if isinstance(name, str) and name.endswith(".py"):
                listed[name] = None
        if isinstance(rules := config.get("policies"), str):
            listed[rules] = None
    guards = dict.fromkeys((*TOOLS, *OTHERS, ".github/CODEOWNERS", *listed))
    lines = [f"{'/' + each.replace(' ', chr(92) + ' '):<28} {owner}" for each in guards]
    return "\n".join((
        "# Who must approve what judges a pull request, and what runs at its preview. Without it a branch",
        "# may open its own gate. Add the rules' configuration and each Python job file that a stack names later on.",
        *lines, "",
    ))  # fmt: skip


def _waivers(given: dict[str, Any]) -> Iterator[str]:
    """Each rule that a configuration sets otherwise than the pack, and each exception."""
    own = configuration.load(configuration.BUILT_IN)
    try:
        config, usual = configuration.read(configuration.over(own, given)), configuration.read(own)
    except (ValueError, TypeError, RecursionError) as error:
        yield f"the configuration is none: {error}"
        return
    for code in sorted(configuration.CODES):
        if (level := config.level(code)) != (was := usual.level(code)):
            yield f"{code}: {was} → {level}"
        for name, value in config.settings(code).items():
            if name != "exceptions" and value != usual.settings(code).get(name):
                yield f"{code}: {name} = {json.dumps(value)}"
    for one in config.exceptions:
        yield f"{one.rule} on {one.resource}: {one.reason} ({one.owner}, until {one.expires.isoformat()})"


def _configured(root: Path, commit: str, name: str | None) -> dict[str, Any] | str:
    """The configuration of the rules at a commit; why there is none, as a text."""
    if name is None:
        return {}
    try:
        found = json.loads(_git(root, "show", f"{commit}:{Path(name).as_posix()}"))
    except ValueError as error:
        return f"no JSON at {commit[:12]}: {error}"
    return found if isinstance(found, dict) else "no JSON object"


def _named(root: Path, commit: str, file: str) -> str | None:
    """The configuration of the rules that a stack's settings name."""
    name = _config(_git(root, "show", f"{commit}:{file}")).get("policies")
    return name if isinstance(name, str) and name else None


def _config(text: str) -> dict[str, Any]:
    """Our settings of a stack file, by their last words; empty where it is none."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    config = content.get("config") if isinstance(content, dict) else None
    own = config if isinstance(config, dict) else {}
    return {str(key).rpartition(":")[2]: value for key, value in own.items() if str(key).startswith("amlstack:")}


def _git(root: Path, *words: str) -> str:
    """What git answers; nothing where it has no answer."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
>>>>>>> 54165e15 (A pull request cannot open its own gate: the base's rules and tools judge it, and its preview waits for an approval)
