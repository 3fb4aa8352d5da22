"""Clusters as data: the properties that are registered, and what they ask of a subscription's quota."""
