"""Finds, fetches or builds the Pulumi engine; ``python3 tools/engine`` prints the folder to put first on PATH.

Standard library only: it runs before the project's environment exists, on any Python from 3.11.

Three sources, in this order:

1. ``path``: a ``pulumi`` and its Python language host that are already on PATH, if they are recent enough and start.
2. ``release``: the pinned official release, its SHA-256 verified. Never a piped script.
3. ``build``: the same version built from Go modules whose go.sum is committed in ``modules/``.

The last two are kept in the user's cache, ``<cache>/engine/<version>-<source>-<recipe>/``, and once there they need
neither network nor Go. ``README.md`` in this folder says what each of them protects against.
"""
