"""Run rules on a Snapshot: checks, causes, pages, and fixes verified by simulation."""
