"""The name under which an entry script finds the service's helpers."""
