"""Files of logs → events: which files, their lines, prefixes, times, tracebacks and tables."""
