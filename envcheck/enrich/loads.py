"""Complete the libraries that frameworks load, from a trial's memory map and from the copies on disk."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from envcheck.snapshot import Environment, Framework, Library, Listing, Load, Loaded, Snapshot, frameworks_in

# Take from a trial's memory map the files of libraries for which the search over files found none.
#
# A framework may look where no file says that it does: a variable, another package or its own code may say so.
# What its process really held outranks what was inferred, for that framework and that library.

SOURCE = "memory map"
"""The source of a path that comes from a process's memory map and was not predicted."""

_MOST = 16
"""Most copies elsewhere that are listed for a library that is not found."""


def observed_loads(snapshot: Snapshot) -> Snapshot:
    """The Snapshot with the paths of loads that were not found but were loaded in a trial."""
    if snapshot.environments is None:
        return snapshot
    items = tuple(_observed_environment(item) for item in snapshot.environments.items)
    if items == snapshot.environments.items:
        return snapshot
    return msgspec.structs.replace(snapshot, environments=msgspec.structs.replace(snapshot.environments, items=items))


def _observed_environment(environment: Environment) -> Environment:
    found = frameworks_in(environment)
    maps = {item.name: item.trial.libraries for item in found if item.trial and item.trial.libraries}
    if not maps or environment.frameworks is None:
        return environment
    items = tuple(_observed_framework(item, _map_of(item, maps)) for item in found)
    listing: Listing[Framework] = msgspec.structs.replace(environment.frameworks, items=items)
    return msgspec.structs.replace(environment, frameworks=listing)


def _map_of(framework: Framework, maps: dict[str, tuple[Loaded, ...]]) -> tuple[Loaded, ...]:
    """The memory map of its own process, or of the framework's process for a plug-in."""
    base = framework.extends if framework.name.startswith(f"{framework.extends}-cuda") else None
    return maps.get(framework.name) or maps.get(base or "", ())


def _observed_framework(framework: Framework, libraries: tuple[Loaded, ...]) -> Framework:
    if not libraries or not any(load.path is None for load in framework.loads or ()):
        return framework
    loads = tuple(_observed_load(load, libraries) for load in framework.loads or ())
    return msgspec.structs.replace(framework, loads=loads)


def _observed_load(load: Load, libraries: tuple[Loaded, ...]) -> Load:
    held = next((library for library in libraries if _matches_name(library.path, load.name)), None)
    if load.path is not None or held is None:
        return load
    return msgspec.structs.replace(
        load, path=held.path, version=held.version, unfound=(), read={**load.read, "path": SOURCE, "version": SOURCE}
    )


def _matches_name(path: str, name: str) -> bool:
    """Whether a file's name is the requested one, or extends it: ``libcudnn.so.9.1.0`` for ``libcudnn.so.9``."""
    base = path.rpartition("/")[2]
    return base == name or base.startswith(f"{name}.")


# Tell of each library that a framework would load whose it is and of what version, by the copies found on disk.
#
# The loader's search and the inventory of copies are read apart and meet here, by the real path of the file.


def join_loads(snapshot: Snapshot) -> Snapshot:
    """The Snapshot with ``Load.owner``, ``Load.version`` and ``Load.unfound`` filled in where they are unknown."""
    if not snapshot.libraries or not snapshot.libraries.items or not snapshot.environments:
        return snapshot
    copies = _Copies(snapshot.libraries.items)
    items = tuple(_environment(item, copies) for item in snapshot.environments.items)
    return msgspec.structs.replace(snapshot, environments=msgspec.structs.replace(snapshot.environments, items=items))


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
            for name in () if library.stub else {library.soname or "", *map(_name, (library.path, *library.names))}:
                self.by_name.setdefault(name, {})[library.path] = None

    def named(self, name: str, key: str) -> tuple[str, ...]:
        """Paths of the copies with a name, those in the environment ``key`` first."""
        found = [self.by_path[path] for path in self.by_name.get(name, ())]
        return tuple(copy.path for copy in sorted(found, key=lambda copy: (copy.environment != key, copy.path)))[:_MOST]


def _environment(environment: Environment, copies: _Copies) -> Environment:
    if environment.frameworks is None:
        return environment
    frameworks = tuple(_framework(item, copies, environment.key) for item in environment.frameworks.items)
    listing: Listing[Framework] = msgspec.structs.replace(environment.frameworks, items=frameworks)
    return msgspec.structs.replace(environment, frameworks=listing)


def _framework(framework: Framework, copies: _Copies, key: str) -> Framework:
    if not framework.loads:
        return framework
    return msgspec.structs.replace(framework, loads=tuple(_load(load, copies, key) for load in framework.loads))


def _load(load: Load, copies: _Copies, key: str) -> Load:
    if load.path is None:
        return msgspec.structs.replace(load, unfound=load.unfound or copies.named(load.name, key))
    library = copies.by_path.get(load.path)
    if library is None:
        return load
    told = {"owner": library.owner, "version": version_of(library)}
    new = {name: value for name, value in told.items() if value is not None and getattr(load, name) is None}
    longer = _longer(load.version, told["version"])
    if longer:
        new["version"] = longer
    if not new:
        return load
    sources = {"owner": library.source_of("owner"), "version": _source(library, told["version"])}
    return msgspec.structs.replace(load, **new, read={**load.read, **{name: sources[name] for name in new}})


def _source(library: Library, version: str | None) -> str:
    fields = ("loaded", "on_disk", "declared")
    return next((library.source_of(name) for name in fields if getattr(library, name) == version), library.source)


def _longer(own: str | None, told: str | None) -> str | None:
    """The inventory's version where it extends the load's version."""
    return told if own and told and told.startswith(f"{own}.") else None


def _name(path: str) -> str:
    return path.rpartition("/")[2]
