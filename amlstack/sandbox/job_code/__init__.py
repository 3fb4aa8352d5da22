"""What a job's code does that a rehearsal has to know beforehand, found by reading it; nothing is imported."""

from amlstack.sandbox.job_code.downloads import Download, of_command, read
from amlstack.sandbox.job_code.imports import missing
from amlstack.sandbox.job_code.outside_programs import Program, programs

__all__ = ["Download", "Program", "missing", "of_command", "programs", "read"]
