"""The workspace's network as plain values: modes, outbound rules, security rules, endpoints, and what contradicts.

Needs no Pulumi; ``infra.components.workspace.workspace`` registers what is composed here.
"""
