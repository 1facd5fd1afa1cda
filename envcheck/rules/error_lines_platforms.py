"""Error lines about containers, WSL, Jetson, Windows, MIG and peer access."""

from __future__ import annotations

from envcheck.rules.error_line import ErrorLine

PLATFORMS: tuple[ErrorLine, ...] = ()
