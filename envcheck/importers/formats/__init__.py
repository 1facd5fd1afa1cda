"""Importers of what tools, programs and people print and write, each with the facts of one subject."""
