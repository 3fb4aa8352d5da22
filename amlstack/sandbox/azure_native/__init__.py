"""A thin stand-in for the azure-native plugin: the engine's calls become ARM REST calls to the sandbox.

It plans, names, refuses and records as the real plugin does, for the types in ``types.json``, and it speaks to a
loopback address only.
"""
