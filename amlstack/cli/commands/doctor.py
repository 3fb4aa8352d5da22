"""``amlstack doctor``: the first answer to "it does not work"."""

from __future__ import annotations

from dataclasses import asdict

from amlstack.cli.console import Json, print_json, say
from amlstack.cli.workspace.options import AskedWorkspace


def doctor(asked: AskedWorkspace, *, as_json: Json = False) -> int:
    """Look at this machine and, for a stack or a workspace, at the way to Azure.

    The machine: Python, engine, Open MPI, disk, folders, the sandbox. Azure: sign-in, subscription, resource providers,
    your rights, quota for the stack's clusters, and whether this machine reaches the workspace's hosts, by a public or
    by a private address. It changes nothing.

    Exit status: 0 nothing is wrong, 1 something is, 2 there is no such workspace.

    Examples:
        amlstack doctor

        amlstack doctor --stack prod

        amlstack doctor --workspace research --resource-group rg --subscription ID --json
    """
    from amlstack.cli import doctor as looked
    from amlstack.cli.workspace import refusals

    found = list(looked.machine())
    if asked.any:
        with refusals.opened(asked) as (place, _):
            settings = None
            if asked.stack:
                from amlstack.cli.stack_files import read_settings

                settings = read_settings(asked.stack).settings
            found += looked.azure(place, settings)
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        width = max(len(each.name) for each in found)
        for each in found:
            say(f"{each.state} {each.name:<{width}}  {each.seen}")
            if each.remedy:
                say(f"{'':<{width + 4}}{each.remedy}")
    return 1 if any(each.state is looked.Mark.BAD for each in found) else 0
