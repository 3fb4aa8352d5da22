"""Downloads of a job's results: the files that the run keeps by itself, and its named outputs."""
