"""Every copy of CUDA's libraries on disk: which, of what version, whose, and for which CUDA."""

from __future__ import annotations

from .common.out import Out
from .common.tree import Tree
from .files.installations.examined import examined

PROBE = {"title": "Copies of CUDA's libraries", "seconds": 10.0, "scopes": ["env", "container"], "fills": ["libraries"]}

_AT_ONCE = 200


def collect(tree: Tree, out: Out) -> None:
    """Send ``libraries``: those of the examined environments first, then the machine's."""
    environments = examined(tree)
    items, complete = environments.libraries(tree)
    for start in range(0, len(items), _AT_ONCE):
        out.fact({"libraries": {"items": items[start : start + _AT_ONCE], "complete": False}})
    out.fact({"libraries": {"items": [], "complete": complete and environments.complete}})
    tree.report_unreadable(out)
    if not items:
        out.absent("no library of CUDA on disk")
