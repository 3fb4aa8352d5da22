"""One proof on disk: its id, and all that it may make, written down before anything is made."""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from amlstack.base import paths
from amlstack.base.files import write_whole

TAG: Final = "amlstack-prove"
"""Tag of every resource of a proof; its value is the id."""
FILE: Final = "proof.json"
STACKS: Final = ("open", "closed")
AGAIN: Final = "again"
"""The stack that imports what ``open`` has, and is forgotten afterwards; it has no group of its own."""
_ID: Final = re.compile(r"p[0-9a-f]{7}")


@dataclass(slots=True)
class Proof:
    """A proof.

    Attributes:
        id: Eight letters and digits, in the name of each resource group and stack.
        folder: Holds everything that it writes.
        subscription: Id of the subscription.
        location: Azure region.
        size: VM size of the two nodes.
        endpoint: Resource manager, ``https://host``.
        steps: Name → ``{"status", "seconds", "seen"}`` of each step that ended, in their order.
        began: Unix time.
    """

    id: str
    folder: Path
    subscription: str
    location: str
    size: str
    endpoint: str
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    began: float = 0.0

    @classmethod
    def new(cls, root: Path, subscription: str, location: str, size: str, endpoint: str) -> Proof:
        """A proof with its file: from now on `--cleanup` knows what it may have made."""
        name = f"p{secrets.token_hex(4)[:7]}"
        made = cls(name, root / name, subscription, location, size, endpoint, began=time.time())
        made.folder.mkdir(parents=True, mode=0o700)
        made.save()
        return made

    @classmethod
    def load(cls, folder: Path) -> Proof:
        """Read a proof from its folder.

        Raises:
            OSError: There is none.
            ValueError: Its file is no proof.
        """
        content = json.loads((folder / FILE).read_text("utf-8"))
        return cls(**{**content, "folder": folder})

    def save(self) -> None:
        """Write the file."""
        content = {**asdict(self), "folder": str(self.folder)}
        write_whole(self.folder / FILE, json.dumps(content, indent=2) + "\n", mode=0o600)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the resource groups that it makes, and no other."""
        return tuple(f"rg-amlstack-prove-{self.id}-{each}" for each in STACKS)

    def group(self, stack: str) -> str:
        """Resource group of ``open`` or ``closed``."""
        return self.groups[STACKS.index(stack)]

    def stack(self, stack: str) -> str:
        """Name of a stack."""
        return f"prove-{self.id}-{stack}"

    def settings_file(self, stack: str) -> Path:
        """Settings of a stack, in the project as the engine wants them; removed at the end."""
        return paths.PROJECT / f"Pulumi.{self.stack(stack)}.yaml"

    @property
    def tags(self) -> dict[str, str]:
        """Tags of everything."""
        return {TAG: self.id}


def root() -> Path:
    """The folder of all proofs of this clone, in the project; ``AMLSTACK_PROOFS`` names another one in it."""
    return Path(os.environ.get("AMLSTACK_PROOFS") or paths.PROJECT / ".amlstack-prove").absolute()


def proofs(folder: Path) -> Iterator[Proof]:
    """The proofs below a folder, oldest first."""
    found = [Proof.load(each.parent) for each in folder.glob(f"*/{FILE}") if _ID.fullmatch(each.parent.name)]
    yield from sorted(found, key=lambda one: one.began)
