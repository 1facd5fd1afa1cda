"""What rules ask of a Snapshot."""
