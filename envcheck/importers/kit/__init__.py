"""Shared code of the importers."""
