"""The verbs of the command line: one file a verb, each with ``run(options)`` that returns an exit status.

A verb's module is imported when it is asked for, so that none waits for what another needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace


def run_verb(name: str, options: Namespace) -> int:
    """Carry out the verb ``name``, one that ``options.parse`` knows."""
    module = importlib.import_module(f"{__name__}.{name}")
    status: int = module.run(options)
    return status
