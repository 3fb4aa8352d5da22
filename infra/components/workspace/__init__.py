"""The workspace and what it stands on, a module for each noun.

A part that another room adds is a function that takes a `PartContext` and registers it, called in `workspace.py`.
"""

from infra.components.workspace.existing_workspace import ExistingWorkspace
from infra.components.workspace.workspace import StackWorkspace

__all__ = ["AnyWorkspace", "ExistingWorkspace", "StackWorkspace"]

AnyWorkspace = StackWorkspace | ExistingWorkspace
"""A workspace of the stack, or one that exists."""
