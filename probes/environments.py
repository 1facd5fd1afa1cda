"""Python environments and the frameworks in them, examined as files: no interpreter is started, no package imported."""

from __future__ import annotations

from .common.out import Out
from .common.tree import Tree
from .files.installations.examined import examine, examined

PROBE = {
    "title": "Python environments and their frameworks",
    "seconds": 20.0,
    "scopes": ["env", "container"],
    "fills": ["environments"],
}


def collect(tree: Tree, out: Out) -> None:
    """Send the environment that is judged, and those that are named beside it (with ``--all-envs`` all)."""
    for record in examine(tree, out.progress):
        out.fact({"environments": {"items": [record], "complete": False}})
    environments = examined(tree)
    if not environments:
        out.absent("no Python environment was found")
    out.fact({"environments": {"items": [], "complete": environments.complete}})
