"""Prints the rank that Open MPI gave this process, and how many there are."""

import os

print("rank", os.environ["OMPI_COMM_WORLD_RANK"], "of", os.environ["OMPI_COMM_WORLD_SIZE"])
