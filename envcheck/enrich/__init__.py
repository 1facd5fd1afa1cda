"""Add inferred facts to a Snapshot, from the matrix and from its other facts. Added facts are marked."""
