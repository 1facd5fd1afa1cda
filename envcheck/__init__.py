"""envcheck: what is on this GPU machine, whether it fits together, and whether it really runs."""

from __future__ import annotations

__version__ = "0.1.0"
