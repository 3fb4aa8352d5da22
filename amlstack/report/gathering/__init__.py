"""A job of the sandbox, or a folder of logs → the content of a report."""
