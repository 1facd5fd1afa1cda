"""The environment variables that decide what a GPU program finds and sees."""

from __future__ import annotations

import os
import re

from .common.lazy import lazy_pattern
from .common.out import Out, clean
from .common.tree import Tree, refused
from .common.variable_names import matters
from .machine.places import places

PROBE = {"title": "Environment variables", "seconds": 2.0, "fills": ["variables"]}

_SEARCH_PATHS = ("PATH", "LD_LIBRARY_PATH")  # A folder of these that is not there is passed over, and that is usual
_SEPARATORS = lazy_pattern(r"[\s:;,=]+")

_LONGEST = 4096
_MOST = 512


def collect(tree: Tree, out: Out) -> None:
    """Send the ``variables`` section: those by the names above, long values cut. The parent masks secrets."""
    variables = tree.variables
    chosen = sorted(filter(matters, variables))
    values = {clean(name): clean(variables[name][:_LONGEST]) for name in chosen[:_MOST]}
    facts = {"source": "process", "values": values, "complete": len(chosen) <= _MOST}
    listed = [variables[name] for name in chosen[:_MOST] if name not in _SEARCH_PATHS]
    # What may be a path: a whole value, which may hold blanks, and its parts between the usual separators.
    cut = [value[:_LONGEST] for value in listed]
    parts = (part for value in cut for part in (*(() if ":" in value else (value,)), *_SEPARATORS.split(value)))
    paths = dict.fromkeys(part for part in parts if part.startswith(("/", "./", "../")))
    kinds = [{"path": clean(path), "leads_to": _kind_at(tree, path)} for path in list(paths)[:_MOST]]
    folders = [each["path"] for each in kinds if each["leads_to"] in ("folder", "nothing", "unknown")]
    hosts = set(re.sub(r"#.*", "", tree.read_text("/etc/hosts") or "").split())
    resolver = tree.read_text("/etc/resolv.conf")
    names = {
        "hosts": sorted({clean(value) for value in values.values()} & hosts),
        "name_server": None if resolver is None else bool(re.search(r"^[ \t]*nameserver[ \t]", resolver, re.MULTILINE)),
    }
    out.fact({"variables": {**facts, "paths": kinds, **names, **places(tree, folders)}})
    tree.report_unreadable(out)


def _kind_at(tree: Tree, path: str) -> str:
    """What is at a path; relative ones count from the folder in which programs are started."""
    place = tree.place(os.path.normpath(os.path.join(tree.cwd, path)))
    try:
        if not os.path.exists(place):
            os.stat(place)  # raises: nothing there, or nothing that may be seen
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    except (OSError, ValueError) as error:
        refused(path, error)
        return "unknown"
    if os.path.isdir(place):
        return "folder"
    return "program" if os.path.isfile(place) and os.access(place, os.X_OK) else "file"
