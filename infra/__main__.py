"""The program that `pulumi up` runs."""

import re
import sys

if len(sys.argv) == 2 and re.fullmatch(r"127\.0\.0\.1:\d+", sys.argv[1]):
    # An older Python host, as the engine has it that is built here, runs the program in place of a policy pack that is
    # named by its folder: what it was given is the address of an engine.
    sys.exit(
        "This engine's Python host cannot start a policy pack from its folder. "
        'Name it as an executable: --policy-pack "$PWD/policies/analyzer" (docs/reference/policies.md).'
    )

from amlstack.base import startup

startup.leave_out_plugins()  # before anything imports pydantic

from infra.program import main  # noqa: E402

main()
