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
    # PyPI's unrelated envcheck installs a module into the same place, and takes it away with itself.
    import envcheck

    if "require" not in getattr(envcheck, "__all__", ()):
        place = __file__.removesuffix("cli/__init__.py") + "__init__.py"
        sys.stderr.write(
            f"envcheck: another distribution replaced or removed {place}; the one that is named envcheck is unrelated."
            " Run: pip uninstall envcheck; pip install --force-reinstall --no-deps gpu-envcheck\n"
        )
        sys.exit(4)
    from envcheck.cli.main import program as run

    run()
