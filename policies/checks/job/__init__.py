"""Rules on jobs: environment, processes, memory, fabric, timeout, secrets."""

from __future__ import annotations

from policies.checks.job import (
    environment_pin,
    environment_source,
    fabric_off,
    gpus_idle,
    image_runs,
    job_timeout,
    nebula_gone,
    processes,
    restart_checkpoint,
    secret,
    shared_memory,
    spot_checkpoint,
)

RULES = (
    environment_source.RULE,
    environment_pin.RULE,
    processes.RULE,
    gpus_idle.RULE,
    shared_memory.RULE,
    fabric_off.RULE,
    spot_checkpoint.RULE,
    restart_checkpoint.RULE,
    image_runs.RULE,
    nebula_gone.RULE,
    job_timeout.RULE,
    secret.RULE,
)
