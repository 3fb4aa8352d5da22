"""Resources of any type, as the setting ``ask`` says them: ``[{name, token, props}]``."""

from __future__ import annotations

import pulumi

previous: list[pulumi.Resource] = []
for one in pulumi.Config().require_object("ask"):
    # One after the other, as a stack's jobs come after its clusters.
    options = pulumi.ResourceOptions(depends_on=previous[-1:])
    previous.append(pulumi.CustomResource(one["token"], one["name"], one["props"], options))
