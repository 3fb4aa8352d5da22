"""Sweep jobs out of HyperDrive: what is tried, how it is drawn, and when a trial ends early."""

from __future__ import annotations

from typing import Any, Final

from amlstack.migrate.constructs import type_of
from amlstack.migrate.data import JobPorts, shown, slug, text
from amlstack.migrate.jobs import Commands, Parameter, file_of
from amlstack.migrate.values import Made, Name

_TRIAL: Final = ("code", "command", "environment", "environment_variables", "distribution", "resources")
_LIMITS: Final = {"max_total_runs": "max_total_trials", "max_concurrent_runs": "max_concurrent_trials"}


class Sweeps(Commands):
    """The sweeps of one program beside its commands."""

    def sweep_file(self, made: Made) -> dict[str, Any]:
        """A sweep job."""
        return file_of("sweep", made, self.sweep(made, JobPorts(self.told), lambda each: each.open(each.kind)))

    def sweep(self, made: Made, data: JobPorts, parameter: Parameter, given: Any = None) -> dict[str, Any]:
        """The keys of a sweep.

        Args:
            made: The configuration.
            data: Its inputs and outputs.
            parameter: Gives the word of a command for a parameter of a pipeline.
            given: Arguments of the script that a step adds.
        """
        trial = made.part("run_config", "estimator", kind="ScriptRunConfig")
        run = self.command(trial.copy(arguments=given) if given is not None else trial, data, parameter)
        sampling, goal = made.part("hyperparameter_sampling"), made.get("primary_metric_goal")
        space = sampling.get("parameter_space")
        drawn: dict[str, Any] = {}
        for option, values in space.items() if isinstance(space, dict) else ():
            name = slug(text(option).lstrip("-"), "parameter")
            drawn[name] = _typed(values, values.kind) if isinstance(values, Made) else made.open("values")
            flag = option if text(option).startswith("-") else f"--{option}"
            run["command"] += f" {flag} ${{{{search_space.{name}}}}}"
        word = text(goal.dotted if isinstance(goal, Name) else goal).rpartition(".")[2].lower()
        limits = {new: shown(made.get(old)) for old, new in _LIMITS.items() if made.get(old) is not None}
        if (minutes := made.get("max_duration_minutes")) is not None:
            limits["timeout"] = minutes * 60 if isinstance(minutes, int) else text(minutes)
        limits |= {"trial_timeout": run["limits"]["timeout"]} if run.get("limits") else {}
        for lost in ("resume_from", "resume_child_runs"):
            if made.get(lost) is not None:
                self.told(made, "resumed", name=lost)
        return {
            **{key: value for key, value in run.items() if key not in (*_TRIAL, "limits")},
            "trial": {key: run[key] for key in _TRIAL if run.get(key)},
            "search_space": drawn or made.open("parameter_space"),
            "objective": {
                "primary_metric": text(made.get("primary_metric_name") or made.open("primary_metric_name")),
                "goal": word if word in ("minimize", "maximize") else made.open("primary_metric_goal"),
            },
            "sampling_algorithm": type_of(sampling.kind) or made.open("hyperparameter_sampling"),
            "limits": limits,
            "early_termination": _policy(made.get("policy")),
        }


def _typed(made: Made, kind: str) -> dict[str, Any]:
    return {"type": kind, **{name: shown(value) for name, value in made.given().items()}}


def _policy(policy: Any) -> Any:
    if policy is None or (isinstance(policy, Made) and policy.kind == "NoTerminationPolicy"):
        return None
    kind = type_of(policy.kind) if isinstance(policy, Made) else ""
    return _typed(policy, kind) if kind else {"type": text(policy)}
