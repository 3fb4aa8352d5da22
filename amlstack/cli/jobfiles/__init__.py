"""The text that `check` and `show` print of job files, and the job files that a change touches."""
