"""The security of a workspace: as whom it acts, how it is encrypted, what is recorded, and what is locked."""
