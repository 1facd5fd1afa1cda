"""The verbs of the command line, as functions of their options that return an exit status.

A verb's module is imported when it is asked for, so that none waits for what another needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace

_PLACES = {
    **{name: ("shipped", name) for name in ("collect", "completion", "rule", "schema")},
    "fleet history": ("fleet", "tell_history"),
    "init": ("config", "init"),
    "serve": ("tui", "serve"),
    "matrix check": ("matrix", "check"),
    "matrix show": ("matrix", "show"),
    "matrix refresh": ("matrix_update", "refresh"),
    "matrix status": ("matrix_update", "status"),
    "matrix update": ("matrix_update", "update"),
}
"""Module and function of the verbs that are not ``run`` of the module of their name."""


def run_verb(name: str, options: Namespace) -> int:
    """Carry out the verb ``name``, as ``VERBS`` has it."""
    module, function = _PLACES.get(name, (name, "run"))
    status: int = getattr(importlib.import_module(f"{__name__}.{module}"), function)(options)
    return status
