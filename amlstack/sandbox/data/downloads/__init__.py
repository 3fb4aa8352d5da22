"""What a client downloads of a job: the files that the run keeps by itself, and its named outputs."""
