"""Rules on clusters as tables: arguments → what they find."""

from __future__ import annotations

from tests.support.policies.rule_tables.rows import H100, HB, NO_IB, Row, row

TABLES: dict[str, list[Row]] = {
    "scale_to_zero": [
        row(0, nodes=0, says=None),
        row(1, nodes=0, says="The minimum is 1 node. At most 0 nodes"),
        row(2, nodes=2, says=None),
        row(3, nodes=2, says="The minimum is 3 nodes"),
    ],
    "idle_time": [
        row("PT10M", minutes=60, says=None),
        row("PT1H", minutes=60, says=None),
        row("PT61M", minutes=60, says="Idle nodes wait PT61M"),
        row("P1D", minutes=60, says="Write PT60M or less"),
        row(None, minutes=60, says="does not say when"),
        row("soon", minutes=60, says="wait soon"),
    ],
    "node_ceiling": [
        row(16, nodes=16, says=None),
        row(17, nodes=16, says="The maximum is 17 nodes"),
        row(17, nodes=None, says=None),
        row(1, nodes=0, says="At most 0"),
    ],
    "public_ip": [
        row(False, says=None),
        row(True, says="Nodes get public addresses"),
        row(None, says="does not switch public addresses off"),
    ],
    "ssh": [
        row("Disabled", says=None),
        row("disabled", says=None),
        row("Enabled", says="Remote login is Enabled"),
        row("NotSpecified", says="Remote login is NotSpecified"),
        row(None, says="Remote login is not specified"),
    ],
    "local_auth": [
        row(True, says=None),
        row(False, says="Local authentication is on"),
        row(None, says="does not switch local authentication off"),
    ],
    "managed_identity": [
        row("SystemAssigned", says=None),
        row("SystemAssigned,UserAssigned", says=None),
        row("None", says="has no managed identity"),
        row(None, says="has no managed identity"),
    ],
    "subnet_present": [
        row("/subscriptions/s/…/subnets/n", says=None),
        row("", says="names no subnet"),
        row(None, says="names no subnet"),
    ],
    "subnet_overlap": [
        row(H100, prefixes=["10.0.0.0/16"], says=None),
        row(H100, prefixes=["10.0.0.0/16", "172.16.4.0/24"], says="The network uses 172.16.4.0/24. "),
        row(H100, prefixes=["172.16.0.0/12"], says="uses 172.16.0.0/12"),
        row(H100, prefixes=["172.17.0.0/16"], says=None),
        row(H100, prefixes=["172.16.0.5/24"], says="uses 172.16.0.5/24"),
        row(H100, prefixes=["::/0", "[parameters('x')]"], says=None),
        row(H100, prefixes=[], says=None),
        row(HB, prefixes=["172.16.0.0/16"], says="addressed from 172.16.0.0/16"),
        row(NO_IB, prefixes=["172.16.0.0/16"], says=None),
    ],
}
