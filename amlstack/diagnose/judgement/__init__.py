"""Events → a verdict."""
