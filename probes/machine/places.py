"""Where a program may write, by permissions, mount flags and free space: nothing is written to find out."""

from __future__ import annotations

import os
import stat
import time
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..common.lazy import lazy_pattern
from ..common.out import clean
from ..common.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST = 400  # Folders that are looked at below home and the folder of caches
_TEMPORARY = (("TMPDIR", "TEMP", "TMP"), ("/tmp", "/var/tmp", "/usr/tmp"))  # noqa: S108 - as Python's tempfile
_NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")
"""The variables by which Python knows the user, before it asks the passwd file."""
_LITTLE, _FEW = 1 << 30, 10_000  # Bytes and files: more is not worth a fact that differs at every look
_PLENTY = 1 << 62
_KERNELS = ("/proc", "/sys")
_WITH_QUOTAS = lazy_pattern(r"\b(?:usr|grp)j?quota\b")
_QUOTACTL, _GET_QUOTA = 443, 0x80000700
"""The system call quotactl_fd, of one number on all architectures (Linux 5.14), and what asks it for a user's quota."""


def places(tree: Tree, named: Iterable[str]) -> dict[str, Any]:
    """The facts of the ``variables`` section about home, the temporary folder and ``named``, paths in variables.

    Below home and the folder of caches a folder is listed only if it differs from the one above (``sudo``, a mount).
    """
    variables = tree.variables
    if not hasattr(os, "statvfs"):
        return {}
    users = [line.split(":") for line in (tree.read_text("/etc/passwd") or "").splitlines() if line.count(":") == 6]
    own = next((fields for fields in users if fields[2] == str(os.getuid())), None)
    home = variables["HOME"].rstrip("/") or "/" if "HOME" in variables else own[5] if own else ""
    user = next((variables[name] for name in _NAMES if variables.get(name)), own[0] if own else "")
    look = partial(_place, tree, quotas=bool(_WITH_QUOTAS.search(tree.read_text("/proc/self/mountinfo") or "")))
    temporary = [value for name in _TEMPORARY[0] if (value := variables.get(name, "")).startswith("/")]
    folders = filter(tree.is_folder, (*temporary, *_TEMPORARY[1], tree.cwd))
    usable = next((path for path in folders if "obstacle" not in look(path)[1]), "")
    caches = os.path.normpath(variables.get("XDG_CACHE_HOME") or f"{home.rstrip('/')}/.cache")
    tops = [path for path in (home, usable, "/tmp", caches, "/dev/shm", *named) if path.startswith("/")]  # noqa: S108
    found = {path: look(path) for path in dict.fromkeys(tops)}
    for top, hidden in ((home, True), (caches, False)):
        for path in islice(_folders_below(tree, top, 2, hidden=hidden), _MOST) if top.startswith("/") else ():
            above = next(found[place] for place in _upwards(path) if place in found)
            here = look(path)
            if here != above:
                found.setdefault(path, here)
    for name in (tree.folder_names(usable)[0] if usable and user else [])[:_MOST]:
        if name.endswith(user) and (here := look(f"{usable}/{name}"))[1].get("obstacle"):
            found[f"{usable}/{name}"] = here
    listed = [{"path": clean(path), **facts} for path, (_, facts) in found.items()]
    return {"home": clean(home), "temporary": clean(usable), "user_known": bool(user), "places": listed}


def _folders_below(tree: Tree, top: str, levels: int, *, hidden: bool) -> Iterator[str]:
    """The folders below ``top``; with ``hidden``, of those directly in it only they whose names begin with a dot."""
    for name in tree.folder_names(top)[0]:
        if (not hidden or name.startswith(".")) and tree.is_folder(path := f"{top.rstrip('/')}/{name}"):
            yield path
            if levels > 1:
                yield from _folders_below(tree, path, levels - 1, hidden=False)


def _upwards(path: str) -> Iterator[str]:
    while path != "/":
        yield path
        path = os.path.dirname(path)
    yield path


def _place(tree: Tree, path: str, *, quotas: bool) -> tuple[int | None, dict[str, Any]]:
    """The device of a folder, or of the nearest one above it that exists, and what stands against writing there."""
    for there in _upwards(os.path.normpath(path)):
        place = tree.place(there)
        try:
            about = os.stat(place)
        except (FileNotFoundError, NotADirectoryError):
            if tree.lexists(there):
                return None, {"obstacle": "a link that leads nowhere is in its place"}
            continue
        except OSError:
            return None, {"obstacle": "this user may not enter the folder above it"}
        break
    if not stat.S_ISDIR(about.st_mode):
        return about.st_dev, {"obstacle": f"{clean(there)} is not a folder"}
    if tree.at_real_root and f"{there}/".startswith(tuple(f"{top}/" for top in _KERNELS)):
        return about.st_dev, {"obstacle": "the kernel's file system takes no folders"}
    facts: dict[str, Any] = {}
    try:
        system, left = os.statvfs(place), _quota_left(place) if quotas else []
    except OSError:
        return about.st_dev, facts
    if not os.access(place, os.W_OK | os.X_OK):
        mounted = system.f_flag & getattr(os, "ST_RDONLY", 1)
        facts["obstacle"] = "its file system is read-only" if mounted else f"this user may not write in {clean(there)}"
    if system.f_flag & getattr(os, "ST_NOEXEC", 8):
        facts["noexec"] = True
    if any(min(space >> 20, files) < 1 for space, files in left):
        facts.setdefault("obstacle", "the quota of this user, or of its group, on its file system is used up")
    left.append([system.f_bavail * system.f_frsize, system.f_favail if system.f_files else _FEW])
    least = zip(("free", "free_files"), map(min, zip(*left)), (_LITTLE, _FEW))
    return about.st_dev, {**facts, **{name: count for name, count, enough in least if count < enough}}


def _quota_left(place: str) -> list[list[int]]:
    """The bytes and files that the quotas of this user and of its group leave."""
    import ctypes

    found, folder = [], os.open(place, os.O_PATH)
    for kind, owner in enumerate((os.geteuid(), os.getegid())):
        answer = (ctypes.c_uint64 * 9)()
        if ctypes.CDLL(None).syscall(_QUOTACTL, folder, ctypes.c_uint(_GET_QUOTA | kind), owner, answer) == 0:
            space, _, used, files, _, made, *ends = answer
            # Above a soft limit nothing may be written once its time of grace is over.
            room = 0 if any(0 < end < time.time() for end in ends[:2]) else _PLENTY
            pairs = ((space * 1024, used), (files, made))
            found.append([max(min(most or _PLENTY, room) - taken, 0) for most, taken in pairs])
    os.close(folder)
    return found
