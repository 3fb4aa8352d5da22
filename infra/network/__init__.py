"""The workspace's network as plain values: modes, outbound rules, security rules, endpoints, and what contradicts.

Needs no Pulumi; ``infra.components.workspace.network`` registers what is composed here.
"""
