"""``python -I -m envcheck``: without ``-I``, Python imports from the working folder first, whoever filled it."""

from __future__ import annotations

from envcheck.cli import program

if __name__ == "__main__":
    program()
