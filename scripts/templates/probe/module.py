"""What the file says, in one sentence: replace this text, the header and the reading."""

from __future__ import annotations

from .common.out import Out
from .common.tree import Tree

# The header is a literal: it is read, not imported. ``ProbeSpec`` in envcheck/collect/catalog.py has all keys.
PROBE = {
    "title": "Example thing",
    "kind": "file",  # as if left out; or driver: it calls NVML or CUDA; deep and bench have folders of their own
    "seconds": 5.0,  # then the child is ended, and the report says so
    "scopes": ["node", "container", "env"],  # the scopes of --scope that need these facts; as if left out
    "fills": ["platform.kernel_release"],  # paths of the Snapshot; add a field in envcheck/model/ where none fits
}

_FILE = "/proc/sys/kernel/osrelease"


def collect(tree: Tree, out: Out) -> None:
    """Send the facts. The tree reads below its root, within limits."""
    # Python 3.8, and the standard library alone at module level: import third parties here. Start no program. Every
    # fact names its source. Unknown is left out, never 0; ``absent`` says that there is nothing here to look at.
    release = tree.read_line(_FILE)
    if not release:
        out.absent(f"{_FILE} cannot be read or is empty")
        return
    out.fact({"platform": {"kernel_release": release, "source": f"file {_FILE}"}})
