"""What a tenant's policies say to a stack before anything is created: initiatives as data, and Azure Policy's files."""
