"""Modules that the code imports and the environment has not, each with the lines that bring it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from amlstack.base.paths import is_dir
from amlstack.cli.rehearsal.feasibility.aspect import Aspect
from amlstack.code_reading import shell
from amlstack.sandbox import images

if TYPE_CHECKING:
    from collections.abc import Iterator

    import jobs
    from amlstack.sandbox.images import EnvironmentAnswer


def aspects(place: str, part: jobs.Plan, answer: EnvironmentAnswer, named: str) -> Iterator[Aspect]:
    """What is missing in an environment that is built; nothing where the job itself installs packages.

    Args:
        place: The part's place.
        part: The part.
        answer: Its environment.
        named: The environment as the job names it.
    """
    from amlstack.code_reading import imports
    from amlstack.sandbox.runner import pip_layer

    code, command = part.job.code, part.enriched.command
    built = images.ready(answer.standin) if answer.standin is not None else None
    if built is None or code is None or not code.local or not is_dir(folder := part.base / code.path):
        return
    scripts = shell.scripts(command)
    if not scripts or pip_layer.wanted(command, folder):
        return
    of_image = {module.split(".")[0] for each in answer.absent for module in each.modules}
    for each in imports.missing(folder, scripts, built):
        whose = "the image has it, its stand-in has not" if each.module in of_image else "its stand-in has not"
        key = json.dumps(named, ensure_ascii=False)
        package = json.dumps(images.package_of(each.module))
        yield Aspect(
            "environment",
            "note",
            f"`import {each.module}` will fail: {whose}. To bring it, write into rehearsal.toml: `[stand_in.{key}]`, "
            f"below it `like = {key}` and `requirements = [{package}]`",
            "",
            (place,),
            str(folder / each.path),
            each.line,
        )
