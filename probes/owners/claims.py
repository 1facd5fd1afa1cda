"""Claims of packages on a file, and which one counts."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ..kit.library_names import row_of
from ..kit.tree import refused

_HASHED_LIMIT = 4 << 20
"""Larger files are not hashed to decide between claims."""


class Claim(NamedTuple):
    """A package's claim on a file."""

    kind: str
    """``wheel``, ``conda``, ``dpkg``, ``rpm`` or ``toolkit``."""
    name: str
    version: str
    size: int | None = None
    """Size in bytes in the package's list of files."""
    hash: str | None = None
    """In RECORD's form: ``sha256=`` and unpadded base64."""

    @property
    def text(self) -> str:
        """As ``Library.owner`` shows it."""
        return f"{self.name}=={self.version}" if self.kind == "wheel" else f"{self.name} {self.version}".strip()


class Ownership(NamedTuple):
    owner: Claim | None
    """None if no package claims the file, or it is unclear which."""
    altered: bool | None
    """Whether the file differs from its owner's record; None if no size was recorded."""


def decide(claims: Sequence[Claim], place: str, size: int) -> Ownership:
    """The owner of a file of ``size`` bytes at ``place`` (on the running system) among all claims.

    Of several claims, the one with the file's size counts, and among equal sizes the one with its hash (small files
    only). A file that matches no record was written by something else.
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
    """The library's version in its owner's metadata; None if the owner (torch …) only bundles it."""
    if claim is None or claim.kind == "toolkit":
        return None
    row = row_of(family)
    names = (row.owners or re.escape(row.name.lower())) if row else re.escape(family.lower())
    plain = re.sub(r"^(?:nvidia-|lib)", "", claim.name)
    if not any(re.match(rf"(?:{names})(?![a-z])", name) for name in (claim.name, plain)):
        return None
    upstream = _UPSTREAM.match(claim.version)
    return upstream[1] if upstream else None
