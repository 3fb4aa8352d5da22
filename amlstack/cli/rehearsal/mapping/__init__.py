"""Files of a user that say what a rehearsal takes from this machine."""
