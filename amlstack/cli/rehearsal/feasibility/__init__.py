"""Whether a job can be rehearsed on this machine: found out from files, without starting or writing anything.

`judge` answers for `amlstack rehearse --dry-run`; what it finds to be in the way stops the rehearsal itself too.
"""

from __future__ import annotations

from amlstack.cli.rehearsal.feasibility.aspect import Aspect, Feasibility
from amlstack.cli.rehearsal.feasibility.judgement import judge, obstacles

__all__ = ["Aspect", "Feasibility", "judge", "obstacles"]
