"""Shared by all probes: bounded reads below a root, records, and messages to the parent."""
