"""Prints the rank of this process, and how many there are."""

import os

print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])
