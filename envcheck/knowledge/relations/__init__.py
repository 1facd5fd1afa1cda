"""One pure function for each relation between components."""
