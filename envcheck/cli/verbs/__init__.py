"""The verbs of the command line: a file for each, whose ``run(options)`` returns an exit status.

A verb's module is imported when it is asked for, so that none waits for what another needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace


def run_verb(name: str, options: Namespace) -> int:
    """Carry out the verb ``name``, as ``VERBS`` has it."""
    module, function = {
        "matrix check": ("matrix", "check"),
        "matrix show": ("matrix", "show"),
        "matrix refresh": ("matrix_refresh", "run"),
    }.get(name, (name, "run"))
    status: int = getattr(importlib.import_module(f"{__name__}.{module}"), function)(options)
    return status
