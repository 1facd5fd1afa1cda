"""Which files a framework cannot do without, by the list of its distribution, and are gone."""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import TYPE_CHECKING

from ._env_head import read_start
from ._kit import Request
from ._links import is_there
from ._owner_wheels import RECORD_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILES = 1000
_LONGEST = 1024
_LIBRARY = re.compile(rb"\.so(?:\.[0-9.]{1,20})?(?=,)")
_FOR_TESTS = re.compile(r"test|libbackend_with_compiler", re.IGNORECASE)
"""Libraries that only PyTorch's own tests load: images that were made smaller have them removed."""


def lost(request: Request, dist_info: str, package: str) -> list[str]:
    """The package's ``__init__.py`` and compiled files that RECORD lists and that are not there."""
    data = read_start(request, f"{dist_info}/RECORD", RECORD_LIMIT) or b""
    site = dist_info.rpartition("/")[0]
    names = list(map(os.fsdecode, islice(_needed(data, os.fsencode(package)), _FILES)))
    own = (name for name in names if not _FOR_TESTS.search(name) and "\0" not in name and ".." not in name.split("/"))
    return [name for name in own if not is_there(request, f"{site}/{name}")]


def _needed(record: bytes, package: bytes) -> Iterator[bytes]:
    """Few lines of a long list name a library, so these are looked for and not every line is."""
    start, first = b"%s/" % package, b"%s/__init__.py" % package
    if record.startswith(first + b",") or b"\n" + first + b"," in record:
        yield first
    for ending in _LIBRARY.finditer(record):
        line = record.rfind(b"\n", 0, ending.start()) + 1
        name = record[line : ending.end()]
        if name.startswith(start) and b"," not in name and b'"' not in name and len(name) <= _LONGEST:
            yield name
