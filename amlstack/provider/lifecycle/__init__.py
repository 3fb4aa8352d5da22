"""What becomes of a run when its job is edited, declared again, moved off its ground or removed."""
