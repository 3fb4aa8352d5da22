"""Programs that run on the nodes beside the user's code: standard library only, Python 3.8 and later.

``amlnode.rank`` finds a process's rank, ``python -m amlnode launch`` starts a node's ranks, ``preflight`` judges the
nodes before the expensive part, ``bandwidth`` measures all-reduce and names a slow node.
"""

from __future__ import annotations
