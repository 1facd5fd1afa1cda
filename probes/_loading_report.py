"""What was asked for in a process, as ``Load`` records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._env_paths import printable
from ._links import resolve
from ._loading import lacking
from ._loading_names import told_of, version_in

if TYPE_CHECKING:
    from ._env_site import Site
    from ._loading import Request
    from ._loading_script import Event

RECORD_LIMIT = 512


def records(site: Site, events: list[Event]) -> list[dict[str, Any]]:
    """One record for each name and file of the framework's own requests that matter."""
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    for event in events:
        for request in event.requests if event.own else ():
            if request.image is not None and not told_of(request.name) and not lacking(request):
                continue
            record = _record(site, request, event)
            known = found.setdefault((record["name"], record.get("path")), record)
            known["optional"] = known["optional"] and event.optional
    return list(found.values())[:RECORD_LIMIT]


def _record(site: Site, request: Request, event: Event) -> dict[str, Any]:
    asking = printable(request.by.path if request.by else event.by or request.name)
    record: dict[str, Any] = {
        "source": f"elf {asking}",
        "name": printable(request.name.rpartition("/")[2]),
        "needed_by": asking,
        "optional": event.optional,
    }
    if request.image is None:
        return record
    path = printable(resolve(site.request, request.image.path) or request.image.path)
    record |= {"path": path, "found_by": request.image.found_by}
    version = version_in(path)
    return {**record, "version": version} if version else record
