"""Resources of what settings put into the workspace beside clusters and jobs."""
