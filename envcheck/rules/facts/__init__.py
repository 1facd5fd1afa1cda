"""Questions that several rules ask about a Snapshot."""
