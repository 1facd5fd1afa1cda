"""Frameworks as they are installed: one reader a file."""
