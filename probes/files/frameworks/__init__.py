"""Readers of installed frameworks, one in each file."""
