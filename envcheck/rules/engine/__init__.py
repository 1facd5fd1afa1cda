"""Rules held against a Snapshot: outcomes, causes, pages, and fixes that were simulated."""
