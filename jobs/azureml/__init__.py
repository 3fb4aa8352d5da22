"""Azure ML CLI v2 files: read as they are written, nothing dropped in silence."""
