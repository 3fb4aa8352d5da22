"""Rules on any resource as tables: arguments → what they find."""

from __future__ import annotations

from amlstack.base.pulumi_wire import UNKNOWN
from tests.support.policies.rule_tables.rows import Row, row

TABLES: dict[str, list[Row]] = {
    "region": [
        row("westeurope", regions=["westeurope"], says=None),
        row("West Europe", regions=["westeurope"], says=None),
        row("westeurope", regions=["eastus", "West Europe"], says=None),
        row("southindia", regions=["westeurope"], says="The location is 'southindia'"),
        row("global", regions=["westeurope"], says=None),
        row("southindia", regions=[], says=None),
        row("southindia", regions=None, says=None),
    ],
    "required_tags": [
        row({"team": "a"}, required=["team"], says=None),
        row({"Team": "a"}, required=["team"], says=None),
        row({"team": "a"}, required=["TEAM"], says=None),
        row({"team": UNKNOWN}, required=["team"], says=None),
        row({"team": " "}, required=["team"], says="Missing: team"),
        row({"team": None}, required=["team"], says="Missing: team"),
        row({}, required=["team", "owner"], says="Missing: team, owner"),
        row({}, required=["team"], values={"team": "a"}, says="Write team: a"),
        row({}, required=["team", "owner"], values={"owner": "b"}, says="Write owner: b. ["),
        row({}, required=["team"], values={"owner": "b"}, says="Write them, with a value"),
        row({}, required=None, says=None),
        row({}, required=[], says=None),
    ],
}
