"""Verbs on jobs of a workspace, on Azure or on the sandbox."""
