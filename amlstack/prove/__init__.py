"""A first subscription proven: one walk through the life of a stack, recorded, and held against the sandbox."""
