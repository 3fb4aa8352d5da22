"""The runner: one process per job that keeps Azure ML's launch contract with real processes.

``python -m amlstack.sandbox.runner HOME JOB`` is started by the scheduler and outlives it. It fetches the code, builds
the environment, starts one agent per node, which starts that node's ranks, and writes the job's status and report.
"""
