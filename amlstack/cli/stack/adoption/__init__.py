"""What exists in Azure and becomes a stack's own: found, named, and written as the engine's import file."""
