"""The workspace's network as resources: the managed one, and the team's own with its private endpoints."""
