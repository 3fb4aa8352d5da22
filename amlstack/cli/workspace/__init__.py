"""A workspace and its jobs from the command line: where it is, what runs there, its logs, files and verdicts."""
