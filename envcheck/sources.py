"""Where knowledge is from, and how far it is to be trusted."""

from typing import Literal, TypeAlias

import msgspec

Confidence: TypeAlias = Literal["high", "medium", "weak"]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a piece of knowledge is documented."""

    title: str  # What it is, in words
    address: str = ""  # Page address, or the PyPI distribution and the metadata field
    read: str = ""  # The day it was read, as in ``2026-11-20``
