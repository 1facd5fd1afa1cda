"""Formats of a fleet report: one file each, with ``render(fleet, options)``."""
