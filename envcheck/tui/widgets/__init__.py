"""Widgets and texts that the screens share."""
