"""What brings the answers of nodes: one file each, with ``answers``. Each engine is one that people already run."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from envcheck.fleet.examine import Answer


def chosen_engine(options: Namespace) -> tuple[str, Iterable[Answer]]:
    """The engine that ``options`` name, and its answers; raise UsageError where it cannot start."""
    from envcheck.fleet.engines import reports  # noqa: PLC0415  an engine is imported when it is asked for

    if not options.reports:
        raise UsageError("name what brings the reports, such as --reports FOLDER; see envcheck fleet --help")
    return "reports", reports.answers(options.reports)
