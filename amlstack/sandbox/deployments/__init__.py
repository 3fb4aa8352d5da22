"""Deployments of ARM templates to a resource group: azure-ai-ml makes workspaces with one."""
