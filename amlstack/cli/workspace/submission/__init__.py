"""A job file submitted to a workspace as `pulumi up` would submit it: judged, registered and named by the same code."""
