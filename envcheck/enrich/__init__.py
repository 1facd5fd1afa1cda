"""Add to a Snapshot what follows from the matrix and from other facts of it; what is added says so."""
