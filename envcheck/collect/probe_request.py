"""What children are told: the request that every probe is handed, and the order that a child gets first."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def probe_request(
    *, cwd: str, variables: Mapping[str, str], python: Sequence[str] = (), all_envs: bool = False, root: str = "/"
) -> dict[str, Any]:
    """The request of docs/design.md, as JSON has it."""
    return {
        "root": root,
        "cwd": cwd,
        "python": list(python),
        "all_envs": all_envs,
        "own_prefix": sys.prefix,
        "variables": dict(variables),
    }


def working_folder() -> str:
    """The current folder; the root where it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109  a check asks before it has use for pathlib
    except OSError:
        return "/"


def order(
    request: Mapping[str, Any],
    folder: str,
    path: Sequence[str],
    alarm: int,
    prepare: Sequence[str] = (),
    *,
    trial: bool = False,
) -> dict[str, Any]:
    """The first line of an order, as ``bootstrap.py`` describes it."""
    return {
        "request": request,
        "folder": folder,
        "path": path,
        "trial": trial,
        "alarm": alarm,
        "prepare": prepare,
    }
