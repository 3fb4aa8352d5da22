"""The logs of a job: read line by line, copied from a workspace, followed to the end of the job."""
