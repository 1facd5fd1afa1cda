"""Which symbols the files linked against a library ask of it that nothing in the process defines.

A copy of the right name may be of an older release: the loader takes it, and stops at the first function that is
missing (``undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12``). The symbols that belong to a
library are those bound to its version table, else those that begin as its functions do.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ._env_paths import printable
from ._library_families import family_of
from ._loading_symbols import UnreadError, asked_of, missing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._loading import Image, Process

_SHOWN = 8
_LOOKED_AT = 64
"""Users of one library whose symbols are looked up."""
_PREFIXES = {"cudart": "cuda", "cudnn": "cudnn", "nvshmem": "nvshmem", "nvToolsExt": "nvtx", "npp": "npp"}
"""How the functions of a family begin, by the start of its name, where that is not the family's whole name."""
_OF_THE_DRIVER = frozenset({"cuda", "nvidia-ml"})
"""Another rule's matter: a driver is judged by its release."""


def is_bound(name: str) -> bool:
    """Whether the symbols of a library of that name are worth a look."""
    known = family_of(os.path.basename(name))
    return known is not None and known.family not in _OF_THE_DRIVER


def lacking(process: Process, image: Image, name: str, users: Iterable[Image]) -> tuple[list[str], str] | None:
    """Symbols that ``users`` ask of a library by its ``name``, which nobody defines, and the user that asks; None where
    a file could not be read.
    """
    for user in list(users)[:_LOOKED_AT]:
        try:
            wanted = missing(asked_of(user.head, name, _prefix(name)), [image.head])
            others = (other.head for other in process.images if other not in (image, user))
            wanted = missing(wanted, others) if wanted else []
        except UnreadError:
            return None
        if wanted:
            return [printable(symbol.decode("utf-8", "replace")) for symbol in sorted(wanted)[:_SHOWN]], user.path
    return [], ""


def _prefix(name: str) -> re.Pattern[bytes]:
    known = family_of(os.path.basename(name))
    family = known.family if known else name
    begin = next((prefix for start, prefix in _PREFIXES.items() if family.startswith(start)), family)
    return re.compile(rb"_{0,2}p?" + re.escape(begin.encode()), re.IGNORECASE)
