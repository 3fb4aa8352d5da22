"""Reads a team's catalogue file: values that the catalogue can take, and a finding at its line for everything else."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from amlstack.base import yamltext
from amlstack.base.models import Codes, Explainer
from amlstack.base.text import hint
from amlstack.catalog.files import load as load_rows

if TYPE_CHECKING:
    from amlstack.base.findings import Finding

CODE: Final = "catalogue-overlay"


def _day(value: Any) -> Any:
    if type(value) is date:
        return value.isoformat()
    try:
        date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError("Input should be a day such as 2026-11-01") from None
    return value


def _share(value: Any) -> Any:
    if type(value) not in {int, float} or not 0 <= value < 1:
        raise ValueError("Input should be a share of the list price such as 0.15")
    return value


def _known_size(name: str) -> str:
    known = {row["name"].lower(): row["name"] for row in load_rows("sizes")}
    if name.lower() not in known:
        near = hint(name, known.values()).strip()
        raise ValueError(f"The catalogue has no size `{name}`|A size is like one of the catalogue|{near}")
    return name.lower()


def _discounted(name: str) -> str:
    rows = load_rows("sizes")
    known = {"*", *(row["name"] for row in rows), *(row["series"] for row in rows)}
    if name.lower() not in {each.lower() for each in known}:
        near = hint(name, known).strip()
        raise ValueError(f"No size or series is named `{name}`|A discount is of a size, of a series or of all|{near}")
    return name.lower()


Text = Annotated[str, Field(min_length=1)]
Number = Annotated[float, Field(strict=True, ge=0, lt=1e9)]
Whole = Annotated[int, Field(strict=True, ge=0)]
YesOrNo = Annotated[bool, Field(strict=True)]
Day = Annotated[str, BeforeValidator(_day)]
Share = Annotated[float, BeforeValidator(_share)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TeamPrice(_Model):
    """A price of a node for an hour, in US dollars."""

    size: Text = Field(description="A price is that of a size")
    usd: Number = Field(description="A price is US dollars for a dedicated node and an hour")
    region: Text = Field(description="A price is that of a region")
    checked: Day = Field(description="A price has the day on which somebody looked")
    source: Text = "the team's catalogue"
    low_priority: Number | None = None
    spot: Number | None = None


class TeamSize(_Model):
    """A size; what it does not say is that of the size that it is like."""

    name: Text = Field(description="A size has the name that Azure gives it")
    like: Annotated[Text, AfterValidator(_known_size)] | None = None
    family: Text | None = None
    series: Text | None = None
    vcpus: Whole | None = None
    memory_gib: Number | None = None
    architecture: Literal["x64", "arm64"] | None = None
    gpus: Whole | None = None
    gpu_vendor: Text | None = None
    gpu_model: Text | None = None
    gpu_memory_gib: Number | None = None
    gpu_share: Text | None = None
    rdma: YesOrNo | None = None
    sriov: YesOrNo | None = None
    infiniband: Text | None = None
    gbps_per_node: Number | None = None
    retired: Day | None = None
    azureml_supported: YesOrNo | None = None
    note: Text | None = None
    checked: Day | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> TeamSize:
        missing = [key for key in ("vcpus", "memory_gib", "checked") if getattr(self, key) is None]
        if self.like is None and missing:
            listed = ", ".join(f"`{key}`" for key in missing)
            raise ValueError(f"A size without `like` must have {listed}|A size like another one takes these from it")
        return self

    def row(self) -> dict[str, Any]:
        """The size as a row of ``data/sizes.json``."""
        known = {row["name"].lower(): row for row in load_rows("sizes")}
        base = known[self.like] if self.like else _plain(self.name)
        return {**base, **self.model_dump(exclude={"like"}, exclude_none=True), "source": ["team"]}


class TeamCatalogue(_Model):
    """The whole file."""

    sizes: tuple[TeamSize, ...] | None = None
    prices: tuple[TeamPrice, ...] | None = None
    discounts: dict[Annotated[str, AfterValidator(_discounted)], Share] | None = None
    regions: tuple[Text, ...] | None = None


_EXPLAINER = Explainer(TeamCatalogue, Codes(CODE, CODE, CODE, CODE))


def load(file: Path) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """The rows of a file, by part, and its faults; with findings there are no rows."""
    text = yamltext.read(file)
    if text.findings:
        return {}, text.findings
    try:
        given = TeamCatalogue.model_validate({} if text.data is None else text.data)
    except ValidationError as error:
        return {}, tuple(
            _EXPLAINER.finding(each).at(str(file), *(text.spot(_EXPLAINER.written(each["loc"])) or ()))
            for each in error.errors(include_url=False)
        )
    return {
        "sizes": tuple(size.row() for size in given.sizes or ()),
        "prices": tuple(price.model_dump(exclude_none=True) for price in given.prices or ()),
        "discounts": given.discounts or {},
        "regions": frozenset("".join(name.lower().split()) for name in given.regions or ()),
    }, ()


def _plain(name: str) -> dict[str, Any]:
    """A CPU size on Ethernet of which nothing else is known."""
    nothing = ("family", "gpu_vendor", "gpu_model", "gpu_memory_gib", "infiniband", "gbps_per_node", "retired")
    return {
        **dict.fromkeys((*nothing, "azureml_supported")), "name": name, "series": name.removeprefix("Standard_"),
        "architecture": "x64", "gpus": 0, "rdma": False, "sriov": False, "note": "",
    }  # fmt: skip
