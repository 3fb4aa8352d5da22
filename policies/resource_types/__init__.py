"""Which types of resources name VM sizes or hold templates: what the pack judges, and why it leaves the others."""
