"""Existing resources of Azure that a stack takes over: found, named, and written as the engine's import file."""
