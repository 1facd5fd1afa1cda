"""Search for copies of CUDA's libraries: in the examined environments first, then on the rest of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..kit.tree import Tree
from ..owners import dpkg, rpm
from ..owners.toolkit import Toolkit, toolkit
from .copies import Copies, add_environment
from .places import cached, places
from .record import Describer

if TYPE_CHECKING:
    from typing import TypeAlias

# Find the owners of copies outside environments in the databases of the system's package managers.


def add_owners(tree: Tree, copies: Copies) -> None:
    """Add a claim to each copy that a package of the system lists."""
    wanted = {copy.path for copy in copies.found.values() if not copy.claims and copy.origin not in ("wheel", "conda")}
    for owners in (dpkg.owners, rpm.owners):
        for path, claims in owners(tree, wanted).items():
            copies.found[path].claims.extend(claims)


# The search for copies of CUDA's libraries: in the examined environments first, then on the rest of the machine.


Record: TypeAlias = "dict[str, Any]"


def found(tree: Tree, environments: Sequence[Record]) -> tuple[list[Record], bool]:
    """The copies as ``Library`` records, and whether none was left out; GPU code is that of the first environment's.

    It uses ``key``, ``site_packages``, ``distributions`` and ``distributions_complete`` of an environment.
    """
    copies = Copies(tree)
    for environment in environments:
        add_environment(tree, copies, environment)
    _add_machine(tree, copies)
    add_owners(tree, copies)
    describer = Describer(tree, copies, _toolkits(tree, copies))
    judged = environments[0]["key"] if environments else None
    describer.list_code(copy for copy in copies.found.values() if judged and copy.environment == judged)
    records = (describer.record(copy) for copy in copies.found.values())
    return [record for record in records if record is not None], copies.complete


def _add_machine(tree: Tree, copies: Copies) -> None:
    """Add the copies outside environments."""
    for place in places(tree):
        copies.add_folder(place.folder, place.origin, top=place.top)
    paths, certain = cached(tree)
    for path in paths:
        copies.add(path, "other")
    copies.complete = copies.complete and certain


def _toolkits(tree: Tree, copies: Copies) -> dict[str, Toolkit]:
    """The toolkits that contain copies, by real path."""
    tops = {copy.top for copy in copies.found.values() if copy.top}
    return {top: toolkit(tree, top) for top in sorted(tops)}
