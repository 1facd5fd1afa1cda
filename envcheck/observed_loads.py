"""Take from a trial's memory map the files of libraries for which the search over files found none.

A framework may look where no file says that it does: it is told by a variable, by another package, by its own code.
What its process really held outranks what was inferred, for that framework and that library.
"""

from __future__ import annotations

import msgspec

from envcheck.snapshot import Environment, Framework, Listing, Load, Loaded, Snapshot

SOURCE = "memory map"
"""In ``read`` of a load: its path is what a process held, and nothing had predicted it."""


def observed_loads(snapshot: Snapshot) -> Snapshot:
    """The Snapshot with the path of each load that was not found, and was loaded in a trial all the same."""
    if snapshot.environments is None:
        return snapshot
    items = tuple(_environment(item) for item in snapshot.environments.items)
    if items == snapshot.environments.items:
        return snapshot
    return msgspec.structs.replace(snapshot, environments=msgspec.structs.replace(snapshot.environments, items=items))


def _environment(environment: Environment) -> Environment:
    found = environment.frameworks.items if environment.frameworks else ()
    maps = {item.name: item.trial.libraries for item in found if item.trial and item.trial.libraries}
    if not maps or environment.frameworks is None:
        return environment
    items = tuple(_framework(item, _map_of(item, maps)) for item in found)
    listing: Listing[Framework] = msgspec.structs.replace(environment.frameworks, items=items)
    return msgspec.structs.replace(environment, frameworks=listing)


def _map_of(framework: Framework, maps: dict[str, tuple[Loaded, ...]]) -> tuple[Loaded, ...]:
    """Of its own process, or for a plug-in of that of the framework which loads it."""
    base = framework.extends if framework.name.startswith(f"{framework.extends}-cuda") else None
    return maps.get(framework.name) or maps.get(base or "", ())


def _framework(framework: Framework, libraries: tuple[Loaded, ...]) -> Framework:
    if not libraries or not any(load.path is None for load in framework.loads or ()):
        return framework
    loads = tuple(_load(load, libraries) for load in framework.loads or ())
    return msgspec.structs.replace(framework, loads=loads)


def _load(load: Load, libraries: tuple[Loaded, ...]) -> Load:
    held = next((library for library in libraries if _goes_by(library.path, load.name)), None)
    if load.path is not None or held is None:
        return load
    return msgspec.structs.replace(
        load, path=held.path, version=held.version, unfound=(), read={**load.read, "path": SOURCE, "version": SOURCE}
    )


def _goes_by(path: str, name: str) -> bool:
    """Whether the file's name is the one asked for, or goes on from it: ``libcudnn.so.9.1.0`` for ``libcudnn.so.9``."""
    base = path.rpartition("/")[2]
    return base == name or base.startswith(f"{name}.")
