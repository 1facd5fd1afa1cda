"""The compatibility matrix as typed rows, and one pure function per relation between components."""
