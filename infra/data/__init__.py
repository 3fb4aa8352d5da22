"""Datastores and data assets of a stack: what the settings mean, and which of them a job names."""
