"""Packages in a site folder that no record of an installer lists, as an installation that ended early leaves them."""

from __future__ import annotations

from ..kit.paths import name_of, printable
from ..kit.tree import REFUSED
from ..python.distributions import normalised
from ..python.site import Site

_MOST = 50
_RECORD_LIMIT = 16 << 20
_METADATA = (".dist-info", ".egg-info")


def unrecorded(site: Site) -> list[str]:
    """Paths of the regular packages in folders that pip installs into which nobody's metadata names.

    Debian's own folders belong to its package manager, which needs no record there; a folder that a variable or a
    ``.pth`` file adds may be any project.
    """
    found: list[str] = []
    for folder, led_by in zip(site.folders, site.led_by):
        if led_by in ("", "user site") and (name_of(folder) == "site-packages" or "/local/lib/" in folder):
            found += [printable(f"{folder}/{name}") for name in sorted(_unclaimed(site, folder))]
    return found[:_MOST]


def _unclaimed(site: Site, folder: str) -> set[str]:
    names, tree = site.names(folder), site.tree
    infos = {name: normalised(name.partition("-")[0]) for name in names if name.endswith(_METADATA)}
    conda = [item for item in site.distributions if item["channel"] == "conda"]
    known = {*infos.values(), *(item["name"] for item in conda)}
    packages = {normalised(name): name for name in names if name.isidentifier()}
    left = {name for key, name in packages.items() if key not in known and tree.is_file(f"{folder}/{name}/__init__.py")}
    for info in sorted(infos, key=lambda name: infos[name] in packages):  # first those that must hold other names
        if not left:
            break
        data = b"\n" + (tree.read_bytes(f"{folder}/{info}/RECORD", _RECORD_LIMIT) or b"")
        stated = "" if len(data) > 1 else tree.read_text(f"{folder}/{info}/top_level.txt") or ""
        left -= {name for name in left if b"\n%s/" % name.encode() in data or name in stated.split()}
        if not REFUSED.keys().isdisjoint((f"{folder}/{info}", f"{folder}/{info}/RECORD")):
            return set()  # it may name any of them
    for item in conda if left else ():
        data = tree.read_bytes(item["path"], _RECORD_LIMIT) or b""
        left -= {name for name in left if b"site-packages/%s/" % name.encode() in data}
    return left
