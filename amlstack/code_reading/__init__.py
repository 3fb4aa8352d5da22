"""Reading commands and code, to know beforehand how they start and end: nothing is run, nothing is imported."""
