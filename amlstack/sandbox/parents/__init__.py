"""Jobs that have children: pipelines with their steps, sweeps with their trials.

A parent has no process of its own. All it knows stands in the store: its body, its children's records, what they
logged. `progress.advance` looks at that and does what is due, so that a restarted server takes over where the last one
was killed. A child is a job like any other: it waits for nodes, has a runner, a folder and logs.
"""
