"""Rules on jobs: environment, processes, memory, fabric, timeout, secrets."""

from __future__ import annotations

from policies.checks.job import (
    data_class,
    environment_pin,
    environment_source,
    fabric_off,
    gpus_idle,
    job_timeout,
    privileged,
    processes,
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
    data_class.RULE,
    job_timeout.RULE,
    secret.RULE,
    privileged.RULE,
)
