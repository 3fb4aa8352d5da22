"""An Azure ML CLI v2 sweep job file as a `Sweep`, passed through unchanged."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Level
from amlstack.base.text import snake
from jobs.azureml.fields import (
    Bad,
    Cursor,
    Nullable,
    Readers,
    anything,
    at_least,
    each_read,
    has_keys,
    keys,
    named,
    same,
    seconds,
    text,
    whole,
    word,
)
from jobs.azureml.read import command
from jobs.model import job
from jobs.wire.keys import blocks

if TYPE_CHECKING:
    from jobs.values import Model


def number(cursor: Cursor) -> Any:
    """A number; text of one is taken as a float, as the real loader does."""
    value = cursor.value
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            finite = float(value)
        except (ValueError, OverflowError):  # a whole number may be too large for any float
            finite = math.nan
        if math.isfinite(finite):
            return finite if isinstance(value, str) else value
    return cursor.wrong("a number")


def decimal(cursor: Cursor) -> Any:
    """A number, as a float."""
    fields = number(cursor)
    return fields if fields is Bad else float(fields)


def complete(cursor: Cursor, model: type[Model], table: Readers, *, what: str, constant: Mapping[str, Any]) -> Any:
    """A model of a mapping whose required keys are there, else `Bad` with a finding for each that is not."""
    fields = dict(keys(cursor, table, what=what))
    needed = [name for name, field in model.model_fields.items() if field.is_required() and name not in constant]
    complete = has_keys(cursor, fields, needed, rule=f"`{{}}` belongs to {what}")
    return model(**{**fields, **constant}) if complete and isinstance(cursor.value, dict) else Bad


def _one_of(models: Mapping[str, tuple[type[Model], Readers]], normal: Callable[[str], str], what: str) -> Any:
    """A reader of a mapping whose ``type`` says which model it is."""
    kind_of = word(same(*models), normal)

    def read(cursor: Cursor) -> Any:
        if not isinstance(cursor.value, dict):
            return cursor.wrong(f"{what}, a mapping with `type`")
        if "type" not in cursor.value:
            listed = ", ".join(f"`{name}`" for name in models)
            return cursor.bad("key-missing", f"There is no `type` of {what}", f"It is one of {listed}")
        kind = kind_of(cursor.at("type"))
        if kind is Bad:
            return Bad
        model, table = models[kind]
        return complete(cursor, model, {"type": text, **table}, what=f"{what} of type {kind}", constant={"type": kind})

    return read


def _chosen(cursor: Cursor) -> Any:
    value = cursor.value
    if isinstance(value, dict):
        return named(_nested)(cursor)
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return anything(cursor)
    return cursor.wrong("text, a number, or a mapping", f'Put it in quotes: "{value}".')


def _nested(cursor: Cursor) -> Any:
    return distribution(cursor) if isinstance(cursor.value, dict) else _chosen(cursor)


def _choices(cursor: Cursor) -> Any:
    if not isinstance(cursor.value, list):
        return cursor.wrong("a list of values")
    return each_read(cursor, _chosen)


_READERS: dict[type[Model], Readers] = {job.Choice: {"values": _choices}, job.Randint: {"upper": whole}}
distribution = _one_of(
    {
        str(model.model_fields["type"].default): (
            model,
            _READERS.get(model, {name: number for name in model.model_fields if name != "type"}),
        )
        for model in job.SEARCH_DISTRIBUTIONS
    },
    str.lower,
    "a distribution",
)
_NAME = re.compile(r"[A-Za-z0-9_]+")


def search_space(cursor: Cursor) -> Any:
    """The hyperparameters, by name."""
    fields = named(distribution)(cursor)
    if fields is Bad:
        return Bad
    for name in fields:
        if not _NAME.fullmatch(name):
            rule = "Names of hyperparameters are letters, digits and underscores"
            remedy = f"Write `{re.sub(r'[^A-Za-z0-9_]', '_', name) or 'value'}`."
            cursor.bad("binding-name", f"`{name}` is not a name that can be bound", rule, remedy, key=name)
    return fields


def _logbase(cursor: Cursor) -> Any:
    value = cursor.value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return decimal(cursor)


_SAMPLING = _one_of(
    {
        "random": (job.Random, {"rule": word(same("random", "sobol"), snake), "seed": whole, "logbase": _logbase}),
        "grid": (job.Grid, {}),
        "bayesian": (job.Bayesian, {}),
    },
    snake,
    "a sampling algorithm",
)
_SAMPLING_WORD = word(same("random", "grid", "bayesian"))


def sampling(cursor: Cursor) -> Any:
    """The choice of trials: a word, or a mapping."""
    return _SAMPLING_WORD(cursor) if isinstance(cursor.value, str) else _SAMPLING(cursor)


_INTERVALS = {"evaluation_interval": Nullable(at_least(0)), "delay_evaluation": Nullable(at_least(0))}
early_termination = _one_of(
    {
        "bandit": (job.Bandit, {**_INTERVALS, "slack_factor": Nullable(decimal), "slack_amount": Nullable(decimal)}),
        "median_stopping": (job.MedianStopping, _INTERVALS),
        "truncation_selection": (job.TruncationSelection, {**_INTERVALS, "truncation_percentage": whole}),
    },
    snake,
    "an early termination policy",
)


def objective(cursor: Cursor) -> Any:
    """The objective of the sweep."""
    table = {"goal": word(same("minimize", "maximize"), snake), "primary_metric": text}
    return complete(cursor, job.Objective, table, what="an objective", constant={})


def limits(cursor: Cursor) -> Any:
    """The number of trials, and their time."""
    return complete(
        cursor,
        job.SweepLimits,
        {
            **dict.fromkeys(("max_total_trials", "max_concurrent_trials"), at_least(0)),
            **dict.fromkeys(("timeout", "trial_timeout"), seconds),
        },
        what="the limits of a sweep",
        constant={},
    )


def _resources(cursor: Cursor) -> Any:
    fields = command.resources(cursor)
    return Bad if fields is Bad else job.SweepResources(**fields)


PARTS = {
    "search_space": search_space,
    "objective": objective,
    "limits": limits,
    "sampling_algorithm": sampling,
    "early_termination": early_termination,
    "resources": _resources,
    "queue_settings": command.queue,
}
"""Keys that make a job, or a step of a pipeline, a sweep."""

TRIAL = {key: command.KEYS[key] for key in blocks("trial")}


def _trial(cursor: Cursor) -> Any:
    """The trial's own part of a job."""
    if isinstance(cursor.value, str):
        return cursor.stated("value-kind", seen=cursor.must("be a mapping"))
    fields = dict(keys(cursor, {**TRIAL, "queue_settings": command.queue}, what="a trial"))
    if fields.pop("queue_settings", None) is not None:
        cursor.stated("lost-in-rendering/trial", Level.WARNING, "queue_settings")
    complete = has_keys(cursor, fields, ("command", "environment"), "The trial has no `{}`", "A trial has its `{}`")
    return fields if complete else Bad


_OF_THE_TRIAL = blocks("sweep")
KEYS = {
    "type": word({"sweep": "sweep"}, str),
    **{key: command.KEYS[key] for key in (*blocks("run"), *_OF_THE_TRIAL)},
    **PARTS,
    "trial": _trial,
    "services": command.KEYS["services"],
}
"""Keys of a sweep job."""


def path_of(where: str) -> tuple[str, ...]:
    """The keys in the file for a path in the sweep: ``trial.inputs.x`` is ``inputs.x``."""
    first, _, rest = where.partition(".")
    if first == "trial" and rest:
        inner = command.path_of(rest)
        return inner if inner[0] in _OF_THE_TRIAL else ("trial", *inner)
    if first == "resources" and rest:
        return command.path_of(rest)
    return tuple(where.split("."))


def read(cursor: Cursor) -> job.Sweep | None:
    """Read a sweep job; None when it is too broken to be one (its faults are in ``cursor.findings``)."""
    fields = dict(keys(cursor, KEYS, ignored=command.READ_ONLY, what="a sweep job"))
    if fields.pop("services", None) is not None:
        cursor.stated("lost-in-rendering/read", Level.WARNING, "services")
    needed = ("trial", "search_space", "objective", "limits")
    if not has_keys(cursor, fields, needed, "The sweep has no `{}`", "A sweep job has `{}`"):
        return None
    fields.pop("type", None)
    trial = fields.pop("trial") | {key: fields.pop(key) for key in _OF_THE_TRIAL if key in fields}
    return job.Sweep(trial=job.Job(**command.job_fields(trial)), **fields)
