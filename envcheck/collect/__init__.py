"""Find the probes, run them in children of their own, and turn every way to die into a row."""
