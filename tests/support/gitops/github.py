"""Runs a GitHub workflow: jobs in the order of their needs, steps one by one, each job in a checkout of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from amlstack.base.paths import PROJECT
from tests.support.gitops.expressions import Surroundings, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.support.gitops.forge import Forge

LIMIT = 900.0
SHELL = {"bash": ("bash", "--noprofile", "--norc", "-eo", "pipefail")}
"""As the runner starts a step's script; without `shell` there would be no pipefail."""


@dataclass
class StepRun:
    """The end of a step: None as its code where it was skipped."""

    name: str
    code: int | None
    text: str = ""


@dataclass
class JobRun:
    """The end of a job: ``success``, ``failure``, ``skipped``, or ``waiting`` for an approval."""

    result: str
    steps: list[StepRun] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    folder: Path | None = None
    run: str = ""
    legs: dict[str, JobRun] = field(default_factory=dict)

    @classmethod
    def of(cls, legs: dict[str, JobRun]) -> JobRun:
        """A matrix by its legs: as bad as the worst of them; one leg alone is the job."""
        first = next(iter(legs.values()))
        if len(legs) > 1:
            order = ("failure", "waiting", "success", "skipped")
            worst = min((one.result for one in legs.values()), key=order.index)
            first = cls(worst, [each for one in legs.values() for each in one.steps], run=first.run)
        first.legs = legs
        return first

    def step(self, name: str) -> StepRun:
        """The step whose name begins so."""
        found = [one for one in self.steps if one.name.startswith(name)]
        assert found, f"no step {name!r} in {[one.name for one in self.steps]}"
        return found[0]

    def text(self) -> str:
        return "\n".join(f"--- {one.name}: {one.code}\n{one.text}" for one in self.steps)


@dataclass
class Runner:
    """A hosted runner of one repository.

    Attributes:
        forge: The repository.
        folder: Where checkouts are made.
        env: What every step has beside what its workflow says: where Azure is, the warm cache.
        variables: The repository's variables.
        venv: The environment that `make venv` would make in a checkout.
    """

    forge: Forge
    folder: Path
    env: Mapping[str, str]
    variables: Mapping[str, str]
    venv: Path = PROJECT / ".venv"
    made: list[Path] = field(default_factory=list)
    last: _Run | None = None

    def run(
        self,
        name: str,
        event_name: str,
        event: Mapping[str, Any],
        commit: str,
        *,
        approved: tuple[str, ...] = (),
        without: tuple[str, ...] = (),
    ) -> dict[str, JobRun]:
        """Runs the workflow file of that name as the commit has it, without some jobs, which count as skipped."""
        content = self.forge.git("show", f"{commit}:.github/workflows/{name}", at=self.forge.origin)
        workflow = yaml.safe_load(content)
        assert event_name in workflow[True], f"{name} does not run on {event_name}"  # `on` is a boolean in YAML 1.1
        head = (event.get("pull_request") or {}).get("head", {}).get("sha") or commit
        self.last = _Run(self, name, workflow, event_name, dict(event), commit, self.forge.begin(name, head), approved)
        self.last.jobs |= {key: JobRun("skipped") for key in without}
        return self.last.play()

    def go_on(self, approved: tuple[str, ...]) -> dict[str, JobRun]:
        """Runs what the last run was waiting for."""
        assert self.last
        self.last.approved = approved
        self.last.ended = {key: one.legs for key, one in self.last.jobs.items() if one.result == "waiting"}
        self.last.jobs = {key: one for key, one in self.last.jobs.items() if one.result != "waiting"}
        return self.last.play()


@dataclass
class _Run:
    runner: Runner
    name: str
    workflow: Mapping[str, Any]
    event_name: str
    event: dict[str, Any]
    commit: str
    id: str
    approved: tuple[str, ...]
    jobs: dict[str, JobRun] = field(default_factory=dict)
    ended: dict[str, dict[str, JobRun]] = field(default_factory=dict)
    matrix: Mapping[str, str] = field(default_factory=dict)

    def play(self) -> dict[str, JobRun]:
        waiting = {key: job for key, job in self.workflow["jobs"].items() if key not in self.jobs}
        while waiting:
            ready = [key for key, job in waiting.items() if set(_needs(job)) <= self.jobs.keys()]
            assert ready, f"jobs wait for each other: {list(waiting)}"
            for key in ready:
                self.jobs[key] = self._legs(key, waiting.pop(key))
        results = {one.result for one in self.jobs.values()}
        self.runner.forge.end(self.id, "success" if results <= {"success", "skipped"} else "failure")
        return self.jobs

    def _legs(self, key: str, job: Mapping[str, Any]) -> JobRun:
        """The job once, or once for each stack of its matrix; those that have ended stay as they are."""
        if "strategy" not in job:
            return self._job(key, job, {})
        assert job["strategy"]["fail-fast"] is False
        around = Surroundings(self._contexts(key, job, self.runner.folder, {}), self.runner.folder)
        ((name, given),) = job["strategy"]["matrix"].items()
        (expression,) = re.fullmatch(r"\$\{\{(.*)\}\}", given).groups()
        try:
            values = around.value(expression)
        except json.JSONDecodeError:  # the job before was skipped and has no output: a job without legs is skipped
            values = []
        ended = {one: leg for one, leg in self.ended.get(key, {}).items() if leg.result != "waiting"}
        legs = {value: ended.get(value) or self._job(key, job, {name: value}) for value in values}
        return JobRun.of(legs) if legs else JobRun("skipped")

    def _job(self, key: str, job: Mapping[str, Any], matrix: Mapping[str, str]) -> JobRun:
        self.matrix = matrix
        folder = (
            self.runner.folder
            / f"run-{self.id}"
            / "-".join([key, *matrix.values()])
            / self.runner.forge.name.rpartition("/")[2]
        )
        folder.mkdir(parents=True, exist_ok=True)
        needed = {each: self.jobs[each] for each in _needs(job)}
        around = Surroundings(self._contexts(key, job, folder, {}), folder)
        bad = any(each.result != "success" for each in needed.values())
        if not Surroundings(around.contexts, folder, failed=bad).met(job.get("if")):
            return JobRun("skipped")
        if (place := around.fill(job.get("environment", ""))) and place not in self.approved:
            return JobRun("waiting", run=self.id)
        rights = job.get("permissions", self.workflow["permissions"])
        done = JobRun("success", folder=folder, run=self.id)
        self._play_steps(key, job, done, rights)
        outputs = Surroundings(self._contexts(key, job, folder, self._steps), folder)
        done.outputs = {name: outputs.fill(value) for name, value in (job.get("outputs") or {}).items()}
        return done

    def _play_steps(self, key: str, job: Mapping[str, Any], done: JobRun, rights: Mapping[str, str]) -> None:
        assert done.folder is not None
        self.rights = rights
        self._steps: dict[str, Any] = {}
        files = done.folder.parent / "runner"
        (files / "temp").mkdir(parents=True)
        token = self.runner.forge.token(rights)
        env = {**self._env(done.folder, files, token, rights)}
        for step in job["steps"]:
            contexts = self._contexts(key, job, done.folder, self._steps, token)
            around = Surroundings(contexts, done.folder, failed=done.result == "failure")
            label = step.get("name") or step.get("uses", "").partition("@")[0]
            if not around.met(step.get("if")):
                done.steps.append(StepRun(label, None))
                continue
            own = {
                name: around.fill(str(value))
                for part in (self.workflow.get("env") or {}, job.get("env") or {}, step.get("env") or {})
                for name, value in part.items()
            }
            for name in ("env", "output", "path"):
                (files / name).write_text("")
            if "uses" in step:
                outputs, code, text = self._action(step, around, done.folder)
            else:
                code, text = self._script(step, {**env, **own}, done.folder)
                outputs = _assigned(files / "output")
            env |= _assigned(files / "env")
            env["PATH"] = os.pathsep.join([*(files / "path").read_text().split(), env["PATH"]])
            if "id" in step:
                self._steps[step["id"]] = {"outputs": outputs}
            done.steps.append(StepRun(label, code, text))
            if code and done.result == "success":
                done.result = "failure"
        done.summary = (files / "summary").read_text() if (files / "summary").exists() else ""

    def _script(self, step: Mapping[str, Any], env: Mapping[str, str], folder: Path) -> tuple[int, str]:
        shell = step.get("shell") or self.workflow["defaults"]["run"]["shell"]
        script = folder.parent / "runner" / "step.sh"
        around = Surroundings({}, folder)
        # No expression stands in a script: one would fail here.
        script.write_text(around.fill(step["run"]))
        done = subprocess.run(
            [*SHELL[shell], str(script)],
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT,
            check=False,
        )
        return done.returncode, done.stdout

    def _action(self, step: Mapping[str, Any], around: Surroundings, folder: Path) -> tuple[dict[str, str], int, str]:
        action, _, digest = step["uses"].partition("@")
        assert len(digest) == 40, f"{action} is not pinned by its digest"
        given = {name: around.fill(shown(value)) for name, value in (step.get("with") or {}).items()}
        outputs = ACTIONS[action](self, given, folder)
        return outputs, 0, ""

    def checkout(self, given: dict[str, str], folder: Path) -> dict[str, str]:
        """``actions/checkout``: a clean one, with what a warm cache makes of `make venv`."""
        pushes = given.pop("persist-credentials") == "true"
        assert pushes == (self.rights.get("contents") == "write"), "who may not push keeps no token, and the other way"
        commit = given.pop("ref", self.commit)
        depth = given.pop("fetch-depth", "1")
        assert not given, given
        forge = self.runner.forge
        depths = () if depth == "0" else ("--depth", "1")
        forge.git("init", "--quiet", "--initial-branch=main", str(folder))
        forge.git("fetch", "--quiet", *depths, f"file://{forge.origin}", commit, at=folder)
        forge.git("checkout", "--quiet", "--detach", "FETCH_HEAD", at=folder)
        if pushes:
            forge.git("remote", "add", "origin", str(forge.origin), at=folder)
        warm(folder, self.runner.venv)
        self.runner.made.append(folder)
        return {}

    def cache(self, given: Mapping[str, str], folder: Path) -> dict[str, str]:
        """``actions/cache``: the cache is warm and shared."""
        assert {"path", "key", "restore-keys"} == given.keys()
        return {"cache-hit": "true"}

    def upload(self, given: Mapping[str, str], folder: Path) -> dict[str, str]:
        """``actions/upload-artifact``: nothing to upload is a warning, no failure."""
        if not (folder / given["path"]).exists():
            return {"artifact-url": ""}
        return {"artifact-url": self.runner.forge.keep(self.id, given["name"], folder / given["path"])}

    def download(self, given: dict[str, str], folder: Path) -> dict[str, str]:
        """``actions/download-artifact``: one by its name, or all of a pattern into one folder."""
        kept = self.runner.forge.artifacts(self.id)
        assert "name" in given or given.pop("merge-multiple") == "true", (
            "else it is a question of versions what lies where"
        )
        chosen = [kept / given["name"]] if "name" in given else sorted(kept.glob(given["pattern"]))
        for each in chosen:
            shutil.copytree(each, folder / given["path"], dirs_exist_ok=True)
        return {}

    def _contexts(
        self, key: str, job: Mapping[str, Any], folder: Path, steps: Mapping[str, Any], token: str = ""
    ) -> dict[str, Any]:
        return {
            "matrix": dict(self.matrix),
            "github": {
                "event": self.event,
                "event_name": self.event_name,
                "repository": self.runner.forge.name,
                "sha": self.commit,
                "token": token,
            },
            "vars": dict(self.runner.variables),
            "env": {},
            "runner": {"os": "Linux", "arch": "X64"},
            "needs": {each: {"result": run.result, "outputs": run.outputs} for each, run in self.jobs.items()},
            "steps": dict(steps),
        }

    def _env(self, folder: Path, files: Path, token: str, rights: Mapping[str, str]) -> dict[str, str]:
        forge = self.runner.forge
        (files / "event.json").write_text(yaml.safe_dump(self.event))
        made = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(folder),
            "GITHUB_EVENT_NAME": self.event_name,
            "GITHUB_EVENT_PATH": str(files / "event.json"),
            "GITHUB_REPOSITORY": forge.name,
            "GITHUB_SHA": self.commit,
            "GITHUB_RUN_ID": self.id,
            "GITHUB_SERVER_URL": "https://github.com",
            "RUNNER_TEMP": str(files / "temp"),
            "HOME": str(files / "temp"),
            "GH_STAND_IN": str(forge.folder),
        }
        named = {"OUTPUT": "output", "ENV": "env", "PATH": "path", "STEP_SUMMARY": "summary"}
        made |= {f"GITHUB_{name}": str(files / file) for name, file in named.items()}
        if rights.get("id-token") == "write":
            made["ACTIONS_ID_TOKEN_REQUEST_URL"] = forge.tokens_at
            made["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] = f"request-{token}"
        made["PYTHONPATH"] = str(folder)  # the checkout's own modules, before those of the environment that it shares
        return {**self.runner.env, **made}


ACTIONS: Mapping[str, Callable[[_Run, dict[str, str], Path], dict[str, str]]] = {
    "actions/checkout": _Run.checkout,
    "actions/cache": _Run.cache,
    "actions/cache/restore": _Run.cache,
    "actions/upload-artifact": _Run.upload,
    "actions/download-artifact": _Run.download,
}


def warm(folder: Path, venv: Path = PROJECT / ".venv") -> None:
    """Gives a checkout the environment that `make venv` would make, which then has nothing to do, and its bytecode.

    Bytecode goes by the time and the size of its source: a file that says the same here has the time that it has there.
    """
    (folder / ".venv").symlink_to(venv)
    if venv.parent != PROJECT:
        return
    long_ago = (PROJECT / ".venv" / ".synced").stat().st_mtime - 1
    for name in ("pyproject.toml", "uv.lock", "tools/venv.sh"):
        os.utime(folder / name, (long_ago, long_ago))
    for source in folder.rglob("*.py"):
        ours = PROJECT / source.relative_to(folder)
        code = ours.parent / "__pycache__" / f"{ours.stem}.{sys.implementation.cache_tag}.pyc"
        if code.is_file() and ours.read_bytes() == source.read_bytes():
            shutil.copystat(ours, source)
            kept = source.parent / "__pycache__" / code.name
            kept.parent.mkdir(exist_ok=True)
            try:
                kept.hardlink_to(code)
            except OSError:  # on another file system
                shutil.copy2(code, kept)


def _needs(job: Mapping[str, Any]) -> tuple[str, ...]:
    needs = job.get("needs") or ()
    return (needs,) if isinstance(needs, str) else tuple(needs)


def _assigned(file: Path) -> dict[str, str]:
    """Lines ``NAME=value`` of a file that a step writes for the runner."""
    return dict(line.partition("=")[::2] for line in file.read_text().splitlines())
