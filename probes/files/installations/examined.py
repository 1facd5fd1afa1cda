"""The examined environments and their records, cached for the next probe in the same process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, List

from ...common.paths import printable
from ...common.record import Record
from ...common.tasks import run_tasks
from ...common.tree import Tree
from ..owners.shipped import closure, joined, own_of, shipped
from ..owners.wheels import keep_lists, line_about, recorded_in
from ..python.candidates import EnvironmentCandidate, asked_for, found, in_known_places
from ..python.distributions import add_requirements, installed_by_conda, installed_in
from ..python.layout import read_layout, unreadable, unreadable_place
from ..python.search_path import mapped, search_path
from ..python.site import Site
from .catalog import COMPILING, DETAILED, frameworks
from .compiled import compiled
from .package import folder_of
from .shadowing import hides_pythons_own, missing_in_copies, shadowing, unrecorded

if TYPE_CHECKING:
    from typing import TypeAlias
Libraries: TypeAlias = "tuple[list[Record], bool]"
Progress: TypeAlias = "Callable[[str], None]"

_SECONDS = 7.0  # With ``--all-envs``: seconds after which no further environment is started
_MOST = 200
_SHARES = 2
_OF_LAYOUT = ("implementation", "manager", "lock_file", "externally_managed", "moved_from", "problem")

_PATH_FILE = 64 << 10  # Most bytes of a ``.pth`` file that is compared with what a package lists

_kept: list[tuple[Tree, ExaminedEnvironments]] = []  # The last request (the object itself) and its result


class ExaminedEnvironments(List["dict[str, Any]"]):
    """The records, beginning with the judged environment."""

    complete = False  # Whether no environment was left out

    def __init__(self) -> None:
        super().__init__()
        self.searched: dict[str, Libraries] = {}
        """The libraries in an environment and on the machine, by its key, if they were already searched."""

    def libraries(self, tree: Tree) -> Libraries:
        """The copies of libraries in them and on the machine, and whether none was left out."""
        known = self.searched.get(self[0]["key"]) if len(self) == 1 else None
        return known or _libraries(tree, self)


def examined(tree: Tree) -> ExaminedEnvironments:
    """The environments of this request, examined only once in this process; never raises.

    The probe for environments reports failures; here they only make the list incomplete.
    """
    if not _kept or _kept[0][0] is not tree:
        with contextlib.suppress(Exception):
            for _ in examine(tree):
                pass
    return _kept[0][1]


def examine(tree: Tree, progress: Progress = lambda _: None) -> Iterator[Record]:
    """Examine them one after the other: what ``--python`` names, else the best that was found, and those named beside.

    Without ``--all-envs`` that is one other that has a framework, when the first has none. An environment made only to
    run envcheck (by uvx or pipx) may lead PATH and holds no framework: it is passed over as the one to judge.
    """
    chosen = ExaminedEnvironments()
    _kept[:] = [(tree, chosen)]
    known: dict[str, Record] = {}
    started = time.monotonic()
    passed_over: list[Record] = []
    for candidate in _candidates(tree, chosen):
        if tree.request.get("all_envs") and (time.monotonic() - started > _SECONDS or len(chosen) >= _MOST):
            return
        key = candidate.key(tree)
        if key not in known:
            progress(f"reading {printable(key)}")
            known[key] = _examined(tree, candidate, key, chosen.searched)
        record = {**known[key], "why": candidate.why}
        if any(record["key"] == other["key"] for other in chosen):
            continue
        if not chosen and candidate.own and candidate.why == "PATH" and not _has_framework(record):
            passed_over.append(record)
            continue
        if chosen and not (tree.request.get("all_envs") or candidate.why == "--python" or _has_framework(record)):
            continue
        chosen.append({**record, "judged": not chosen})
        yield chosen[-1]
    for record in passed_over if tree.request.get("all_envs") else ():
        if all(record["key"] != other["key"] for other in chosen):
            chosen.append({**record, "judged": not chosen})
            yield chosen[-1]
    chosen.complete = True


def _candidates(tree: Tree, chosen: list[Record]) -> Iterator[EnvironmentCandidate]:
    yield from asked_for(tree)
    if tree.request.get("all_envs"):
        yield from found(tree)
        yield from in_known_places(tree)
        return
    for candidate in found(tree):
        if any(_has_framework(record) for record in chosen):
            return
        yield candidate


def _has_framework(record: Record) -> bool:
    return any("version" in framework for framework in record.get("frameworks", {}).get("items", ()))


def _as_shipped(tree: Tree, path: str, wheels: Sequence[Record]) -> bool:
    """Whether a package put this file into its folder, as long as it is: lists are read until one has it."""
    site, _, name = path.rpartition("/")
    content = tree.read_bytes(path, _PATH_FILE)
    for item in wheels if content is not None else ():
        if folder_of(item) == site:
            listed = line_about(tree, item["path"], name)
            recorded = recorded_in(listed.decode("utf-8", "surrogateescape"), site) if listed else None
            if recorded is not None and recorded.path == path:
                return recorded.size == len(content or b"")
    return False


def _examined(tree: Tree, candidate: EnvironmentCandidate, key: str, searched: dict[str, Libraries]) -> Record:
    place = candidate.place
    record: Record = {
        "key": key,
        "executable": place.executable,
        "source": f"file {place.executable or candidate.asked}",
    }
    if place.prefix is None or place.lost:
        hidden = unreadable_place(tree, place, candidate.asked)
        return _known({**record, "prefix": place.prefix, "problem": place.problem, "unreadable": hidden})
    layout = read_layout(tree, place, key)
    path = search_path(tree, layout)
    wheels = installed_in(tree, path.folders, DETAILED)
    keep_lists(tree, (item["path"] for item in wheels.items))
    conda = installed_by_conda(tree, key, DETAILED)
    complete = path.complete and wheels.complete and conda.complete
    distributions = [*wheels.items, *conda.items]
    leading = {folder: led_by for folder, led_by in zip(path.folders, path.led_by) if led_by}
    for item in distributions if leading else ():
        if folder_of(item) in leading:
            item["led_by"] = leading[folder_of(item)]
    site = Site(
        tree, key, path.folders, path.by_variable, tuple(distributions), mapped(tree, path.folders), path.led_by
    )
    record.update({name: getattr(layout, name) for name in _OF_LAYOUT}, prefix=key)
    record.update(python=layout.version, base_prefix=layout.base, site_packages=list(path.folders))
    broken = [
        {"path": printable(each), "problem": "it is not UTF-8", "source": f"file {printable(each)}"}
        for each in path.undecodable
    ]
    damaged = [*wheels.damaged, *conda.damaged, *broken]
    record.update(distributions=distributions, distributions_complete=complete, damaged=damaged)
    startup = [each for each in path.startup if each["shadows"] or not _as_shipped(tree, each["path"], wheels.items)]
    record.update(startup=startup, startup_variables=list(path.variables))

    # What was shipped, the frameworks, other GPU code and the libraries are read side by side: without frameworks they
    # take less than a fork. With several environments it is not known yet which one to search for libraries.
    required = closure(tree, distributions, DETAILED)
    record["hides_pythons_own"] = hides_pythons_own(site, layout.minor, {item["name"] for item in required})
    record["missing_in_copies"] = missing_in_copies(site, record["hides_pythons_own"] or ())
    add_requirements(tree, distributions)
    own = own_of(tree, place.executable, layout.version if layout.implementation != "pypy" else None)
    compare = partial(shipped, tree, distributions, required, own, COMPILING)
    shares = [partial(compare, share=(number, _SHARES)) for number in range(_SHARES)]  # it takes longest
    readers: list[Callable[[], Any]] = [*shares, partial(frameworks, site), partial(compiled, site)]
    readers += [] if tree.request.get("all_envs") else [partial(_libraries, tree, [record])]
    readers.append(partial(unrecorded, site))
    results: list[Any] = run_tasks(readers) if required else [None] * len(readers)
    parts, (items, extensions, *libraries, strays) = results[:_SHARES], results[_SHARES:]
    looked = compare() if None in parts else joined(parts)
    items = frameworks(site) if items is None else items
    searched.update((key, each) for each in libraries if each)
    record["shipped"] = looked
    record["distributions"] = [*shadowing(site, looked), *distributions]
    record["frameworks"] = {"items": items, "complete": complete}
    record["unrecorded"] = unrecorded(site) if strays is None else strays
    record["extensions"] = compiled(site) if extensions is None else extensions
    record["unreadable"] = unreadable(tree, place, layout, path.folders, asked_for=candidate.why == "--python")
    return _known(record)


def _libraries(tree: Tree, environments: list[Record]) -> Libraries:
    from ..cuda_libraries.search import library_records  # if a fork searches, this process does not need it

    return library_records(tree, environments)


def _known(record: Record) -> Record:
    return {name: value for name, value in record.items() if value is not None}
