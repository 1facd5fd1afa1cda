"""Error lines about Python packages and extensions that do not fit together."""

from __future__ import annotations

from envcheck.rules.error_line import ErrorLine

PACKAGES: tuple[ErrorLine, ...] = ()
