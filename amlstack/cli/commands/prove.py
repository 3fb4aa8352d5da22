"""``amlstack prove``: the first real subscription, walked through once, recorded and held against the sandbox."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.cli.console import Yes, confirmed, end, on_a_terminal, say

if TYPE_CHECKING:
    from amlstack.prove.recorder import ProvenAzure

Subscription = Annotated[str, typer.Option(metavar="ID", help="Id of the subscription that pays.")]
Location = Annotated[str, typer.Option(metavar="REGION", help="Azure region, e.g. westeurope.")]
Only = Annotated[
    list[str] | None, typer.Option(metavar="STEP", help="Only this step and what it needs; may be repeated.")
]
VmSize = Annotated[str, typer.Option(metavar="NAME", help="Other nodes than the cheapest CPUs: GPUs, InfiniBand.")]
Clean = Annotated[bool, typer.Option("--cleanup", help="Delete what proofs left behind, and prove that it is gone.")]
Against = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A recording of the walk on the sandbox, in place of a new one.")
]
NOT_ASKED = "nothing was made: there is no terminal to ask on, and `--yes` was not given"


def prove(
    *,
    subscription: Subscription = "",
    location: Location = "",
    only: Only = None,
    size: VmSize = "",
    clean: Clean = False,
    against: Against = None,
    yes: Yes = False,
) -> int:
    """Walk through a stack's life on a real subscription, record it, and compare the sandbox with it.

    For the first person who has a subscription. It says what it will make and what that costs (less than 5 USD, less
    than an hour), and asks. It makes workspaces open and closed, a cluster of two CPU nodes, an environment, data,
    jobs by torchrun and by mpirun, a sweep, a pipeline, a schedule; edits, cancels, looks for drift, assigns policies,
    and destroys all of it. It records every exchange without tokens, keys, signatures and the subscription's id.

    The same walk is then played on a sandbox. One page says what was alike, what differed, which questions are
    answered. Everything lies in resource groups of its own, which are written down before they are made and deleted at
    the end, also after Ctrl-C. After a kill, `amlstack prove --cleanup` does it, and proves it.

    Exit status: 0 all steps saw what they must, 1 a step failed or something is left, 2 wrong use, 130 Ctrl-C.

    Examples:
        az login && amlstack prove --subscription ID --location westeurope

        amlstack prove --subscription ID --location westeurope --only policy --yes

        amlstack prove --cleanup
    """
    from amlstack.prove.proof import root
    from amlstack.prove.walk import STEPS
    from amlstack.provider.arm import ArmError

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    steps = tuple(only or ())
    if wrong := [name for name in steps if name not in STEPS]:
        end(f"there is no step {', '.join(wrong)}; there are: {', '.join(STEPS)}")
    try:
        if clean:
            return _cleanup(root())
        if not subscription or not location:
            end("name --subscription and --location, or give --cleanup")
        return _prove(root(), subscription, location, size=size, steps=steps, against=against, yes=yes)
    except ArmError as error:
        end(str(error), 1)
    except KeyboardInterrupt:
        end("interrupted; `amlstack prove --cleanup` shows that nothing is left", 130)


def _target(subscription: str) -> ProvenAzure:
    """The Azure of the person who is signed in."""
    import os

    from amlstack.prove.recorder import ProvenAzure
    from amlstack.provider import arm

    sign_in = arm.SignIn.read({})
    tenant = sign_in.values.get("tenantId") or os.environ.get("AZURE_TENANT_ID", "")
    return ProvenAzure(arm.endpoint(None, sign_in.cloud), subscription, sign_in.credential(sign_in.cloud), tenant)


def _prove(
    root: Path, subscription: str, location: str, *, size: str, steps: tuple[str, ...], against: Path | None, yes: bool
) -> int:
    from amlstack.catalog import clock, sizes
    from amlstack.prove import page, proving
    from amlstack.prove.proof import Proof

    chosen = sizes.get(size) if size else page.cheapest(location, clock.today())
    if chosen is None:
        end(f"the catalogue knows no size {size}" if size else "the catalogue knows no fitting size")
    cost = page.estimate(chosen, location)
    if cost >= page.MOST and not size:
        end(f"{chosen.name} in {location} would cost {cost:.2f} USD: name a smaller one with --size")
    target = _target(subscription)
    shown = Proof("p0000000", root, subscription, location, chosen.name, target.upstream)
    for line in page.announcement(shown, chosen, steps):
        say(line.replace(shown.id, "<run>"))
    if not yes and not (on_a_terminal() and confirmed(f"Make this in {subscription}?")):
        end(*((NOT_ASKED, 2) if not on_a_terminal() else ("nothing was made", 1)))
    pulumi = proving.find_engine()
    proof = Proof.new(root, subscription, location, chosen.name, target.upstream)
    say(f"proof {proof.id}: {proof.folder}")
    good, left = proving.on_azure(proof, pulumi, target, steps, say)
    if against is None:
        say("the same on a sandbox")
        against = proving.on_sandbox(proof, pulumi, steps, lambda line: say(f"  {line}"))
    written, differ = proving.compared(proof, against, left)
    say(f"{differ} facts differ from the sandbox: {written}")
    for each in left:
        say(f"left: {each}", err=True)
    return 0 if good and not left else 1


def _cleanup(root: Path) -> int:
    """Each proof of this clone: delete, look, and say."""
    from amlstack.prove import proving
    from amlstack.prove.proof import proofs
    from amlstack.provider.arm import ArmClient

    left: list[str] = []
    for proof in proofs(root):
        say(f"proof {proof.id}: {', '.join(proof.groups)}")
        left += proving.ended(ArmClient(proof.endpoint), proof, lambda line: say(f"  {line}"))
    for each in left:
        say(f"left: {each}", err=True)
    if not left:
        say("nothing is left: every group of every proof answers 404")
    return int(bool(left))
