"""The security of a stack's workspace: its defaults, what it is on the wire, what is wrong with it."""

from infra.security.defaults import SANDBOX, Security, is_protected, of_stack, sku

__all__ = ["SANDBOX", "Security", "is_protected", "of_stack", "sku"]
