"""The framework readers, and their results for an environment.

One more framework is one file ``probes/files/frameworks/NAME.py``. Its first 4096 bytes declare ``IMPORTS``, the names
of packages that its import takes, and ``DISTRIBUTIONS``, the normalised names of the distributions (PyPI's and conda's)
that hold them; both are tuples of plain strings. ``ORDER`` is lower where others build on it.
``read(site, distributions)`` returns a ``Framework``, as the Snapshot describes it, for each one that is installed.

The declarations are read without an import. The file is imported only where one of these names lies on the search path
or is installed.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.tasks import run_tasks
from ..python.site import Site

if TYPE_CHECKING:
    from typing import TypeAlias

Record: TypeAlias = "dict[str, Any]"
Reader: TypeAlias = "Callable[[Site, tuple[str, ...]], list[Record]]"

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "frameworks")
_TUPLE = re.compile(r"^(IMPORTS|DISTRIBUTIONS) = \(([^)]*)\)$", re.MULTILINE)
_ORDER = re.compile(r"^ORDER = (\d)$", re.MULTILINE)
_STRING = re.compile(r'"([^"]+)"')
_HEAD = 4096
"""The declarations must be in this many first bytes of a file."""
_ALONE = 0
"""The ORDER of readers that run before all others, which use their results."""
_USUAL = 2


class ReaderFile(NamedTuple):
    """A file in ``probes/files/frameworks`` and what it declares."""

    order: int
    module: str
    imported: tuple[str, ...]
    distributions: tuple[str, ...]


def kinds(folder: str) -> tuple[ReaderFile, ...]:
    """The framework readers in a folder, first by their ORDER, then by name; raises ValueError where one declares
    nothing.
    """
    found = []
    for name in os.listdir(folder):
        module, extension = os.path.splitext(name)
        if extension != ".py" or module.startswith("_"):
            continue
        with open(os.path.join(folder, name), "rb", buffering=0) as file:
            text = file.read(_HEAD).decode("utf-8", "replace")
        declared = {field: tuple(_STRING.findall(items)) for field, items in _TUPLE.findall(text)}
        if not all(declared.get(field) for field in ("IMPORTS", "DISTRIBUTIONS")):
            raise ValueError(f"the framework reader {name} declares no IMPORTS or no DISTRIBUTIONS")
        order = _ORDER.search(text)
        found.append(
            ReaderFile(int(order[1]) if order else _USUAL, module, declared["IMPORTS"], declared["DISTRIBUTIONS"])
        )
    return tuple(sorted(found))


KINDS = kinds(_FOLDER)

DETAILED = frozenset(name for kind in KINDS for name in kind.distributions)
"""Normalised names of the distributions whose requirements are needed."""


def frameworks(site: Site) -> list[Record]:
    """The frameworks of one environment."""
    return frameworks_and(site)[0]


def frameworks_and(site: Site, *further: Callable[[], Any]) -> tuple[list[Record], list[Any]]:
    """The frameworks of one environment, and the results of ``further`` tasks that can run at the same time; None for
    one that failed or did not run.

    Readers with ORDER 0 run before all others.
    """
    installed = frozenset(item["name"] for item in site.distributions)
    there = [kind for kind in KINDS if not installed.isdisjoint(kind.distributions) or site.holds(kind.imported)]
    first = [_read(kind, site) for kind in there if kind.order == _ALONE]
    others = there[len(first) :]
    results = run_tasks([*further, *(partial(_read, kind, site) for kind in others)])
    told, read = results[: len(further)], results[len(further) :]
    again = (_read(kind, site) if records is None else records for kind, records in zip(others, read))
    return [record for records in (*first, *again) for record in records], told


def _read(kind: ReaderFile, site: Site) -> list[Record]:
    reader: Reader = importlib.import_module(f"..frameworks.{kind.module}", __package__).read
    return reader(site, kind.distributions)
