"""Sweep jobs out of HyperDrive: what is tried, how it is drawn, and when a trial ends early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amlstack.migrate.data import JobPorts, shown, slug, text
from amlstack.migrate.jobs import Commands, file_of
from amlstack.migrate.values import Made, Name

if TYPE_CHECKING:
    from amlstack.migrate.jobs import Parameter

_TRIAL: Final = ("code", "command", "environment", "environment_variables", "distribution", "resources")
_SAMPLINGS: Final = {"RandomParameterSampling": "random", "GridParameterSampling": "grid",
                     "BayesianParameterSampling": "bayesian"}  # fmt: skip
_POLICIES: Final = {"BanditPolicy": "bandit", "MedianStoppingPolicy": "median_stopping",
                    "TruncationSelectionPolicy": "truncation_selection"}  # fmt: skip
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
        trial = made.get("run_config", "estimator")
        trial = trial if isinstance(trial, Made) else Made("ScriptRunConfig", {}, made.file, made.line)
        run = self.command(trial.copy(arguments=given) if given is not None else trial, data, parameter)
        sampling, goal = made.get("hyperparameter_sampling"), made.get("primary_metric_goal")
        space = sampling.get("parameter_space") if isinstance(sampling, Made) else None
        drawn: dict[str, Any] = {}
        for option, values in space.items() if isinstance(space, dict) else ():
            name = slug(text(option).lstrip("-"), "parameter")
            drawn[name] = _drawn(values, made)
            flag = option if text(option).startswith("-") else f"--{option}"
            run["command"] += f" {flag} ${{{{search_space.{name}}}}}"
        word = text(goal.dotted if isinstance(goal, Name) else goal).rpartition(".")[2].lower()
        limits = {new: shown(made.get(old)) for old, new in _LIMITS.items() if made.get(old) is not None}
        if (minutes := made.get("max_duration_minutes")) is not None:
            limits["timeout"] = minutes * 60 if isinstance(minutes, int) else text(minutes)
        limits |= {"trial_timeout": run["limits"]["timeout"]} if run.get("limits") else {}
        for lost in ("resume_from", "resume_child_runs"):
            if made.get(lost) is not None:
                self.told(made, lost, "hand", "a sweep of v2 resumes no other", "Narrow the search space instead.")
        return {
            **{key: value for key, value in run.items() if key not in (*_TRIAL, "limits")},
            "trial": {key: run[key] for key in _TRIAL if run.get(key)},
            "search_space": drawn or made.open("parameter_space"),
            "objective": {
                "primary_metric": text(made.get("primary_metric_name") or made.open("primary_metric_name")),
                "goal": word if word in ("minimize", "maximize") else made.open("primary_metric_goal"),
            },
            "sampling_algorithm": _SAMPLINGS.get(getattr(sampling, "kind", ""), made.open("hyperparameter_sampling")),
            "limits": limits,
            "early_termination": _policy(made.get("policy")),
        }


def _drawn(values: Any, made: Made) -> Any:
    """One distribution."""
    if not isinstance(values, Made):
        return made.open("values")
    return {"type": values.kind, **{name: shown(value) for name, value in values.given().items()}}


def _policy(policy: Any) -> Any:
    if policy is None or (isinstance(policy, Made) and policy.kind == "NoTerminationPolicy"):
        return None
    if not isinstance(policy, Made) or policy.kind not in _POLICIES:
        return {"type": text(policy)}
    return {"type": _POLICIES[policy.kind], **{name: shown(value) for name, value in policy.given().items()}}
