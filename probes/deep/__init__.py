"""Probes of kind *deep*: trials of what is installed, in the environment's own interpreter."""
