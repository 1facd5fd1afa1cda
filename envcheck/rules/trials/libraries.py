"""Compare the files that a framework loaded with those that its files predict (``--deep``)."""

from __future__ import annotations

import re

from envcheck.enrich.loads import SOURCE
from envcheck.model.checks import Evidence
from envcheck.model.snapshot import Load, Loaded, frameworks_in
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, passed, rule
from envcheck.rules.facts.frameworks import full_name
from envcheck.rules.facts.machine import plural

_LIBRARY = re.compile(r"lib([\w+-]+?)(?:[-.][0-9a-f]{8})?\.so(?:\.[\d.]*)?$", re.ASCII)
_OF_THE_DRIVER = frozenset({"cuda", "nvidia-ml"})


@rule(layer="library", per="framework")
def loaded_library_differs(subject: FrameworkSubject, _facts: Facts) -> Outcome | None:
    """A framework loads other libraries than its files predict."""
    framework, predicted = subject.framework, _predicted(subject)
    libraries = (framework.trial.libraries if framework.trial else None) or ()
    compared = []
    for library in (library for library in libraries if library.family in predicted):
        # One of another major version than the predicted file, which is loaded too, is not used: preloading opens
        # whatever file has the library's name.
        loads, file = predicted[library.family or ""], library.path.rpartition("/")[2]
        named = any(file == load.name or file.startswith(f"{load.name}.") for load in loads)
        if named or not any(other.path in _paths(loads) for other in libraries):
            compared.append(library)
    differing = [library for library in compared if library.path not in _paths(predicted[library.family or ""])]
    if not compared:
        return None
    if not differing:
        title = f"{full_name(framework)} loaded {plural(len(compared), 'library')} from where its files predict"
        evidence = (_evidence(library) for library in compared)
        return passed(title, *evidence, decided_by="framework-ran")
    families = dict.fromkeys(library.family or "" for library in differing)
    names = ", ".join(f"lib{family}" for family in families)
    return Outcome(
        status="note",
        title=f"{full_name(framework)} loaded a different {names} than its files predict",
        message="The loaded files count: at run time the search differed from the predicted one.",
        evidence=tuple(
            part
            for library in differing
            for part in (_evidence(library), *map(_expected, predicted[library.family or ""]))
        ),
        decided_by="framework-ran",
    )


def _predicted(subject: FrameworkSubject) -> dict[str, list[Load]]:
    """The CUDA libraries that the framework or its plug-in should load, by family."""
    own = subject.framework
    records = [
        own,
        *(other for other in frameworks_in(subject.environment) if other.name.startswith(f"{own.name}-cuda")),
    ]
    found: dict[str, list[Load]] = {}
    for load in (load for record in records for load in record.loads or ()):
        match = _LIBRARY.search(load.name)
        if match and load.path and match[1] not in _OF_THE_DRIVER:
            found.setdefault(match[1], []).append(load)
    return found


def _paths(loads: list[Load]) -> set[str]:
    """The predicted paths; loads that only the process showed have none."""
    return {load.path for load in loads if load.path and load.read.get("path") != SOURCE}


def _evidence(library: Loaded) -> Evidence:
    version = f" ({library.version})" if library.version else ""
    return Evidence(what=f"lib{library.family} loaded", value=f"{library.path}{version}", source="memory map")


def _expected(load: Load) -> Evidence:
    if load.read.get("path") == SOURCE:
        return Evidence(what="predicted", value=f"{load.name} is not found", source=load.source or "elf")
    version = f" ({load.version})" if load.version else ""
    return Evidence(what="predicted", value=f"{load.path}{version}", source=load.source or "elf")
