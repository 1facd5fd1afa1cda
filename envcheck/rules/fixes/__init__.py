"""Fixes: commands for the installer that the machine uses. They are printed and never run."""
