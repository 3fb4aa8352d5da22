"""What settings put into the workspace beside clusters and jobs: datastores, data assets, and who gets which role."""
