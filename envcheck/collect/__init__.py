"""Find the probes, run them in child processes, and turn every way to die into a row."""
