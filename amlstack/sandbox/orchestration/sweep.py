"""A sweep: its body read (what is varied, how, how often), and its trials advanced up to its limits.

The best trial is the one with the best value of the primary metric. Hopeless trials end early: a trial's intervals are
counted by how often it logged that metric. A policy looks at a trial at every multiple of its evaluation interval that
is not below its delay, and compares what all trials had logged by then.

A distribution is a function of one number between 0 and 1, which is random, of Sobol's sequence (points that fill a
space evenly), or of every combination. Source of its direction numbers: S. Joe and F. Y. Kuo, "Constructing Sobol
sequences with better two-dimensional projections", 2008.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.contract import RefusedError, seconds
from amlstack.sandbox.protocol.refusals import invalid, near, not_emulated
from amlstack.sandbox.store.store import JobError, JobRow, Store

if TYPE_CHECKING:
    from amlstack.sandbox.orchestration.parent import Parent

ARGUMENTS = {
    "choice": ("values",),
    "randint": ("upper",),
    "uniform": ("min_value", "max_value"),
    "loguniform": ("min_value", "max_value"),
    "quniform": ("min_value", "max_value", "q"),
    "qloguniform": ("min_value", "max_value", "q"),
    "normal": ("mu", "sigma"),
    "lognormal": ("mu", "sigma"),
    "qnormal": ("mu", "sigma", "q"),
    "qlognormal": ("mu", "sigma", "q"),
}
"""The distributions, and their arguments in the order of the wire."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """One hyperparameter's distribution: its kind, and its arguments by name."""

    kind: str
    arguments: Mapping[str, Any]

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of a choice; empty for all others."""
        return tuple(self.arguments["values"]) if self.kind == "choice" else ()

    def at(self, u: float, base: float = math.e) -> Any:
        """The value below which a share ``u`` of the distribution lies.

        Args:
            u: Above 0 and below 1.
            base: Of the log distributions.
        """
        arguments = self.arguments
        if self.kind == "choice":
            return self.values[min(int(u * len(self.values)), len(self.values) - 1)]
        if self.kind == "randint":
            return min(int(u * arguments["upper"]), arguments["upper"] - 1)
        if "sigma" in arguments:
            drawn = arguments["mu"] + arguments["sigma"] * NormalDist().inv_cdf(u)
        else:
            drawn = arguments["min_value"] + u * (arguments["max_value"] - arguments["min_value"])
        if "log" in self.kind:
            drawn = base**drawn
        return round(drawn / arguments["q"]) * arguments["q"] if "q" in arguments else float(drawn)


def read_space(space: Any) -> dict[str, Distribution]:
    """A search space: by name a distribution, as ``["uniform", [0, 1]]`` or as an object with ``type``.

    Raises:
        Refused: One of them is none.
    """
    if not isinstance(space, dict) or not space:
        raise invalid(
            "properties.searchSpace", "a sweep without a search space; one hyperparameter at least is varied."
        )
    return {name: _distribution(value, f"properties.searchSpace.{name}") for name, value in space.items()}


def _distribution(written: Any, where: str) -> Distribution:
    if isinstance(written, dict):
        kind = str(written.get("type"))
        given = [written[name] for name in ARGUMENTS.get(kind, ()) if name in written]
    elif isinstance(written, list) and len(written) == 2 and isinstance(written[1], list):
        kind, given = str(written[0]), written[1]
    else:
        raise invalid(where, "a distribution is a list of its name and its arguments.")
    kind = kind.lower()
    if kind not in ARGUMENTS:
        raise invalid(where, f"'{kind}' is no distribution.{near(kind, ARGUMENTS)}")
    names = ARGUMENTS[kind]
    if len(given) != len(names):
        raise invalid(where, f"{kind} takes {len(names)} argument(s) ({', '.join(names)}), got {len(given)}.")
    found = Distribution(kind, dict(zip(names, given, strict=True)))
    _check(found, where)
    return found


def _check(found: Distribution, where: str) -> None:
    arguments = found.arguments
    if found.kind == "choice":
        if not isinstance(arguments["values"], list) or not arguments["values"]:
            raise invalid(where, "a choice has at least one value.")
        if any(isinstance(value, dict) for value in found.values):
            raise not_emulated(f"choices among objects ({where}); write their values as hyperparameters of their own")
        return
    wrong = next(
        (name for name, value in arguments.items() if isinstance(value, bool) or not isinstance(value, int | float)),
        None,
    )
    if wrong is not None:
        raise invalid(where, f"'{arguments[wrong]}' is no number ({wrong} of {found.kind}).")
    if found.kind == "randint" and (not isinstance(arguments["upper"], int) or arguments["upper"] < 1):
        raise invalid(where, f"randint draws below its upper bound, a whole number from 1; got {arguments['upper']}.")
    if "min_value" in arguments and arguments["min_value"] > arguments["max_value"]:
        raise invalid(
            where, f"the lower bound {arguments['min_value']} is above the upper bound {arguments['max_value']}."
        )
    if arguments.get("q", 1) <= 0 or arguments.get("sigma", 1) < 0:
        raise invalid(where, "q is above 0, and sigma is not below 0.")


BITS = 32

# Per dimension from the second on: degree and coefficients of the primitive polynomial, the first direction numbers.
_POLYNOMIALS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
)
DIMENSIONS = len(_POLYNOMIALS) + 1
"""As many hyperparameters as can be drawn together."""


def point(number: int, shifts: tuple[int, ...]) -> tuple[float, ...]:
    """One point of the sequence, shifted bit by bit.

    Args:
        number: From 0.
        shifts: One word of `BITS` bits for each dimension; zeros give the sequence as it is.
    """
    return tuple(_coordinate(number, dimension, shift) for dimension, shift in enumerate(shifts))


def _coordinate(number: int, dimension: int, shift: int) -> float:
    directions = _directions(dimension)
    gray, word = number ^ (number >> 1), shift
    for bit in range(BITS):
        if gray >> bit & 1:
            word ^= directions[bit]
    return (word + 0.5) / (1 << BITS)  # never 0, never 1


def _directions(dimension: int) -> list[int]:
    if dimension == 0:
        return [1 << (BITS - 1 - bit) for bit in range(BITS)]
    degree, coefficients, first = _POLYNOMIALS[dimension - 1]
    found = [number << (BITS - 1 - bit) for bit, number in enumerate(first)]
    for bit in range(degree, BITS):
        word = found[bit - degree] ^ (found[bit - degree] >> degree)
        for step in range(1, degree):
            if coefficients >> (degree - 1 - step) & 1:
                word ^= found[bit - step]
        found.append(word)
    return found


@dataclass(frozen=True, slots=True)
class Sampling:
    """An algorithm; the same number always gives the same values.

    Attributes:
        kind: ``random``, ``grid``, or ``bayesian``, which is sampled as random.
        rule: ``random`` or ``sobol``, for random sampling.
        seed: What the draws start from.
        base: Of the log distributions.
    """

    kind: str
    rule: str
    seed: str
    base: float = math.e

    def values(self, space: Mapping[str, Distribution], number: int) -> dict[str, Any] | None:
        """The hyperparameters of one trial (from 0); None when a grid has no more."""
        if self.kind == "grid":
            return _grid(space, number)
        names = sorted(space)
        drawn = {
            name: space[name].at(u, self.base) for name, u in zip(names, self._draw(len(names), number), strict=True)
        }
        return {name: drawn[name] for name in space}

    def _draw(self, count: int, number: int) -> tuple[float, ...]:
        if self.rule == "sobol":
            shifts = random.Random(self.seed)  # noqa: S311 - a sample, no secret
            return point(number, tuple(shifts.getrandbits(BITS) for _ in range(count)))
        source = random.Random(f"{self.seed}/{number}")  # noqa: S311
        return tuple(_inside(source.random()) for _ in range(count))


def read_sampling(given: Mapping[str, Any], space: Mapping[str, Distribution], name: str) -> Sampling:
    """Reads ``samplingAlgorithm``.

    Args:
        given: As in the body.
        space: What is sampled.
        name: The sweep's name; without a seed it is one, so that a restart draws the same.

    Raises:
        Refused: The algorithm cannot sample the space.
    """
    where = "properties.samplingAlgorithm"
    kind, rule = str(given["samplingAlgorithmType"]).lower(), str(given.get("rule") or "random").lower()
    takes = {"grid": ("choice",), "bayesian": ("choice", "uniform", "quniform")}.get(kind)
    odd = next((name for name, each in space.items() if takes is not None and each.kind not in takes), None)
    if odd is not None and takes is not None:
        message = (
            f"{kind} sampling takes {', '.join(takes)}; '{odd}' is {space[odd].kind}. Take random sampling for it."
        )
        raise invalid(where, message)
    if kind == "random" and rule == "sobol" and len(space) > DIMENSIONS:
        limit = f"Sobol sampling of {len(space)} hyperparameters, at most {DIMENSIONS}; take the rule random"
        raise not_emulated(limit)
    seed = given.get("seed")
    text = hashlib.sha256(name.encode()).hexdigest() if seed is None else str(seed)
    return Sampling(kind, rule if kind == "random" else "random", text, _base(given.get("logbase"), where))


def _base(logbase: Any, where: str) -> float:
    if logbase is None or logbase == "e":
        return math.e
    try:
        found = float(logbase)
    except (TypeError, ValueError):
        found = 0.0
    if found <= 0:
        raise invalid(f"{where}.logbase", f"'{logbase}' is neither a number above 0 nor 'e'.")
    return found


def _grid(space: Mapping[str, Distribution], number: int) -> dict[str, Any] | None:
    """The combinations in the order in which they would be counted, the last hyperparameter first."""
    found = {}
    for name in reversed(list(space)):
        number, index = divmod(number, len(space[name].values))
        found[name] = space[name].values[index]
    return None if number else {name: found[name] for name in space}


def _inside(u: float) -> float:
    return min(max(u, 2.0**-53), 1 - 2.0**-53)


def better(goal: str) -> Callable[[Iterable[float]], float]:
    """``min`` or ``max``, after the sweep's goal (any letter case)."""
    return max if goal.lower() == "maximize" else min


def best_trial(store: Store, sweep: JobRow) -> tuple[JobRow, float] | None:
    """The best trial and its value: of those that completed if any did; None when none logged the primary metric.

    Of equal ones the first.
    """
    objective = sweep.properties.get("objective") or {}
    pick, metric = better(str(objective.get("goal") or "")), str(objective.get("primaryMetric"))
    logged = [(row, store.metrics.values(row.id, metric)) for row in store.children(sweep.id).values()]
    scored = [(row, pick(values)) for row, values in logged if values]
    candidates = [each for each in scored if each[0].status == "Completed"] or scored
    if not candidates:
        return None
    top = pick(score for _, score in candidates)
    return next(each for each in candidates if each[1] == top)


Curves = Mapping[str, Sequence[float]]

KINDS = ("Bandit", "MedianStopping", "TruncationSelection")


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy.

    Attributes:
        kind: One of `KINDS`.
        interval: How many intervals lie between two looks.
        delay: Intervals before the first look.
        factor, amount: A bandit's slack: as a share of the best value, or absolute.
        percentage: Of trials that a truncation ends at each look.
        finished: A truncation counts trials that have ended too.
    """

    kind: str
    interval: int = 1
    delay: int = 0
    factor: float = 0.0
    amount: float = 0.0
    percentage: int = 0
    finished: bool = True

    def doomed(self, goal: str, curves: Curves, running: Collection[str]) -> tuple[str, ...]:
        """The running trials that the policy ends now.

        Args:
            goal: ``minimize`` or ``maximize``.
            curves: What each trial logged of the primary metric, in order.
            running: Those that have not ended.
        """
        # With the sign turned a smaller value is a better one, whatever the goal.
        sign = -1.0 if better(goal) is max else 1.0
        turned = {trial: [sign * value for value in values] for trial, values in curves.items()}
        return tuple(trial for trial in turned if trial in running and self._ends(trial, turned, running))

    def _ends(self, trial: str, curves: Curves, running: Collection[str]) -> bool:
        count = len(curves[trial])
        look = count - count % self.interval
        if look < max(1, self.delay):
            return False
        # Others may be late: what it has reached since its look counts for it, not against it.
        peers = {
            other: values if other == trial else values[:look]
            for other, values in curves.items()
            if len(values) >= look and (self.finished or other in running)
        }
        own = min(curves[trial])
        if self.kind == "Bandit":
            top = min(min(values) for values in peers.values())
            return own > top + self._slack(top)
        if self.kind == "MedianStopping":
            return own > median(fmean(values) for values in peers.values())
        worst = sorted(peers, key=lambda other: min(peers[other]), reverse=True)
        return trial in worst[: len(worst) * self.percentage // 100]

    def _slack(self, top: float) -> float:
        # Of a metric to be maximised the service takes best / (1 + factor), of one to be minimised best × (1 + factor).
        share = self.factor / (1 + self.factor) if top < 0 else self.factor
        return self.amount or abs(top) * share


def read_policy(given: Mapping[str, Any] | None) -> Policy | None:
    """Reads ``earlyTermination``; None for none.

    Raises:
        Refused: It is no policy.
    """
    if not given:
        return None
    where = "properties.earlyTermination"
    word = str(given.get("policyType") or given.get("type") or "").replace("_", "").lower()
    kind = {name.lower(): name for name in KINDS}.get(word)
    if kind is None:
        raise invalid(where, f"'{word}' is no policy.{near(word, KINDS)}")
    interval, delay = int(given.get("evaluationInterval") or 1), int(given.get("delayEvaluation") or 0)
    if interval < 1 or delay < 0:
        raise invalid(where, "the evaluation interval is at least 1, the delay not below 0.")
    percentage = int(given.get("truncationPercentage") or 0)
    if kind == "TruncationSelection" and not 1 <= percentage <= 99:
        raise invalid(f"{where}.truncationPercentage", f"{percentage}: a percentage from 1 to 99 is needed.")
    factor, amount = float(given.get("slackFactor") or 0), float(given.get("slackAmount") or 0)
    if factor < 0 or amount < 0:
        raise invalid(where, "a slack is not below 0.")
    finished = not given.get("excludeFinishedJobs", False)
    return Policy(kind, interval, delay, factor, amount, percentage, finished)


_BOUND = re.compile(r"\$\{\{\s*search_space\.(?P<name>[\w.-]+?)\s*\}\}")
VARIABLE = "AZUREML_SWEEP_"
"""Prefix of the environment variables that tell a trial its values."""
MOST = 1000
"""Trials of a sweep that does not say how many."""
OF_THE_TRIAL = ("codeId", "environmentId", "distribution", "resources")
OF_THE_SWEEP = ("computeId", "experimentName", "identity", "queueSettings")


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """One sweep.

    Attributes:
        space: What is varied, by name.
        sampling: How its values are drawn.
        goal: ``minimize`` or ``maximize``.
        metric: The primary metric's name.
        policy: When a trial is ended early; None for never.
        total: Trials in all, at most.
        concurrent: Trials at once, at most.
    """

    space: Mapping[str, Distribution]
    sampling: Sampling
    goal: str
    metric: str
    policy: Policy | None
    total: int
    concurrent: int


def read_sweep(name: str, properties: Mapping[str, Any]) -> SweepSpec:
    """Reads ``body["properties"]`` of a sweep job.

    Args:
        name: The job's name.
        properties: Its properties.

    Raises:
        Refused: The sandbox cannot run it.
    """
    varied = read_space(properties.get("searchSpace"))
    objective = properties.get("objective") or {}
    goal, metric = str(objective.get("goal") or "").lower(), str(objective.get("primaryMetric") or "")
    if goal not in ("minimize", "maximize") or not metric:
        raise invalid("properties.objective", "a goal (Minimize or Maximize) and a primaryMetric are needed.")
    limits = properties.get("limits") or {}
    total = int(limits.get("maxTotalTrials") or MOST)
    concurrent = int(limits.get("maxConcurrentTrials") or total)
    if total < 1 or concurrent < 1:
        raise invalid("properties.limits", f"{total} trials in all, {concurrent} at once; both are at least 1.")
    for key in ("timeout", "trialTimeout"):
        _check_duration(limits.get(key), f"properties.limits.{key}")
    command = str((properties.get("trial") or {}).get("command") or "")
    if odd := next((found for found in _BOUND.finditer(command) if found["name"] not in varied), None):
        message = f"the command refers to {odd[0]}, which the search space does not have.{near(odd['name'], varied)}"
        raise invalid("properties.trial.command", message)
    algorithm = read_sampling(properties.get("samplingAlgorithm") or {"samplingAlgorithmType": "Random"}, varied, name)
    policy = read_policy(properties.get("earlyTermination"))
    return SweepSpec(varied, algorithm, goal, metric, policy, total, concurrent)


def body(properties: Mapping[str, Any], parent: str, number: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """The ``properties`` of the child that is a trial: a command job.

    Args:
        properties: Those of the sweep.
        parent: The sweep's name.
        number: The trial's, from 0.
        values: What it tries.
    """
    trial, limits = properties["trial"], properties.get("limits") or {}
    texts = {name: text(value) for name, value in values.items()}
    literals = {name: {"jobInputType": "literal", "value": value} for name, value in texts.items()}
    timeout = limits.get("trialTimeout")
    wire = {
        "jobType": "Command",
        **{key: trial.get(key) for key in OF_THE_TRIAL},
        **{key: properties.get(key) for key in OF_THE_SWEEP},
        "outputs": _outputs(properties, parent, f"{parent}_{number}"),
        "resources": trial.get("resources") or properties.get("resources"),
        "command": _BOUND.sub(lambda found: texts[found["name"]], trial["command"]),
        "environmentVariables": {
            **(trial.get("environmentVariables") or {}),
            **{f"{VARIABLE}{name}": value for name, value in texts.items()},
        },
        "inputs": {**(properties.get("inputs") or {}), **literals},
        "limits": {"jobLimitsType": "Command", "timeout": timeout} if timeout else None,
        "parentJobName": parent,
        "displayName": f"{parent}_{number}",
        "tags": {"hyperparameters": json.dumps(dict(values))},
        "properties": {"azureml.runsource": "hyperdrive.trial", "hyperparameters": json.dumps(dict(values))},
    }
    return {key: value for key, value in wire.items() if value is not None}


def _outputs(properties: Mapping[str, Any], parent: str, trial: str) -> dict[str, Any] | None:
    """The outputs of a trial: what a pipeline's step has by the name of its job, each trial has by its own."""
    outputs: dict[str, Any] | None = properties.get("outputs")
    if not outputs or not properties.get("parentJobName"):
        return outputs
    return {
        name: {**wire, "uri": wire["uri"].replace(f"/{parent}/", f"/{trial}/")} if wire.get("uri") else wire
        for name, wire in outputs.items()
    }


def text(value: Any) -> str:
    """A value as the command gets it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_duration(text: Any, where: str) -> None:
    if text is None:
        return
    try:
        seconds(str(text))
    except RefusedError as error:
        raise invalid(where, str(error)) from None


HOPE = 3
"""Failed trials after which, at the earliest, a sweep of which none completed is given up."""


def drafts(store: Store, name: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The body of the first trial, to be checked before the sweep is taken.

    Raises:
        Refused: The sweep cannot be run by the sandbox.
    """
    del store
    sweep = read_sweep(name, properties)
    values = sweep.sampling.values(sweep.space, 0)
    yield "properties.trial", body(properties, name, 0, values or {})


def advance(parent: Parent) -> None:
    """Ends hopeless trials, starts new ones, ends the sweep when none is left."""
    job = parent.job
    sweep = read_sweep(job.name, job.properties)
    if sweep.sampling.kind == "bayesian" and not parent.children:
        parent.note("bayesian sampling runs as random sampling: no trial learns from another")
    _end_early(parent, sweep)
    _name_best(parent, sweep)
    while (
        len(parent.active) < sweep.concurrent and len(parent.children) < sweep.total and not _is_broken(parent, sweep)
    ):
        number = len(parent.children)
        values = sweep.sampling.values(sweep.space, number)
        if values is None:  # a grid has no more
            break
        parent.make(str(number), f"{job.name}_{number}", body(job.properties, job.name, number, values))
        parent.note(f"trial {number}: {', '.join(f'{name} = {text(value)}' for name, value in values.items())}")
    if not parent.active:
        _end(parent, sweep)


def _end_early(parent: Parent, sweep: SweepSpec) -> None:
    if sweep.policy is None:
        return
    curves = {place: parent.store.metrics.values(row.id, sweep.metric) for place, row in parent.children.items()}
    open_ones = {place for place, row in parent.active.items() if not row.cancel_requested and not _is_through(row)}
    for place in sweep.policy.doomed(sweep.goal, {key: values for key, values in curves.items() if values}, open_ones):
        parent.cancel(place)
        parent.note(f"trial {place}: ended early by {sweep.policy.kind} at interval {len(curves[place])}")


def _is_broken(parent: Parent, sweep: SweepSpec) -> bool:
    """As many trials as run at once have failed, and none has done better: the next ones would fail as well."""
    ends = [row.status for row in parent.children.values() if not row.active]
    return "Completed" not in ends and ends.count("Failed") >= max(sweep.concurrent, HOPE)


def _is_through(trial: JobRow) -> bool:
    """It told MLflow that it has finished: there is nothing left to spare."""
    return (trial.properties.get("properties") or {}).get("mlflow.status") == "FINISHED"


def _name_best(parent: Parent, sweep: SweepSpec) -> None:
    """The best trial so far goes into the sweep's record, under the service's names."""
    labels = {"primary_metric_config": json.dumps({"name": sweep.metric, "goal": sweep.goal})}
    if (best := best_trial(parent.store, parent.job)) is not None:
        labels |= {"best_child_run_id": best[0].name, "score": str(best[1]), "best_metric_status": "Succeeded"}
    parent.label(**labels)


def _end(parent: Parent, sweep: SweepSpec) -> None:
    completed = [row for row in parent.children.values() if row.status == "Completed"]
    failed = {place: row for place, row in parent.children.items() if row.status == "Failed"}
    if failed and not completed:
        place, row = next(iter(failed.items()))
        reason = row.error.message if row.error is not None else "no reason was recorded"
        message = f"None of {len(parent.children)} trial(s) completed. Trial {place} (job {row.name}) failed: {reason}"
        parent.note(f"no trial completed; trial {place} failed")
        parent.end("Failed", JobError("UserError", message))
        return
    if failed:
        parent.note(f"trial(s) {', '.join(failed)} failed")
    best = best_trial(parent.store, parent.job)
    if best is None:
        parent.note(
            f"no trial logged the primary metric '{sweep.metric}', so that none is the best; "
            "log it with mlflow.log_metric"
        )
    else:
        parent.note(f"best trial: {best[0].name} with {sweep.metric} = {best[1]:g}")
    parent.end("Completed")
