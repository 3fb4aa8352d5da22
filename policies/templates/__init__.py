"""ARM templates: what a template deploys, its expressions worked out from what is beside them.

Nothing here asks Azure: what only a deployment knows (its subscription, other resources, the clock) stays unresolved
and is named, so that the caller can refuse it.
"""
