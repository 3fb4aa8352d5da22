"""One component per entry of the setting ``boxes``; it needs no provider, so that only the engine itself is at work."""

from __future__ import annotations

import pulumi


class Box(pulumi.ComponentResource):
    """A named thing with a content."""

    def __init__(self, name: str, content: str) -> None:
        super().__init__("scenario:index:Box", name, {"content": content})
        self.register_outputs({"content": content})


config = pulumi.Config()
boxes: dict[str, str] = config.get_object("boxes") or {}
for name, content in boxes.items():
    if not content:
        raise pulumi.RunError(f"box {name} is empty; give it a content")
    Box(name, content)

pulumi.export("names", sorted(boxes))
pulumi.export("password", pulumi.Output.secret("swordfish"))
