"""Ask the databases of the system's package managers whose the copies outside of environments are."""

from __future__ import annotations

from . import _owner_dpkg, _owner_rpm
from ._kit import Request
from ._library_copies import Copies


def add_owners(request: Request, copies: Copies) -> None:
    """Add a claim to each copy that a package of the system lists."""
    wanted = {copy.path for copy in copies.found.values() if not copy.claims and copy.origin not in ("wheel", "conda")}
    for owners in (_owner_dpkg.owners, _owner_rpm.owners):
        for path, claims in owners(request, wanted).items():
            copies.found[path].claims.extend(claims)
