"""``amlstack:slurm`` and ``rehearse_on``: what is refused with which remedy, and that Azure is told nothing of it."""

from __future__ import annotations

from typing import Any

from infra.properties import cluster_properties
from infra.settings import parse
from tests.support.rows import for_each

GPUS = {"name": "gpus", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}}


def settings(**more: Any) -> dict[str, Any]:
    return {"location": "westeurope", "workspace": "aml-team", "clusters": [GPUS], **more}


def test_a_profile_may_hold_every_option_or_none() -> None:
    whole = {"account": "vision", "partition": "gpu", "gres": "gpu:8", "constraint": "ib&h100", "mpirun": "/opt/mpirun"}
    whole["container"] = "/opt/bin/apptainer"
    reading = parse(settings(slurm={"h100": whole, "any": {}}, clusters=[{**GPUS, "rehearse_on": "slurm:h100"}]))
    assert reading.findings == ()
    assert reading.settings is not None
    assert reading.settings.slurm["h100"].model_dump(exclude_none=True) == whole
    plain, rehearsed = parse(settings()).settings, reading.settings
    assert plain is not None
    sent = [cluster_properties(each.clusters[0], location="westeurope", tags={}) for each in (plain, rehearsed)]
    assert sent[0] == sent[1]


@for_each(
    "more, where, says",
    [
        ({"slurm": {"h100": {"partion": "gpu"}}}, "slurm.h100.partion", "Did you mean `partition`?"),
        ({"slurm": {"h100": {"gres": "gpu:8, nic:1"}}}, "slurm.h100.gres", "as one word, without blanks"),
        ({"slurm": {"h100": {"container": "docker"}}}, "slurm.h100.container", "It is `pyxis`, or `apptainer`"),
        ({"slurm": {"h100": {"account": 12}}}, "slurm.h100.account", "must be a string"),
        ({"slurm": {"--all": {}}}, "slurm.--all", "a letter or digit first"),
        ({"slurm": "gpu"}, "slurm", "must be a mapping"),
        ({"clusters": [{**GPUS, "rehearse_on": "slum"}]}, "clusters[0].rehearse_on", "`machine`, `slurm`, or"),
        ({"clusters": [{**GPUS, "rehearse_on": "slurm:h100"}]}, "clusters[0].rehearse_on", "Write `h100: {partition"),
        (
            {"slurm": {"h100": {}}, "clusters": [{**GPUS, "rehearse_on": "slurm:h10"}]},
            "clusters[0].rehearse_on",
            "Did you mean `h100`?",
        ),
        (
            {"slurm": {"h100": {}}, "cluster_defaults": {"rehearse_on": "slurm:cpu"}, "clusters": []},
            "cluster_defaults.rehearse_on",
            "There is `h100`.",
        ),
    ],
)
def test_what_is_wrong_is_named_at_its_place(more: dict[str, Any], where: str, says: str) -> None:
    (finding,) = parse(settings(**more)).findings
    assert (finding.where, says in str(finding)) == (f"amlstack:{where}", True)


def test_a_profile_that_could_not_be_read_is_not_missing_as_well() -> None:
    reading = parse(settings(slurm={"h100": 3}, clusters=[{**GPUS, "rehearse_on": "slurm:h100"}]))
    assert [each.where for each in reading.findings] == ["amlstack:slurm.h100"]
