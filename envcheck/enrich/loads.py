"""Complete the libraries that frameworks load, from a trial's memory map and from the copies on disk.

A framework may look where no file says that it does: a variable, another package or its own code may say so. What its
process really held outranks what was inferred, for that framework and that library. The loader's search and the
inventory of copies are read apart and meet here, by the real path of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from envcheck.model.snapshot import Environment, Framework, Library, Load, Snapshot, frameworks_in

SOURCE = "memory map"
"""The source of a path that comes from a process's memory map and was not predicted."""

_MOST = 16
"""Most copies elsewhere that are listed for a library that is not found."""


def observed_loads(snapshot: Snapshot) -> Snapshot:
    """The Snapshot with the paths of loads that were not found but were loaded in a trial."""

    def complete(framework: Framework, environment: Environment) -> Framework:
        found = frameworks_in(environment)
        maps = {item.name: item.trial.libraries for item in found if item.trial and item.trial.libraries}
        # A plug-in is in the process of its framework.
        base = framework.extends if framework.name.startswith(f"{framework.extends}-cuda") else None
        loads = []
        for load in framework.loads or ():
            # libcudnn.so.9.1.0 stands for the requested libcudnn.so.9.
            libraries = () if load.path is not None else maps.get(framework.name) or maps.get(base or "", ())
            fits = (each for each in libraries if f"{each.path.rpartition('/')[2]}.".startswith(f"{load.name}."))
            library = next(fits, None)
            if library is not None:
                read = {**load.read, "path": SOURCE, "version": SOURCE}
                load = msgspec.structs.replace(  # noqa: PLW2901
                    load, path=library.path, version=library.version, unfound=(), read=read
                )
            loads.append(load)
        return _with_loads(framework, loads)

    found = with_frameworks(snapshot, complete)
    return snapshot if found == snapshot else found


def with_frameworks(snapshot: Snapshot, change: Callable[[Framework, Environment], Framework]) -> Snapshot:
    """The Snapshot with every framework as ``change`` makes it."""
    if snapshot.environments is None:
        return snapshot
    environments = []
    for item in snapshot.environments.items:
        listing = item.frameworks
        if listing is not None:
            listing = msgspec.structs.replace(listing, items=tuple(change(each, item) for each in listing.items))
        environments.append(msgspec.structs.replace(item, frameworks=listing))
    listed = msgspec.structs.replace(snapshot.environments, items=tuple(environments))
    return msgspec.structs.replace(snapshot, environments=listed)


def _with_loads(framework: Framework, loads: list[Load]) -> Framework:
    return msgspec.structs.replace(framework, loads=tuple(loads)) if framework.loads else framework


def join_loads(snapshot: Snapshot) -> Snapshot:
    """The Snapshot with ``Load.owner``, ``Load.version`` and ``Load.unfound`` filled in where they are unknown."""
    if not snapshot.libraries or not snapshot.libraries.items:
        return snapshot
    copies = _Copies(snapshot.libraries.items)
    return with_frameworks(
        snapshot,
        lambda framework, environment: _with_loads(
            framework, [_load(load, copies, environment.key) for load in framework.loads or ()]
        ),
    )


def version_of(library: Library) -> str | None:
    """The file's version: what its version call returned or its data says, extended to its package's version where that
    begins with it.
    """
    own = library.loaded or library.on_disk
    if own is None:
        return None if library.altered else library.declared
    stated = library.declared
    return stated if stated and (stated == own or stated.startswith(f"{own}.")) else own


class _Copies:
    """The copies by path and by the names under which they are requested."""

    def __init__(self, libraries: Iterable[Library]) -> None:
        self.by_path: dict[str, Library] = {}
        self.by_name: dict[str, dict[str, None]] = {}
        for library in libraries:
            self.by_path[library.path] = library
            paths = () if library.stub else (library.soname or "", library.path, *library.names)
            for name in {path.rpartition("/")[2] for path in paths}:
                self.by_name.setdefault(name, {})[library.path] = None

    def named(self, name: str, key: str) -> tuple[str, ...]:
        """Paths of the copies with a name, those in the environment ``key`` first."""
        found = [self.by_path[path] for path in self.by_name.get(name, ())]
        return tuple(copy.path for copy in sorted(found, key=lambda copy: (copy.environment != key, copy.path)))[:_MOST]


def _load(load: Load, copies: _Copies, key: str) -> Load:
    if load.path is None:
        return msgspec.structs.replace(load, unfound=load.unfound or copies.named(load.name, key))
    library = copies.by_path.get(load.path)
    if library is None:
        return load
    new: dict[str, str] = {}
    read = dict(load.read)
    if library.owner is not None and load.owner is None:
        new["owner"], read["owner"] = library.owner, library.source_of("owner")
    version = version_of(library)
    if version and (load.version is None or version.startswith(f"{load.version}.")):  # the load's may be shorter
        fields = (name for name in ("loaded", "on_disk", "declared") if getattr(library, name) == version)
        field = next(fields, None)
        new["version"], read["version"] = version, library.source_of(field) if field else library.source
    return msgspec.structs.replace(load, **new, read=read) if new else load
