"""``python -m amlnode VERB``: what runs on the nodes beside the training."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from amlnode.rank import NodeError, resolve

VERBS = {
    "rank": ("who this process is among the job's, as JSON", None),
    "launch": ("start the ranks of this node", "amlnode.launch"),
    "preflight": ("judge the nodes before the expensive part", "amlnode.preflight.main"),
    "bandwidth": ("measure all-reduce and name a slow node", "amlnode.bandwidth.main"),
    "deepspeed": ("DeepSpeed's own launcher over the job's nodes, autotuning too, without ssh", "amlnode.remote.main"),
    "write": ("write aml_mpienv.py and launch.py as single files", "amlnode.bundle"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; 2 for wrong use or contradictory surroundings."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    verb = words[0] if words else "--help"
    if verb in ("-h", "--help"):
        print("usage: python -m amlnode VERB …\n")
        print("\n".join(f"  {name:<10} {what}" for name, (what, _) in VERBS.items()))
        return 0
    if verb not in VERBS:
        print(f"amlnode: there is no verb `{verb}`; there are {', '.join(VERBS)}", file=sys.stderr)
        return 2
    try:
        module = VERBS[verb][1]
        if module is None:
            print(json.dumps(asdict(resolve()), indent=1))
            return 0
        return int(importlib.import_module(module).main(words[1:]))
    except NodeError as error:
        print(f"amlnode {verb}: {error}", file=sys.stderr, flush=True)
        return 2


if __name__ == "__main__":
    sys.exit(main())
