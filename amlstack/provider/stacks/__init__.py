"""Resources for the stack itself: its id, and the guard of its active runs."""
