"""The command line: options, verbs, and where a report goes."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def program() -> NoReturn:
    """The installed program. Nothing else is imported before it has put what PYTHONPATH adds behind everything else: a
    ``random.py`` there is for the user's programs, which are judged with it.
    """
    if not sys.flags.ignore_environment:
        absolute = os.path.abspath  # pathlib may be the user's
        added = {absolute(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
        added.discard(absolute(f"{__file__}/../../.."))  # envcheck itself may come from there
        sys.path.sort(key=lambda entry: absolute(entry) in added)
    from envcheck.cli.main import program as run

    run()
