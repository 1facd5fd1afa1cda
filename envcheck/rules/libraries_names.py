"""Names of CUDA's libraries, as files and lines of text have them: ``libcublas.so.12``, ``cudnn_ops64_9.dll``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from envcheck.compat.families import SPOKEN_OF, files_of, row_of

_MOST = 8


class LibraryName(NamedTuple):
    """What the name of a library says."""

    file: str
    """``libcublas.so.12``."""
    family: str
    """``cublas``."""
    number: str
    """``12``; empty where the name has none."""

    @property
    def kind(self) -> str:
        """Whose it is: ``cudnn``, ``tensorrt``, ``nccl``, or ``cuda`` for the toolkit's own and what belongs to it."""
        row = row_of(self.family)
        return row.kind if row else "cuda"


def names_in(text: str) -> list[LibraryName]:
    """The libraries that a line names, each once."""
    return list(dict.fromkeys(name for _, name in zip(range(_MOST), _names(text), strict=False)))


@lru_cache(maxsize=4096)
def name_of(path: str) -> LibraryName | None:
    """The library of a file or a name; None for one that is not CUDA's."""
    found = names_in(path.rpartition("/")[2])
    return found[0] if found else None


def _names(text: str) -> Iterator[LibraryName]:
    shared_object, dll = _patterns()
    for match in shared_object.finditer(text):
        yield LibraryName(match[0], match["family"], match["number"].lstrip("."))
    for match in dll.finditer(text):
        yield LibraryName(match[0], match["family"], _of_dll(match["number"]))


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    family = rf"(?P<family>{files_of(*SPOKEN_OF)})"
    return (
        re.compile(rf"\blib{family}(?:[-.][0-9a-f]{{8}})?\.so(?P<number>(?:\.\d{{1,6}}){{0,4}})"),
        re.compile(rf"\b{family}(?:64)?_(?P<number>\d{{1,5}}(?:_\d{{1,3}}){{0,2}})\.dll", re.IGNORECASE),
    )


def _of_dll(number: str) -> str:
    """Windows writes 11.2 as 112, and majors alone as they are."""
    first, *rest = number.split("_")
    three = len(first) == 3
    return ".".join([first[:2], first[2:], *rest] if three else [first, *rest])
