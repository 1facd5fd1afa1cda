"""The search for copies of CUDA's libraries: in the examined environments first, then on the rest of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._kit import Request
from ._library_copies import Copies
from ._library_environment import add_environment
from ._library_places import cached, places
from ._library_record import Describer
from ._owner_system import add_owners
from ._owner_toolkit import Toolkit, toolkit

Record = dict[str, Any]


def found(request: Request, environments: Sequence[Record]) -> tuple[list[Record], bool]:
    """The copies as ``Library`` records, and whether none was left out; GPU code is that of the first environment's.

    Of an environment it takes ``key``, ``site_packages``, ``distributions`` and ``distributions_complete``.
    """
    copies = Copies(request)
    for environment in environments:
        add_environment(request, copies, environment)
    _add_machine(request, copies)
    add_owners(request, copies)
    describer = Describer(request, copies, _toolkits(request, copies))
    judged = environments[0]["key"] if environments else None
    describer.list_code(copy for copy in copies.found.values() if judged and copy.environment == judged)
    records = (describer.record(copy) for copy in copies.found.values())
    return [record for record in records if record is not None], copies.complete


def _add_machine(request: Request, copies: Copies) -> None:
    """What lies outside of the environments."""
    for place in places(request):
        copies.add_folder(place.folder, place.origin, top=place.top)
    paths, certain = cached(request)
    for path in paths:
        copies.add(path, "other")
    copies.complete = copies.complete and certain


def _toolkits(request: Request, copies: Copies) -> dict[str, Toolkit]:
    """The toolkits in which copies lie, by their real paths."""
    tops = {copy.top for copy in copies.found.values() if copy.top}
    return {top: toolkit(request, top) for top in sorted(tops)}
