"""What can be wrong with one job on one target, beside the rules on sizes; each check yields findings."""
