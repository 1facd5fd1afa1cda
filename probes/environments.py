"""Python environments and the frameworks in them, examined as files: no interpreter is started, no package imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._env_candidates import Candidate, asked_for, found
from ._env_conda import installed_by_conda
from ._env_distributions import installed_in
from ._env_frameworks import DETAILED, frameworks
from ._env_layout import read_layout
from ._env_paths import printable
from ._env_search_path import search_path
from ._env_site import Site
from ._kit import Out, Request

PROBE = {
    "title": "Python environments and their frameworks",
    "kind": "file",
    "seconds": 10.0,
    "uses": "files",
    "scopes": ["env", "container"],
    "fills": ["environments"],
}

Record = dict[str, Any]


def collect(request: Request, out: Out) -> None:
    """Send the environment that is judged, and those that are named beside it."""
    examine = _examiner(request, out)
    sent = _send_asked(request, out, examine)
    if not sent or not any(_has_framework(record) for record in sent):
        sent += _send_found(request, out, examine, judged=sent[0] if sent else None)
    if not sent:
        out.absent("no Python environment was found")
    out.fact({"environments": {"items": [], "complete": True}})


Examine = Callable[[Candidate], Record]


def _send_asked(request: Request, out: Out, examine: Examine) -> list[Record]:
    """All that ``--python`` names; the first is judged."""
    sent: list[Record] = []
    for candidate in asked_for(request):
        record = examine(candidate)
        if all(record["key"] != other["key"] for other in sent):
            sent.append({**record, "judged": not sent})
            _send(out, sent[-1])
    return sent


def _send_found(request: Request, out: Out, examine: Examine, judged: Record | None) -> list[Record]:
    """The best candidate, unless one is judged already; and the first other that has a framework when that has none.

    An environment made only to run envcheck (by uvx or pipx) may lead PATH and holds no framework: it is passed over.
    """
    sent: list[Record] = []
    for candidate in found(request):
        record = examine(candidate)
        useful = _has_framework(record)
        if judged is None and candidate.own and candidate.why == "PATH" and not useful:
            continue
        if judged is None or (useful and record["key"] != judged["key"]):
            sent.append({**record, "judged": judged is None})
            _send(out, sent[-1])
            judged = judged or record
            if useful:
                break
    return sent


def _send(out: Out, record: Record) -> None:
    out.fact({"environments": {"items": [record], "complete": False}})


def _has_framework(record: Record) -> bool:
    return any("version" in framework for framework in record.get("frameworks", {}).get("items", ()))


def _examiner(request: Request, out: Out) -> Examine:
    """``examine``, which reads no environment twice."""
    known: dict[str, Record] = {}

    def examine(candidate: Candidate) -> Record:
        key = candidate.key(request)
        if key not in known:
            out.progress(f"reading {printable(key)}")
            known[key] = _examined(request, candidate, key)
        return {**known[key], "why": candidate.why}

    return examine


def _examined(request: Request, candidate: Candidate, key: str) -> Record:
    place = candidate.place
    record: Record = {
        "key": key,
        "executable": place.executable,
        "source": f"file {place.executable or candidate.asked}",
    }
    if place.prefix is None:
        return _known({**record, "problem": place.problem})
    layout = read_layout(request, place, key)
    path = search_path(request, layout)
    wheels = installed_in(request, path.folders, DETAILED)
    conda = installed_by_conda(request, key, DETAILED)
    complete = path.complete and wheels.complete and conda.complete
    distributions = [*wheels.items, *conda.items]
    site = Site(request, key, path.folders, path.by_variable, tuple(distributions))
    record |= {
        "python": layout.version,
        "implementation": layout.implementation,
        "prefix": key,
        "base_prefix": layout.base,
        "manager": layout.manager,
        "externally_managed": layout.externally_managed,
        "site_packages": list(path.folders),
        "distributions": distributions,
        "distributions_complete": complete,
        "frameworks": {"items": frameworks(site), "complete": complete},
        "problem": layout.problem,
    }
    return _known(record)


def _known(record: Record) -> Record:
    return {name: value for name, value in record.items() if value is not None}
