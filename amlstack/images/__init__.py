"""Stand-ins for Azure ML's images: Python environments on this machine, built on first use.

Each ``data/*.toml`` names the curated environments and images that it stands in for and what it installs, in exact
versions; for an environment of one's own the stand-in is read from what that declares. `environments.answer` says
whether an environment can be had, `building.build` makes it in the user's cache.
"""
