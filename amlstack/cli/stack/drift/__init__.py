"""Differences between Azure and a stack's state, found without changing either."""
