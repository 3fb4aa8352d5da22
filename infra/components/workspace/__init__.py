"""The workspace and what it stands on, a module for each noun.

A part that another room adds is a function that takes a `Place` and registers it, called in `workspace.py`.
"""

from infra.components.workspace.existing_workspace import AnyWorkspace, ExistingWorkspace, provider_of
from infra.components.workspace.parts import moved
from infra.components.workspace.workspace import StackWorkspace

__all__ = ["AnyWorkspace", "ExistingWorkspace", "StackWorkspace", "moved", "provider_of"]
