"""What a sweep varies: the distributions of Azure ML that a hyperparameter is drawn from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from jobs.model.values import Model

Number = StrictInt | StrictFloat


class _Between(Model):
    min_value: Number
    """Lower bound; of the logarithm for the log distributions."""
    max_value: Number
    """Upper bound; of the logarithm for the log distributions."""


class _Bell(Model):
    mu: Number
    """Mean; of the logarithm for the log distributions."""
    sigma: Number
    """Standard deviation; of the logarithm for the log distributions."""


class Choice(Model):
    """One of a few values; a value may be a mapping of names to values or further distributions."""

    type: Literal["choice"] = "choice"
    values: tuple[StrictInt | StrictFloat | StrictStr | dict[str, Any], ...] = ()
    """The values to choose from."""


class Randint(Model):
    """A whole number from 0, below an upper bound."""

    type: Literal["randint"] = "randint"
    upper: StrictInt
    """Upper bound, itself excluded."""


class Uniform(_Between):
    """Any value between two bounds, all equally likely."""

    type: Literal["uniform"] = "uniform"


class LogUniform(_Between):
    """exp of a uniform value: for learning rates and the like."""

    type: Literal["loguniform"] = "loguniform"


class QUniform(_Between):
    """A uniform value, rounded to multiples of q."""

    type: Literal["quniform"] = "quniform"
    q: Number
    """Step."""


class QLogUniform(_Between):
    """exp of a uniform value, rounded to multiples of q."""

    type: Literal["qloguniform"] = "qloguniform"
    q: Number
    """Step."""


class Normal(_Bell):
    """A normally distributed value."""

    type: Literal["normal"] = "normal"


class LogNormal(_Bell):
    """exp of a normally distributed value."""

    type: Literal["lognormal"] = "lognormal"


class QNormal(_Bell):
    """A normally distributed value, rounded to multiples of q."""

    type: Literal["qnormal"] = "qnormal"
    q: Number
    """Step."""


class QLogNormal(_Bell):
    """exp of a normally distributed value, rounded to multiples of q."""

    type: Literal["qlognormal"] = "qlognormal"
    q: Number
    """Step."""


DISTRIBUTIONS: tuple[type[Model], ...] = (
    Choice,
    Randint,
    Uniform,
    LogUniform,
    QUniform,
    QLogUniform,
    Normal,
    LogNormal,
    QNormal,
    QLogNormal,
)

SearchSpace = Annotated[
    Choice | Randint | Uniform | LogUniform | QUniform | QLogUniform | Normal | LogNormal | QNormal | QLogNormal,
    Field(discriminator="type"),
]


def arguments(value: SearchSpace) -> list[Any]:
    """The arguments of a distribution in the order of the wire, without its type."""
    return [getattr(value, name) for name in type(value).model_fields if name != "type"]
