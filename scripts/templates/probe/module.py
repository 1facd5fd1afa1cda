"""What the file says, in one sentence: replace this text, the header and the reading."""

from __future__ import annotations

from .kit.reading import Out, Request, read_line

PROBE = {
    "title": "Example thing",
    "kind": "file",
    "seconds": 5.0,
    "uses": "files",
    "scopes": ["node", "container", "env"],
    "fills": ["platform.kernel_release"],
}

_FILE = "/proc/sys/kernel/osrelease"


def collect(request: Request, out: Out) -> None:
    """Send the facts. ``read_line`` reads below the root of the request, within limits."""
    release = read_line(request, _FILE)
    if not release:
        out.absent(f"{_FILE} cannot be read or is empty")
        return
    out.fact({"platform": {"kernel_release": release, "source": f"file {_FILE}"}})
