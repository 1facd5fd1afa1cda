"""``--assume``: replace observed components by stated ones.

Assuming a GPU or a driver means another machine than this one: every observation of this machine's GPUs, driver,
kernel, fabric, container engines and shared memory is dropped. Of the variables those stay that frameworks and
libraries read: they come with the image or the job, as do files that a variable has the loader take for the driver's
libraries. What is not assumed then stays unknown, and rules that need it are skipped.
Assuming a distribution replaces it in the judged environment and leaves the rest of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec.structs import replace

from envcheck.errors import UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import ASSUMED, ASSUMPTION, Check, Evidence, Status, Subject
from envcheck.model.components import Component
from envcheck.model.snapshot import (
    Distribution,
    Driver,
    Environment,
    Framework,
    Gpu,
    Kernel,
    KernelModule,
    Listing,
    Planned,
    Platform,
    Snapshot,
    items_in,
)
from envcheck.model.versions import DriverRelease, Flavour
from envcheck.rules.facts.machine import OF_GROUP
from envcheck.text.lazy import lazy_pattern

SOURCE = "assumed"

Os = Literal["linux", "windows", "macos"]

_MACHINE = frozenset({"gpu", "gpus", "driver", "kernel-module"})
_PLATFORM = frozenset({"os", "machine"})
_GRANTED = {"shm": "shared_memory", "cpus": "cpu_limit"}
"""What a container is started with, and the field of the platform; the rows of limits are further ones (limit.NAME)."""
_LIMIT = "limit-"
_FRAMEWORKS = frozenset({"torch"})
_NOT_ASSUMABLE = frozenset({"cuda", "nvcc", "cudnn", "nccl", "tensorrt", "gcc", "jetpack", "l4t", "cuda-compat"})
_MOST_GPUS = 1024
_NEARLY = 0.82  # For difflib: one letter too many, too few or changed places in a word of three or more
_OF_THE_JOB = ("LD_LIBRARY_PATH", "LD_PRELOAD")  # Variables that lead the loader to libraries

_SIZE = lazy_pattern(r"([0-9]{1,15}(?:\.[0-9]{1,3})?)([KMGT]?)(?:i?B)?", re.IGNORECASE)
_ULIMIT = lazy_pattern(r"--ulimit (\w+)=")  # By the word that containers have for it

_ASKED = ("gpu", "driver", "os", "machine", "kernel-module")


def _of_machine(name: str) -> bool:
    return name in _MACHINE | _PLATFORM | _GRANTED.keys() or name.startswith(_LIMIT)


def assumes_machine(components: Sequence[Component]) -> bool:
    """Whether the GPUs and the driver of this machine are out of the question."""
    return any(component.name in _MACHINE for component in components)


def merged_components(general: Sequence[Component], special: Sequence[Component]) -> tuple[Component, ...]:
    """Both; of a component that both state the ``special`` one."""
    return tuple({component.name: component for component in (*general, *special)}.values())


def assume(observed: Snapshot, components: Sequence[Component], of_software: Collection[str] = ()) -> Snapshot:
    """``observed`` with the ``components`` in place; raise UsageError for one that cannot be assumed.

    ``of_software`` are the names of the variables that say nothing about the machine.
    """
    stated: dict[str, str] = {}
    for component in components:
        if component.exact is None:
            raise UsageError(f"--assume {component}: give an exact version, {component.name}==VERSION")
        if component.name in _NOT_ASSUMABLE:
            raise UsageError(
                f"--assume {component}: assume gpu, gpus, driver, kernel-module, os, machine, shm, cpus, limit.memlock "
                f"(and other limits), python or a distribution "
                f"by its PyPI name (torch==2.5.1+cu124)"
            )
        if component.name == "driver" and DriverRelease.parse(component.exact) is None:
            raise UsageError(f"--assume {component}: write a driver release, as in driver==550.54.14")
        if not _of_machine(component.name) and parse_version(component.exact) is None:
            raise UsageError(f"--assume {component}: {component.exact!r} is not a version")
        stated[component.name] = component.exact
    snapshot = _on_another_machine(observed, stated, of_software) if assumes_machine(components) else observed
    if _PLATFORM & stated.keys():
        snapshot = replace(snapshot, platform=_platform(snapshot.platform, stated))
    if granted := {name: value for name, value in stated.items() if name in _GRANTED or name.startswith(_LIMIT)}:
        snapshot = replace(snapshot, platform=_with_grants(snapshot.platform or Platform(source=SOURCE), granted))
    software = {name: value for name, value in stated.items() if not _of_machine(name)}
    if not software:
        return snapshot
    from difflib import get_close_matches  # noqa: PLC0415 - few assume packages

    for name in software:
        near = get_close_matches(name, sorted(_MACHINE | _PLATFORM | _GRANTED.keys()), 1, _NEARLY)
        if near and name not in _FRAMEWORKS:
            raise UsageError(f"--assume {name}: no part of a machine is called so; did you mean {near[0]!r}?")
    listing = snapshot.environments or Listing(items=(), complete=False)
    judged = next((env for env in listing.items if env.judged), None)
    base = judged or Environment(source=SOURCE, key=SOURCE, why="--assume", judged=True)
    others = tuple(env for env in listing.items if env is not judged)
    items = (_environment(base, software), *others)
    return replace(snapshot, environments=Listing(items=items, complete=listing.complete))


def _on_another_machine(observed: Snapshot, stated: Mapping[str, str], of_software: Collection[str]) -> Snapshot:
    """The facts with another machine in place of this one."""
    flavour = stated.get("kernel-module")
    if flavour is not None and flavour not in get_args(Flavour):
        raise UsageError(f"--assume kernel-module=={flavour}: write open or proprietary")
    module = KernelModule(source=SOURCE, loaded=True, flavour="open" if flavour == "open" else "proprietary")
    variables, platform = observed.variables, observed.platform
    if variables is not None:
        names = {*of_software, *_OF_THE_JOB}
        kept = {name: value for name, value in variables.values.items() if name in names}
        shown = "\n".join(kept.values())
        paths = tuple(each for each in variables.paths or () if each.path in shown)
        variables = replace(variables, values=kept, complete=False, paths=paths)
    if platform is not None:  # whoever runs the image or job decides about container engines and shared memory
        of_group = ("memory_limit", "task_limit", "cpu_limit")
        own = ("processors", "cpus", "processor_nodes", "memory_nodes", "nodes_without_memory")
        given = ("container_host", "shared_memory", "shared_memory_free", "limits", *of_group, *own)
        platform = replace(platform, **dict.fromkeys(given))
    return replace(
        observed,
        kernel=Kernel(source=SOURCE, nvidia=module) if flavour else None,
        driver=_driver(stated.get("driver"), observed.driver),
        gpus=_gpus(stated),
        fabric=None,
        variables=variables,
        platform=platform,
    )


def _driver(release: str | None, observed: Driver | None) -> Driver | None:
    """The stated driver, and of the files here those that no driver has and that a variable leads to on any machine."""
    kept = tuple(
        library
        for library in items_in(observed.libraries if observed else None)
        if library.found_by in _OF_THE_JOB and (library.refused or library.kind == "stub")
    )
    if not release and not kept:
        return None
    libraries = Listing(items=kept, complete=False) if kept else None
    return Driver(source=SOURCE, installed=True if release else None, release=release, libraries=libraries)


def _gpus(stated: Mapping[str, str]) -> Listing[Gpu] | None:
    name = stated.get("gpu")
    if name is None and "gpus" not in stated:
        return None
    count = stated.get("gpus", "1")
    if not re.fullmatch("[0-9]{1,4}", count) or int(count) > _MOST_GPUS:
        raise UsageError(f"--assume gpus=={count}: write a number of GPUs from 0 to {_MOST_GPUS}")
    capability = None
    if name and name.lower().startswith("sm_"):
        name, digits = name.lower(), name[3:].rstrip("af")
        capability = f"{digits[:-1]}.{digits[-1:]}"
    labels = (f"{SOURCE}-{number}" for number in range(int(count)))
    items = tuple(Gpu(source=SOURCE, label=label, name=name, compute_capability=capability) for label in labels)
    return Listing(items=items, complete=True)


def _platform(observed: Platform | None, stated: dict[str, str]) -> Platform:
    changed: dict[str, str] = {}
    if "os" in stated:
        if stated["os"].lower() not in get_args(Os):
            raise UsageError(f"--assume os=={stated['os']}: write linux, windows or macos")
        changed["os"] = stated["os"].lower()
    if "machine" in stated:
        changed["machine"] = stated["machine"]
    base = observed or Platform(source=SOURCE)
    return replace(base, **changed, read={**base.read, **dict.fromkeys(changed, SOURCE)})


def _with_grants(base: Platform, granted: Mapping[str, str]) -> Platform:
    """What a container or job is given, beside what is known of the platform."""
    fields: dict[str, Any] = {}
    for name, value in granted.items():
        field = _GRANTED.get(name)
        amount = _amount(name, value)
        if field:
            fields[field] = amount if field == "cpu_limit" else int(amount)
            continue
        rows = {word: row.name for row in load_matrix().limits for word in (row.name, *_ULIMIT.findall(row.flag))}
        if name.removeprefix(_LIMIT) not in rows:
            raise UsageError(f"--assume {name}: no limit is called so; there are {', '.join(sorted(rows))}")
        limit = rows[name.removeprefix(_LIMIT)]
        if limit in OF_GROUP:
            fields[OF_GROUP[limit]] = int(amount)
        else:
            fields["limits"] = {**fields.get("limits", base.limits or {}), limit: int(amount)}
    return replace(base, **fields, read={**base.read, **dict.fromkeys(fields, SOURCE)})


def _amount(name: str, value: str) -> float:
    found = _SIZE.fullmatch(value)
    if not found:
        raise UsageError(f"--assume {name}=={value}: write a number or a size, as in shm==64M or limit.memlock==64K")
    return float(found[1]) * 1024.0 ** " KMGT".index(found[2].upper() or " ")


def _environment(base: Environment, software: dict[str, str]) -> Environment:
    packages = {name: version for name, version in software.items() if name != "python"}
    kept = tuple(found for found in base.distributions or () if found.name not in packages)
    stated = tuple(Distribution(source=SOURCE, name=name, version=version) for name, version in packages.items())
    frameworks = base.frameworks or Listing()
    replaced = tuple(found for found in frameworks.items if found.name not in packages)
    named = [(name, version) for name, version in packages.items() if name in _FRAMEWORKS]
    assumed = tuple(Framework(source=SOURCE, name=name, version=version) for name, version in named)
    return replace(
        base,
        python=software.get("python", base.python),
        distributions=stated + kept,
        frameworks=Listing(items=assumed + replaced, complete=frameworks.complete),
        problem=None if "python" in software else base.problem,
    )


def as_planned(components: Sequence[Component]) -> tuple[Planned, ...]:
    """The stated distributions as entries of a plan, which is judged by the same rows."""
    return tuple(
        Planned(
            source=SOURCE,
            name=component.name,
            asked=str(component),
            bounds=str(component).removeprefix(component.name),
            version=component.exact,
            build=(component.exact or "").partition("+")[2],  # what is assumed was installed from somewhere
            file=f"--assume {component}",
            together=SOURCE,
        )
        for component in components
        if component.name != "python" and not _of_machine(component.name)
    )


def assumed_fit(matrix: Matrix, assumed: Sequence[Component]) -> tuple[Check, ...]:
    """One check where both are stated, or the matrix does not know the GPU; none where they do not fit, which a rule
    says better.
    """
    asked = [component for component in assumed if component.name in _ASKED]
    gpu = next((component for component in asked if component.name == "gpu"), None)
    unknown = _unknown_gpu(matrix, gpu) if gpu else None
    if unknown is not None:
        return (unknown,)
    if not {"gpu", "driver"} <= {component.name for component in asked}:
        return ()
    from envcheck.compat.answer import ask  # noqa: PLC0415 - few assume anything

    answer = ask(matrix, asked, suggest=False)
    if answer.verdict == "incompatible":
        return ()
    known = answer.verdict == "compatible"
    reasons = [reason for reason in answer.reasons if reason.verdict == answer.verdict]
    title = "The assumed driver supports the assumed GPU"
    check = _assumption(
        ", ".join(map(str, asked)),
        "pass" if known else "unknown",
        title if known else "Whether the assumed driver supports the assumed GPU is not known",
        "; ".join(reason.message for reason in reasons),
        *(Evidence(what=part.name, value=part.exact or "", source=ASSUMED) for part in asked),
        Evidence(what="matrix", value=answer.verdict, source="matrix"),
    )
    sources = dict.fromkeys(source for reason in reasons for source in reason.sources)
    return (replace(check, sources=tuple(sources)),)


def _assumption(key: str, status: Status, title: str, message: str, *evidence: Evidence) -> Check:
    return Check(
        id=f"{ASSUMPTION}@{key}",
        rule=ASSUMPTION,
        scope="node",
        layer="driver",
        subject=Subject(key=key),
        status=status,
        title=title,
        message=message,
        evidence=evidence,
    )


def _unknown_gpu(matrix: Matrix, stated: Component) -> Check | None:
    """The check for a GPU that the matrix does not know; None for one that it knows."""
    from envcheck.compat.reading import gpu_of  # noqa: PLC0415 - few assume anything
    from envcheck.text.wrap import did_you_mean  # noqa: PLC0415

    gpu, name = gpu_of(matrix, stated), stated.exact or ""
    if gpu is not None and gpu.capability in matrix.capability_rows:
        return None
    near = did_you_mean(name, {row.name.lower(): row for row in matrix.gpus})
    title = f"The assumed GPU {name} is not known{near}"
    message = f"{stated}: this GPU is not in the matrix; write its marketing name or sm_NN"
    return _assumption(str(stated), "unknown", title, message, Evidence(what="gpu", value=name, source=ASSUMED))
