"""Fixes: commands in the words of the machine's own installer, printed and never run."""
