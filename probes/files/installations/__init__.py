"""Shared by framework readers: the installed package, its compiled parts, and the libraries that it would load."""
