"""Runs a pipeline of Azure Pipelines: jobs in the order they depend on each other, steps one by one in a checkout.

It knows the steps, conditions and macros of our files, and refuses every other.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from tests.support.gitops.github import JobRun, StepRun, warm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.support.gitops.forge import Forge

TOKEN = re.compile(r"\s*(?:'(?P<text>[^']*)'|(?P<name>[A-Za-z][\w.]*)|(?P<sign>[(),\[\]]))")
COMMAND = re.compile(r"##vso\[(?P<name>[\w.]+)(?: (?P<given>[^\]]*))?\](?P<value>.*)")


@dataclass
class Agent:
    """A hosted agent, and what the project gives it.

    Attributes:
        forge: The repository.
        folder: Where jobs work.
        env: What every step has: where Azure is, the warm cache.
        connections: Name of a service connection → variables that `addSpnToEnvironment` gives.
        groups: Name of a variable group → its variables.
        service: Address of the stand-in for Azure DevOps, with a slash at its end.
    """

    forge: Forge
    folder: Path
    env: Mapping[str, str]
    connections: Mapping[str, Mapping[str, str]]
    groups: Mapping[str, Mapping[str, str]]
    service: str
    made: list[Path] = field(default_factory=list)
    last: _Build | None = None

    def run(
        self,
        name: str,
        commit: str,
        predefined: Mapping[str, str],
        *,
        approved: bool = True,
        without: tuple[str, ...] = (),
    ) -> dict[str, JobRun]:
        """Runs the file of that name as the commit has it, without some jobs, which count as skipped."""
        content = self.forge.git("show", f"{commit}:.azure-pipelines/{name}", at=self.forge.origin)
        build = self.forge.begin(name, commit)
        self.last = _Build(self, yaml.safe_load(content), commit, build, dict(predefined), approved)
        self.last.jobs |= {key: JobRun("skipped") for key in without}
        return self.last.play()

    @property
    def of_project(self) -> dict[str, str]:
        """Predefined variables of every run."""
        where = {"System.CollectionUri": self.service, "System.TeamProject": "research"}
        return {**where, "Build.Repository.ID": "r1"}

    def asked(self, branch: str, head: str, at: Path, *, without: tuple[str, ...] = ()) -> dict[str, JobRun]:
        """Runs the checks of a pull request, whose commit is pushed from a clone to its branch."""
        self.forge.git("push", "--quiet", "--force", str(self.forge.origin), f"{head}:refs/heads/{branch}", at=at)
        merge = self.forge.merged(head)
        asked = {"Build.Reason": "PullRequest", "System.PullRequest.PullRequestId": "7"}
        asked |= {"Build.SourceBranch": "refs/pull/7/merge", "Build.SourceVersion": merge}
        asked |= {"System.PullRequest.TargetBranch": "refs/heads/main", "System.PullRequest.SourceCommitId": head}
        return self.run("prod/amlstack-pull-request.yml", merge, {**self.of_project, **asked}, without=without)

    def go_on(self) -> dict[str, JobRun]:
        """Runs what the last run was waiting for."""
        assert self.last
        self.last.approved = True
        self.last.jobs = {key: one for key, one in self.last.jobs.items() if one.result != "waiting"}
        return self.last.play()


@dataclass
class _Build:
    agent: Agent
    pipeline: Mapping[str, Any]
    commit: str
    id: str
    predefined: dict[str, str]
    approved: bool
    jobs: dict[str, JobRun] = field(default_factory=dict)

    def play(self) -> dict[str, JobRun]:
        for job in self.pipeline["jobs"]:
            key = job.get("job") or job["deployment"]
            if key in self.jobs:
                continue
            before = job.get("dependsOn") or []
            needed = [self.jobs[each] for each in ([before] if isinstance(before, str) else before)]
            bad = any(each.result != "success" for each in needed)
            if not self._met(job.get("condition", "succeeded()"), failed=bad, variables=self._variables()):
                self.jobs[key] = JobRun("skipped")
            elif "environment" in job and not self.approved:
                self.jobs[key] = JobRun("waiting")
            else:
                steps = job["strategy"]["runOnce"]["deploy"]["steps"] if "deployment" in job else job["steps"]
                self.jobs[key] = self._job(key, steps)
        return self.jobs

    def _variables(self) -> dict[str, str]:
        found = {"Build.Repository.Provider": "TfsGit", "System.PullRequest.IsFork": "False", **self.predefined}
        found |= {"System.OidcRequestUri": f"{self.agent.service}oidctoken"}
        found |= {"System.AccessToken": f"build-{self.id}", "Agent.OS": "Linux", "Build.BuildId": self.id}
        for entry in self.pipeline["variables"]:
            found |= self.agent.groups[entry["group"]] if "group" in entry else {entry["name"]: str(entry["value"])}
        return found

    def _job(self, key: str, steps: list[Mapping[str, Any]]) -> JobRun:
        workspace = self.agent.folder / f"build-{self.id}" / key
        folder = workspace / "s"
        (workspace / "temp").mkdir(parents=True)
        folder.mkdir()
        self.variables = {**self._variables(), "Pipeline.Workspace": str(workspace)}
        self.variables |= {"Agent.TempDirectory": str(workspace / "temp")}
        self.paths: list[str] = []
        done = JobRun("success", folder=folder, run=self.id)
        for step in steps:
            label = str(step.get("displayName") or next(iter(step.values())))
            failed = done.result == "failure"
            if not self._met(step.get("condition", "succeeded()"), failed=failed, variables=self.variables):
                done.steps.append(StepRun(label, None))
                continue
            (kind,) = [each for each in STEPS if each in step]
            code, text = STEPS[kind](self, step, folder)
            self._commands(text, step, done)
            done.steps.append(StepRun(label, code, text))
            done.result = "failure" if code else done.result
        return done

    def _commands(self, text: str, step: Mapping[str, Any], done: JobRun) -> None:
        """Carry out the commands to the agent in the output of a step."""
        for found in COMMAND.finditer(text):
            if found["name"] == "task.prependpath":
                self.paths.insert(0, found["value"])
            elif found["name"] == "task.uploadsummary":
                with open(found["value"], encoding="utf-8") as file:  # noqa: PTH123 - as the agent has it
                    done.summary += file.read()
            elif found["name"] == "task.setvariable":
                given = dict(each.partition("=")[::2] for each in found["given"].split(";"))
                if given.get("isOutput") == "true":
                    done.outputs[f"{step['name']}.{given['variable']}"] = found["value"]
                else:
                    self.variables[given["variable"]] = found["value"]
            else:
                raise AssertionError(f"the stand-in has no {found[0]}")

    def checkout(self, step: Mapping[str, Any], folder: Path) -> tuple[int, str]:
        assert step["checkout"] == "self"
        forge = self.agent.forge
        forge.git("init", "--quiet", "--initial-branch=main", str(folder))
        forge.git("remote", "add", "origin", f"file://{forge.origin}", at=folder)
        if not step["persistCredentials"]:
            forge.git("remote", "set-url", "--push", "origin", "file:///needs/persistCredentials", at=folder)
        branches = ("+refs/heads/*:refs/remotes/origin/*",) if step.get("fetchDepth") == 0 else ()
        forge.git("fetch", "--quiet", "origin", self.commit, *branches, at=folder)
        forge.git("checkout", "--quiet", "--detach", self.commit, at=folder)
        warm(folder)
        self.agent.made.append(folder)
        return 0, ""

    def bash(self, step: Mapping[str, Any], folder: Path) -> tuple[int, str]:
        return self._script(step["bash"], folder, self._filled(step.get("env") or {}))

    def task(self, step: Mapping[str, Any], folder: Path) -> tuple[int, str]:
        given = self._filled(step["inputs"])
        if step["task"] == "Cache@2":
            return 0, ""
        assert step["task"] == "AzureCLI@2", step["task"]
        assert (given["scriptType"], given["scriptLocation"]) == ("bash", "inlineScript")
        own = self.agent.connections[given["azureSubscription"]] if given["addSpnToEnvironment"] == "True" else {}
        tools = folder.parent / "az"
        tools.mkdir(exist_ok=True)
        az = tools / "az"
        subscription = self.agent.connections[given["azureSubscription"]]["subscription"]
        asked = ["account", "show", "--query", "id", "--output", "tsv"]
        az.write_text(
            f"#!{sys.executable}\nimport sys\n"
            f"sys.exit(print({subscription!r}) if sys.argv[1:] == {asked!r} else 'az: no such command')\n"
        )
        az.chmod(0o755)
        self.paths.insert(0, str(tools))
        try:
            return self._script(given["inlineScript"], folder, {**own, **self._filled(step.get("env") or {})})
        finally:
            self.paths.remove(str(tools))

    def publish(self, step: Mapping[str, Any], folder: Path) -> tuple[int, str]:
        if (folder / step["publish"]).exists():
            self.agent.forge.keep(self.id, step["artifact"], folder / step["publish"])
        return 0, ""

    def download(self, step: Mapping[str, Any], folder: Path) -> tuple[int, str]:
        assert step["download"] == "current"
        kept = self.agent.forge.artifacts(self.id)
        for each in sorted(kept.iterdir()) if kept.is_dir() else ():
            if step.get("artifact", each.name) == each.name:
                shutil.copytree(each, folder.parent / each.name, dirs_exist_ok=True)
        return 0, ""

    def _script(self, script: str, folder: Path, own: Mapping[str, str]) -> tuple[int, str]:
        file = folder.parent / "temp" / "step.sh"
        file.write_text(self._macros(script))
        shown = {
            re.sub(r"\W", "_", name).upper(): value
            for name, value in self.variables.items()
            if name != "System.AccessToken"
        }
        path = os.pathsep.join([*self.paths, self.agent.env["PATH"]])
        env = {
            **self.agent.env,
            **self._filled(shown),
            **own,
            "PATH": path,
            "PYTHONPATH": str(folder),
            "TF_BUILD": "True",
        }
        env |= {"HOME": str(folder.parent / "temp"), "AMLSTACK_CACHE": self.agent.env["AMLSTACK_CACHE"]}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", str(file)],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=900,
            check=False,
        )
        return done.returncode, done.stdout

    def _filled(self, values: Mapping[str, Any]) -> dict[str, str]:
        return {name: self._macros(str(value)) for name, value in values.items()}

    def _macros(self, text: str) -> str:
        """``$(Name)`` of a variable; what is none stays, as on an agent: in a script it is the shell's."""
        return re.sub(r"\$\(([\w.]+)\)", lambda found: self.variables.get(found[1], found[0]), text)

    def _met(self, condition: str, *, failed: bool, variables: Mapping[str, str]) -> bool:
        tokens = [(str(found.lastgroup), found[found.lastgroup or 0]) for found in TOKEN.finditer(condition)]
        outputs = {f"dependencies.{key}.outputs": run.outputs for key, run in self.jobs.items()}
        named: dict[str, Mapping[str, str]] = {"variables": variables, **outputs}

        def value() -> Any:
            kind, token = tokens.pop(0)
            if kind == "text":
                return token
            sign = tokens.pop(0)[1]
            if sign == "[":
                name = tokens.pop(0)[1]
                assert tokens.pop(0)[1] == "]"
                return named[token].get(name, "")
            assert sign == "("
            arguments = []
            while tokens[0][1] != ")":
                arguments.append(value())
                if tokens[0][1] == ",":
                    tokens.pop(0)
            tokens.pop(0)
            return FUNCTIONS[token](failed, arguments)

        answer = value()
        assert not tokens, condition
        return bool(answer)


FUNCTIONS: Mapping[str, Callable[[bool, list[Any]], bool]] = {
    "succeeded": lambda failed, _: not failed,
    "succeededOrFailed": lambda _, __: True,
    "always": lambda _, __: True,
    "canceled": lambda _, __: False,
    "not": lambda _, given: not given[0],
    "and": lambda _, given: all(given),
    "eq": lambda _, given: str(given[0]).lower() == str(given[1]).lower(),
    "ne": lambda _, given: str(given[0]).lower() != str(given[1]).lower(),
}
STEPS: Mapping[str, Callable[[_Build, Mapping[str, Any], Path], tuple[int, str]]] = {
    "checkout": _Build.checkout,
    "bash": _Build.bash,
    "task": _Build.task,
    "publish": _Build.publish,
    "download": _Build.download,
}
