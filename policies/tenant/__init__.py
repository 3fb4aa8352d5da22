"""A tenant's policies on a stack before anything is created: initiatives as data, and Azure Policy's files."""
