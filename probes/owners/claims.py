"""Who says that a file is theirs, and what follows where several do."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ..kit.library_names import row_of
from ..kit.tree import refused

_HASHED_LIMIT = 4 << 20
"""Larger files are not read whole to tell two claims apart."""


class Claim(NamedTuple):
    """A package says that a file is its own."""

    kind: str
    """``wheel``, ``conda``, ``dpkg``, ``rpm`` or ``toolkit``."""
    name: str
    version: str
    size: int | None = None
    """Bytes, as the package's list of files says."""
    hash: str | None = None
    """As RECORD writes it: ``sha256=`` and unpadded base64."""

    @property
    def text(self) -> str:
        """As ``Library.owner`` shows it."""
        return f"{self.name}=={self.version}" if self.kind == "wheel" else f"{self.name} {self.version}".strip()


class Ownership(NamedTuple):
    owner: Claim | None
    """None where nobody claims the file, or where nothing tells whose it is."""
    altered: bool | None
    """Whether the file is another than its owner recorded; None where nobody recorded a size."""


def decide(claims: Sequence[Claim], place: str, size: int) -> Ownership:
    """The owner of a file of ``size`` bytes at ``place`` (on this machine) among all that claim it.

    Where several do, it is the one whose recorded size is that of the file, and where those agree, whose recorded hash
    is (small files only). A file that no record fits was written by somebody else.
    """
    if not claims:
        return Ownership(None, None)
    fitting = [claim for claim in claims if claim.size == size]
    if _differ(fitting):
        found = _hash(place, size)
        fitting = [claim for claim in fitting if claim.hash == found] if found else fitting
        if _differ(fitting):
            return Ownership(None, None)
    if fitting:
        return Ownership(fitting[0], altered=False)
    unsized = [claim for claim in claims if claim.size is None]
    if unsized:
        return Ownership(unsized[0], None) if len(claims) == 1 else Ownership(None, None)
    return Ownership(claims[0] if len(claims) == 1 else None, altered=True)


def _differ(claims: Sequence[Claim]) -> bool:
    return len({claim.hash for claim in claims if claim.hash}) > 1


def _hash(place: str, size: int) -> str | None:
    if size > _HASHED_LIMIT:
        return None
    import hashlib
    from base64 import urlsafe_b64encode

    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        refused(place, error)
        return None
    with open(descriptor, "rb") as file:
        digest = hashlib.sha256(file.read(_HASHED_LIMIT)).digest()
    return "sha256=" + urlsafe_b64encode(digest).decode().rstrip("=")


_UPSTREAM = re.compile(r"(?:\d+:)?(?:[\d.]+\+~)?(\d+(?:\.\d+)*)")
"""Less the epoch, and less the version of the soname that Debian puts first: ``11.1.1+~10.9.0.58~11.8.0-5``."""


def declared(claim: Claim | None, family: str) -> str | None:
    """The version of the library by its owner's metadata; None where the owner (torch …) only brings it along."""
    if claim is None or claim.kind == "toolkit":
        return None
    row = row_of(family)
    names = (row.owners or re.escape(row.name.lower())) if row else re.escape(family.lower())
    plain = re.sub(r"^(?:nvidia-|lib)", "", claim.name)
    if not any(re.match(rf"(?:{names})(?![a-z])", name) for name in (claim.name, plain)):
        return None
    upstream = _UPSTREAM.match(claim.version)
    return upstream[1] if upstream else None
