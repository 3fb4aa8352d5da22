"""The life of a run after its job is edited, declared again, replaced or removed."""
