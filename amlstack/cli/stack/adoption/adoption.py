"""What of an estate a stack takes over, what has to be written first, and what stays outside."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from amlstack.base.files import write_whole
from amlstack.cli.stack.adoption import wanted
from amlstack.cli.stack.adoption.import_file import ImportFile

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.cli.progress import Progress
    from amlstack.cli.stack.adoption.estate import Body, Estate
    from infra.names import Names
    from infra.settings import Reading, Settings


@dataclass(frozen=True)
class Adoption:
    """An estate and the settings of the stack that takes it over.

    Attributes:
        progress: Where what was found is printed.
        reading: The stack's settings with their places.
        settings: The same without a fault.
        names: Where they look.
        found: What Azure has there.
        stack: The stack's name.
        answer: Where settings to write are printed.
        provider: URN of the stack's second provider, where the workspace lies in another subscription.
    """

    progress: Progress
    reading: Reading
    settings: Settings
    names: Names
    found: Estate
    stack: str
    answer: TextIO
    provider: str | None = None

    def write(self, output: Path) -> int:
        """Write the import file, or print the settings that have to be written first.

        Returns:
            0 when the file is written, else 1.
        """
        if self.found.group is None or self.found.workspace is None:
            group = self.found.group is None
            what = f"resource group `{self.names.group}`" if group else f"workspace `{self.names.workspace}`"
            self.progress.fail(
                f"there is no {what} in subscription {self.names.subscription}: write `amlstack:resource_group` and "
                "`amlstack:workspace` as Azure has them"
            )
            return 1
        owned = not self.settings.workspace.existing
        adopted = self.settings.workspace.adopted
        if owned and wanted.differs(self.found, self.names, adopted=adopted):
            self._advise(whole=True)
            self.progress.fail("nothing was written: write the settings above first, then run the same command again")
            return 1
        if self._undeclared and not self.settings.clusters:
            self._advise(whole=False)
        file = ImportFile(self.provider)
        if owned:
            given = self.settings.resource_group
            owns_group = not (given and given.existing)
            file.workspace(self.found, self.names, self.settings.workspace.name, owns_group=owns_group)
        declared = [one.name for one in self.settings.clusters]
        file.clusters({name: str(self._there[name.lower()]["id"]) for name in declared if name.lower() in self._there})
        schedules = {str(one["name"]): str(one["id"]) for one in self.found.schedules}
        mine = self._declared_schedules() if schedules else set()
        file.schedules({name: schedule_id for name, schedule_id in schedules.items() if name in mine})
        write_whole(output, json.dumps(file.content, indent=2) + "\n")
        self.progress.done(f"{len(file.ids)} resources in {output}")
        self._name_the_rest(set(schedules) - mine)
        if self.provider:
            self.progress.note(
                f"first: pulumi up --stack {self.stack} --target '{self.provider}' --yes, which makes the provider of "
                f"subscription {self.names.subscription} and nothing in Azure"
            )
        self.progress.note(
            f"next: pulumi import --file {output} --stack {self.stack} --yes --protect=false --generate-code=false, "
            f"then pulumi preview --stack {self.stack}, which shows no change of what was imported"
        )
        return 0

    @cached_property
    def _there(self) -> dict[str, Body]:
        """Clusters by their names in lower case, which Azure does not tell apart."""
        return {str(one["name"]).lower(): one for one in self.found.computes if wanted.is_cluster(one)}

    @property
    def _undeclared(self) -> list[Body]:
        declared = {one.name.lower() for one in self.settings.clusters}
        return [body for name, body in self._there.items() if name not in declared]

    def _declared_schedules(self) -> set[str]:
        """Names of the schedules in the stack's job files."""
        from amlstack.catalog import clock
        from infra.declaration import declare

        return {run.name for run in declare(self.reading, on=clock.today()).runs if run.is_schedule}

    def _advise(self, *, whole: bool) -> None:
        """Print the settings of what there is."""
        import yaml

        text: dict[str, object] = {}
        if whole:
            text["amlstack:resource_group"] = self.names.group
            text["amlstack:workspace"] = wanted.workspace(self.found, self.names)
        if self._undeclared:
            text["amlstack:clusters"] = [wanted.cluster(one, self.settings.location) for one in self._undeclared]
        self.progress.step(f"the settings of what there is, for Pulumi.{self.stack}.yaml under `config:`")
        self.answer.write(yaml.safe_dump(text, sort_keys=False, width=120))

    def _name_the_rest(self, schedules: set[str]) -> None:
        """What is declared and absent, and what is there and stays outside."""
        note = self.progress.note
        for one in self.settings.clusters:
            if one.name.lower() not in self._there:
                note(f"cluster `{one.name}` is declared and not there: `up` creates it")
            elif not one.adopted:
                note(f"cluster `{one.name}` has no `adopted: true`: `up` changes what its settings do not say")
        for body in self._undeclared:
            note(f"cluster `{body['name']}` is there and not declared: it stays outside the stack")
        for body in self.found.computes:
            if not wanted.is_cluster(body):
                note(f"compute `{body['name']}` is no cluster: it stays outside the stack")
        for name in sorted(schedules):
            note(f"schedule `{name}` is there and not declared: it stays outside the stack")
