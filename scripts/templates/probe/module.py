"""What the file says, in one sentence: replace this text, the header and the reading."""

from __future__ import annotations

from .kit.out import Out
from .kit.tree import Tree

PROBE = {
    "title": "Example thing",
    "kind": "file",
    "seconds": 5.0,
    "uses": "files",
    "scopes": ["node", "container", "env"],
    "fills": ["platform.kernel_release"],
}

_FILE = "/proc/sys/kernel/osrelease"


def collect(tree: Tree, out: Out) -> None:
    """Send the facts. The tree reads below its root, within limits."""
    release = tree.read_line(_FILE)
    if not release:
        out.absent(f"{_FILE} cannot be read or is empty")
        return
    out.fact({"platform": {"kernel_release": release, "source": f"file {_FILE}"}})
