"""Which files a framework cannot do without, by the list of its distribution, and are gone."""

from __future__ import annotations

import os
import re

from ._env_head import read_start
from ._kit import Request, below
from ._links import resolve
from ._owner_wheels import RECORD_LIMIT

_FILES = 1000
_NEEDED = rb"%s/(?:__init__\.py|[^\n,\"]{0,300}\.so(?:\.[0-9.]{1,20})?)(?=,)"
_FOR_TESTS = re.compile(r"test|libbackend_with_compiler", re.IGNORECASE)
"""Libraries that only PyTorch's own tests load: images that were made smaller have them removed."""


def lost(request: Request, dist_info: str, package: str) -> list[str]:
    """The package's ``__init__.py`` and compiled files that RECORD lists and that are not there, in its order."""
    data = read_start(request, f"{dist_info}/RECORD", RECORD_LIMIT) or b""
    site = dist_info.rpartition("/")[0]
    pattern = re.compile(rb"^" + _NEEDED % re.escape(os.fsencode(package)), re.MULTILINE)
    names = [os.fsdecode(match[0]) for match in pattern.finditer(data)][:_FILES]
    own = (name for name in names if not _FOR_TESTS.search(name) and "\0" not in name and ".." not in name.split("/"))
    return [name for name in own if not _is_there(request, f"{site}/{name}")]


def _is_there(request: Request, path: str) -> bool:
    return os.path.exists(path) if request.get("root", "/") == "/" else _inside(request, path)


def _inside(request: Request, path: str) -> bool:
    place = resolve(request, path)
    return place is not None and os.path.exists(below(request, place))
