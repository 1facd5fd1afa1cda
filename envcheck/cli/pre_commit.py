"""The pre-commit hook: ``envcheck check`` with the file names that pre-commit appends to its arguments.

``--plan`` takes one file, so that what follows it stays readable; pre-commit can only append names. A program of its
own keeps ``envcheck check FILE`` an error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from envcheck.cli.main import main
from envcheck.errors import UsageError

if TYPE_CHECKING:
    from typing import NoReturn


def program() -> NoReturn:
    """What the command ``envcheck-pre-commit`` runs: exit statuses are those of ``envcheck check``."""
    sys.exit(main(check_of_plans(sys.argv[1:])))


def check_of_plans(arguments: Sequence[str]) -> list[str]:
    """The command line that checks the files at the end of ``arguments``, all of them as one environment.

    Without a file, or with an unknown option, it is one that ``envcheck`` refuses with exit status 2.
    """
    from envcheck.cli.parser import grammar

    whole = ["check", *arguments]
    try:
        files: list[str] = grammar().parse_known_args(whole)[1]
    except UsageError:
        return whole  # main says what is wrong
    if not files:
        return [*whole, "--plan="]  # never the machine at hand instead of a file
    if whole[-len(files) :] != files or any(name.startswith("-") for name in files):
        return whole
    return [*whole[: -len(files)], *(f"--plan={name}" for name in files)]
