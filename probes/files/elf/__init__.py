"""Untrusted ELF files: tables, dynamic section, exported symbols, and why the loader would refuse them."""
