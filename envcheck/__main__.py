"""``python -m envcheck``."""

from __future__ import annotations

from envcheck.cli.main import program

if __name__ == "__main__":
    program()
