"""Become the program of a node that measures together with others (``probes/measuring/nccl/node.py``)."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from envcheck import bundle
from envcheck.collect.bench import CHILD_VARIABLES
from envcheck.collect.bench_plan import Bench, choose, request_of
from envcheck.collect.request import order, own_path
from envcheck.collect.starting import ISOLATED, bootstrap, own_variables
from envcheck.snapshot import Snapshot

_PROGRAM = "measuring.nccl.node"
_ALARM = 24 * 3600
"""Seconds after which it ends in any case: before that, at the end of its stdin."""


def become_node(gathered: Snapshot, request: Mapping[str, Any], wish: Bench) -> NoReturn:
    """Replace this process by the program: it answers on this process's stdout, and takes orders from its stdin.

    Raises OSError where that fails.
    """
    chosen = choose(gathered, wish)
    asked = {**request_of(wish, chosen, gathered), "refused": dict(chosen.refused)}
    orders = tempfile.TemporaryFile()  # noqa: SIM115  the program reads it
    told = order({**request, "bench": asked}, str(bundle.folder("probes")), own_path(), _ALARM)
    orders.write(msgspec.json.encode(told) + b"\n" + _PROGRAM.encode() + b"\n")
    orders.seek(0)
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    for descriptor in (answers, orders.fileno()):
        os.set_inheritable(descriptor, True)
    argv = [sys.executable, *ISOLATED, "-c", bootstrap(), str(answers), str(orders.fileno())]
    os.chdir("/")
    os.execve(sys.executable, argv, {**own_variables(), **CHILD_VARIABLES})  # noqa: S606  no shell
