"""What `check` and `show` print of job files, and which of them changes touch."""
