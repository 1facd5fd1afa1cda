"""What stands for a name in a redacted report."""

from __future__ import annotations

HOST = "host"
HOME = "/home/user"
"""The home folder of the report's first user."""
HIDDEN_GPU = "redacted-"
"""What the pseudonym of a GPU has after ``GPU-``."""
IP = "ip-"
SERIAL = "serial-"
