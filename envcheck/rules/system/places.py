"""The folders in which programs write when they run on the GPU."""

from __future__ import annotations

import re
from typing import NamedTuple

from envcheck.knowledge.tables import any_named
from envcheck.knowledge.tables.environment import CacheRow
from envcheck.model.checks import STATUSES, Evidence, Fix, Status
from envcheck.model.snapshot import Environment, FolderAccess, Variables
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.machine import title_of_first

_TEMPORARY, _USER, _SHARED = "$TEMPORARY", "{user}", "/dev/shm"  # noqa: S108 - nothing is put there
_LITTLE, _MIB = 64 << 20, 1 << 20  # Free bytes below which a cache of compiled code does not fit
_SHOWN = 8
_ELSEWHERE = "Name folders in which this user may write, on a file system with space that is not mounted noexec"
_NAMELESS = "this user has no name: neither USER nor the passwd file has one"


class _Folder(NamedTuple):
    row: CacheRow
    path: str = ""
    why: str = ""  # Why it cannot be used; empty where it can
    variable: str = ""  # The variable that names it; empty: none does

    @property
    def status(self) -> Status:
        return "warn" if self.variable and self.row.status == "note" else self.row.status


@rule(layer="framework")
def cache_not_writable(_environment: Environment, facts: Facts) -> Outcome | None:
    """A folder that a framework writes in cannot be written."""
    for_cuda = any(each.is_known_cuda_build for each in facts.frameworks)
    if facts.variables.places is None or not facts.may_have_gpus or not for_cuda:
        return None
    names = {"cuda", *facts.packages, *(each.name for each in facts.frameworks)}
    rows = [row for row in facts.matrix.caches if any_named(names, row.reader)]
    used = [row for row in rows if not any(facts.variable(name) == value for name, value in row.off.items())]
    found = [each for row in used if (each := _judged(row, facts.variables)).why]
    if not found:
        return passed("The folders that the frameworks write in can be written")
    found.sort(key=lambda each: STATUSES.index(each.status))
    first, source = found[0], facts.variables.source
    return Outcome(
        status=first.status,
        title=title_of_first(f"No place for {first.row.title}", found),
        message=" ".join(dict.fromkeys(each.row.effect for each in found)),
        evidence=tuple(
            Evidence(each.row.title, f"{each.path}: {each.why}", each.variable or source) for each in found[:_SHOWN]
        ),
        decided_by="declared",
        sources=facts.matrix.cite(*(each.row for each in found)),
        fixes=_fixes(found, facts),
    )


def _judged(row: CacheRow, variables: Variables) -> _Folder:
    usual = {"~": (variables.home or "").rstrip("/"), _TEMPORARY: variables.temporary, "": ""}
    kinds = {each.path: each.leads_to for each in variables.paths or ()}
    for template in row.places:
        start, slash, rest = template.partition("/")
        if start == "~" and not variables.home:
            return _Folder(row, template, "HOME is not set, and the passwd file has no home folder for this user")
        if start == _TEMPORARY and not variables.temporary:
            path = variables.values.get("TMPDIR", "/tmp")  # noqa: S108
            return _Folder(row, path, "there is no temporary folder to write in", "TMPDIR")
        name, _, flag = start[1:].partition(" ")
        folder = usual[start] if start in usual else variables.values.get(name)
        if flag:
            folder = (re.findall(rf"{flag}=(\S+)", folder or "") or [""])[-1]
        if row.existing and start not in usual and kinds.get(folder or "") != "folder":
            continue
        path = f"{folder}{slash}{rest}"
        if kinds.get(path) == "file":
            return _Folder(row, path, "it is not a folder", name)
        if _USER in rest and variables.user_known is False:
            return _Folder(row, path, _NAMELESS)
        if folder or start in usual:
            return _Folder(row, path, _obstacle(path, variables, runs=row.runs), "" if start in usual else name)
    return _Folder(row)


def _obstacle(path: str, variables: Variables, *, runs: bool) -> str:
    """What stands against writing at ``path``, by the nearest place above it that was looked at."""
    place = _nearest(path, variables.places or ())
    if place is None or place.obstacle:
        return place.obstacle if place else ""
    if runs and place.noexec:
        return "its file system is mounted noexec, so compiled code cannot be loaded from it"
    if place.free is not None and place.free < _LITTLE:
        return f"its file system has {place.free // _MIB} MiB left for this user"
    if place.free_files is not None and place.free_files < _SHOWN:
        return "its file system takes no more files of this user (inodes)"
    return ""


def _nearest(path: str, places: tuple[FolderAccess, ...]) -> FolderAccess | None:
    def is_above(place: FolderAccess) -> bool:
        if _USER in path:  # only those of this user that cannot be written are listed
            return place.path.startswith(path.partition(_USER)[0])
        return f"{path}/".startswith(f"{place.path.rstrip('/')}/")

    known = [place for place in places if is_above(place)]
    if not known and _USER in path:
        return _nearest(path.rpartition("/")[0], places)
    return max(known, key=lambda place: len(place.path), default=None)


def _fixes(found: list[_Folder], facts: Facts) -> tuple[Fix, ...]:
    """A folder that serves for each, by its variable; and what makes the usual one writable, where that can be done."""
    variables = facts.variables
    named: dict[str, str] = {}
    seen = {each.path for each in variables.places or ()}
    usual = (variables.temporary, variables.home, _SHARED)
    top = next((path for path in usual if path in seen and not _obstacle(path, variables, runs=True)), "")
    for each in found:
        name, _, flag = each.row.places[0].partition("/")[0].removeprefix("$").partition(" ")
        if each.why == _NAMELESS:  # programs ask for the name, whatever folder is named
            named["USER"] = f"user-{facts.platform.uid or 0}"
        elif name.isidentifier():
            own = f"{top}/caches-{facts.platform.uid or 0}/{each.row.name}"
            if flag:  # beside the other flags of its variable
                set_now = named.get(name, variables.values.get(name, ""))
                own = set_now.replace(f"{flag}={each.path}", f"{flag}={own}")
            # Nobody makes a folder for temporary files.
            named.update({"TMPDIR": top} if f"${name}" in (_TEMPORARY, "$TMPDIR") else {name: own})
    words = ("env", *(f"{name}={path}" for name, path in named.items()), "python") if top and named else ()
    fixes = (Fix("Give this user a name" if [*named] == ["USER"] else _ELSEWHERE, command=words),)
    below_home = [each for each in found if not each.variable and each.path.startswith(variables.home or "~")]
    at_home = [each.why for each in below_home if each.why != _NAMELESS]
    if at_home and facts.in_container:
        return (*fixes, Fix("Mount a volume that can be written at the home folder, set HOME to it (-v …, -e HOME=…)"))
    if variables.home and any("system" not in why for why in at_home):
        return (*fixes, Fix("Give the home folder back to this user (sudo may have left files of root in it)"))
    return fixes
