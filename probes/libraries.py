"""Every copy of CUDA's libraries on disk: which, of what version, whose, and for which CUDA."""

from __future__ import annotations

from ._env_examined import examined
from ._kit import Out, Request
from ._library_copies import Copies
from ._library_environment import add_environment
from ._library_places import cached, places
from ._library_record import Describer
from ._owner_system import add_owners
from ._owner_toolkit import Toolkit, toolkit

PROBE = {
    "title": "Copies of CUDA's libraries",
    "kind": "file",
    "seconds": 10.0,
    "uses": "files",
    "scopes": ["env", "container"],
    "fills": ["libraries"],
}

_AT_ONCE = 200


def collect(request: Request, out: Out) -> None:
    """Send ``libraries``: those of the examined environments first, then the machine's."""
    copies = Copies(request)
    environments = examined(request)
    copies.complete = environments.complete
    for environment in environments:
        add_environment(request, copies, environment)
    judged = environments[0]["key"] if environments else None
    _add_machine(request, copies)
    add_owners(request, copies)
    describer = Describer(request, copies, _toolkits(request, copies))
    describer.list_code(copy for copy in copies.found.values() if judged and copy.environment == judged)
    items = [item for copy in copies.found.values() if (item := describer.record(copy)) is not None]
    for start in range(0, len(items), _AT_ONCE):
        out.fact({"libraries": {"items": items[start : start + _AT_ONCE], "complete": False}})
    out.fact({"libraries": {"items": [], "complete": copies.complete}})
    if not items:
        out.absent("no library of CUDA on disk")


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
