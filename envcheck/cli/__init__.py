"""The command line: options, verbs, and where a report goes."""
