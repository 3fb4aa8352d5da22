"""`amlstack check --against`: what a tenant's policies would say to a stack."""
