"""Conclusions that need the whole paste, after its pieces are merged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from envcheck.importers.paste import SOURCE
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import (
    Distribution,
    Environment,
    Framework,
    Gpu,
    Listing,
    Snapshot,
    frameworks_in,
    items_in,
)
from envcheck.model.versions import CondaBuild

NAMED = "named "  # The beginning of a GPU's label where a message gives its name but no index or UUID

IN_MIG_MODE = f"{NAMED}MIG mode"  # The label of a GPU of which only is said that it is in MIG mode

STATED = "stated "  # The beginning of a GPU's label where only prose mentions it

OF_MODULE = {"name": "the module"}
"""Marks a package of which only the project or module was named: "CuPy 13.0", ``onnxruntime.__version__``."""


def assemble(merged: Snapshot) -> Snapshot:
    """Add the framework that the listed packages contain, and assign the GPUs that messages name."""
    environments, gpus = merged.environments, merged.gpus
    if environments is not None:
        items = tuple(_with_torch(_without_modules(found)) for found in environments.items)
        kept = tuple(found for found in items if found != _EMPTY)
        environments = Listing(items=kept, complete=environments.complete) if kept else None
    if gpus is not None:
        gpus = _settled(gpus)
    return msgspec.structs.replace(merged, environments=environments, gpus=gpus)


_EMPTY = Environment(source=SOURCE, key=SOURCE, why=SOURCE, judged=True)


def with_packages(merged: Snapshot, part: Snapshot) -> Snapshot:
    """Add the packages that a piece of the text lists and that the pieces before it do not name.

    One that only its module's answer named is now known by its own name.
    """
    known = {found.name: found for found in _packages(merged)}
    new: dict[str, Distribution] = {}
    for found in _packages(part):
        before = known.get(found.name)
        named = before is not None and before.read == OF_MODULE and found.read != OF_MODULE
        if before is None or (named and _is_same_release(before.version, found.version)):
            new[found.name] = found
    if not new or merged.environments is None:
        return merged
    first, *others = merged.environments.items
    kept = tuple(new.pop(found.name, found) for found in first.distributions or ())
    first = msgspec.structs.replace(first, distributions=(*kept, *new.values()))
    environments = msgspec.structs.replace(merged.environments, items=(first, *others))
    return msgspec.structs.replace(merged, environments=environments)


def _packages(snapshot: Snapshot) -> tuple[Distribution, ...]:
    items = items_in(snapshot.environments)
    return (items[0].distributions or ()) if items else ()


def _without_modules(found: Environment) -> Environment:
    """The environment without packages that stand for a listed one: ``onnxruntime`` for ``onnxruntime-gpu``."""
    listed = found.distributions or ()
    stands_for = {
        module.name: other.name
        for module in listed
        if module.read == OF_MODULE
        for other in listed
        if other.name.startswith(f"{module.name}-") and _is_same_release(module.version, other.version)
    }
    known = frameworks_in(found)
    for framework in known:
        # Asked by its module's name, in a text that lists one package of the project: tensorflow of tensorflow-cpu.
        packages = [other.name for other in listed if other.name.startswith(f"{framework.name}-")]
        unlisted = framework.version is None and all(each.name != framework.name for each in listed)
        role = load_matrix().role_of(framework.name)
        if unlisted and role and len(packages) == 1 and load_matrix().role_of(packages[0]) is role:
            stands_for[framework.name] = packages[0]
    if not stands_for:
        return found
    names = {framework.name for framework in known}
    renamed = tuple(
        framework
        if stands_for.get(framework.name, framework.name) in names
        else msgspec.structs.replace(framework, name=stands_for[framework.name])
        for framework in known
    )
    frameworks = msgspec.structs.replace(found.frameworks, items=renamed) if found.frameworks else None
    kept = tuple(each for each in listed if each.name not in stands_for)
    return msgspec.structs.replace(found, distributions=kept, frameworks=frameworks)


def _is_same_release(stated: str, listed: str) -> bool:
    """Whether one of two versions says no more than the beginning of the other."""
    numbers = sorted((stated.partition("+")[0], listed.partition("+")[0]), key=len)
    return f"{numbers[1]}.".startswith(f"{numbers[0]}.")


def _with_torch(found: Environment) -> Environment:
    """The environment with the torch of its list, which completes torch's own report unless their versions differ."""
    listed = _listed_torch(found.distributions or ())
    if listed is None:
        return found
    frameworks = found.frameworks or Listing()
    own = next((framework for framework in frameworks.items if framework.name == "torch"), None)
    torch = own or listed
    release = listed.version.partition("+")[0] if listed.version else ""
    if own and (not own.version or not release or own.version.partition("+")[0] == release):
        gaps = {
            name: getattr(listed, name)
            for name in ("version", "cuda", "cudnn", "cpu_only")
            if getattr(own, name) is None and getattr(listed, name) is not None
        }
        if own.cuda and gaps.get("cpu_only"):
            del gaps["cpu_only"]
        torch = msgspec.structs.replace(own, **gaps)
    others = tuple(framework for framework in frameworks.items if framework is not own)
    return msgspec.structs.replace(found, frameworks=Listing(items=(torch, *others), complete=frameworks.complete))


def _listed_torch(distributions: Sequence[Distribution]) -> Framework | None:
    """PyTorch as the package lists describe it: pip's entry, else conda's with its build string."""
    names = load_matrix().names_with("distributes-torch")
    holding = [found for name in names for found in distributions if found.name == name]
    if not holding:
        return None
    first = holding[0]
    builds = (found.build for found in holding if found.build and found.version == first.version)
    build = CondaBuild.parse(next(builds, ""))
    cuda = str(build.cuda) if build.cuda else None
    if not (build.cuda or build.cpu or first.build) and first.channel == "conda":
        # A command or an ``environment.yml`` asks for CUDA beside conda's PyTorch, whose build it leaves open.
        choosing = load_matrix().names_with("chooses-cuda-of-torch")
        chosen = {found.version for found in distributions if found.name in choosing and found.channel == "conda"}
        numbers = chosen.pop().split(".") if len(chosen) == 1 else []
        cuda = ".".join(numbers[:2]) if len(numbers) > 1 else None
    return Framework(
        source=SOURCE,
        name="torch",
        version=first.version,
        cuda=cuda,
        cudnn=build.cudnn,
        cpu_only=True if build.cpu or "+cpu" in first.version else False if cuda else None,
    )


def _settled(listing: Listing[Gpu]) -> Listing[Gpu]:
    """Merge GPUs that are known by name into the listed GPUs with that name.

    An unlisted GPU stays unless the list is complete; one that only prose mentions counts only where nothing else names
    a GPU.
    """
    items = list(listing.items)
    # A capability that was asked of the current device belongs to the only GPU that there is.
    nameless = [gpu for gpu in items if (gpu.label or "").startswith(NAMED) and not (gpu.name or gpu.mig)]
    others = [gpu for gpu in items if gpu not in nameless]
    if nameless and others:
        items = others
        if len(others) == 1 and len(nameless) == 1 and others[0].compute_capability is None:
            items = [msgspec.structs.replace(others[0], compute_capability=nameless[0].compute_capability)]
    # MIG mode that no line gives to a GPU belongs to the one model that there is.
    in_mode = next((gpu for gpu in items if gpu.label == IN_MIG_MODE), None)
    others = [gpu for gpu in items if gpu is not in_mode]
    if in_mode is not None and others:
        alike = len({_bare(gpu.name) for gpu in others}) == 1 and not any(gpu.mig for gpu in others)
        items = [msgspec.structs.replace(gpu, mig=in_mode.mig) for gpu in others] if alike else others
    named = [gpu for gpu in items if (gpu.label or "").startswith(NAMED)]
    stated = [gpu for gpu in items if (gpu.label or "").startswith(STATED)]
    listed = [gpu for gpu in items if gpu not in named and gpu not in stated]
    if not listed and not named:
        return Listing(items=tuple(items), complete=listing.complete)
    names = {gpu.name for gpu in (*named, *stated)}
    if len(listed) == 1 and listing.complete and listed[0].name is None and len(names) == 1:
        listed = [msgspec.structs.replace(listed[0], name=names.pop())]  # its own was cut off
    for gpu in named:
        same = [place for place, other in enumerate(listed) if _bare(other.name) == _bare(gpu.name)]
        for place in same:
            capability = listed[place].compute_capability or gpu.compute_capability
            listed[place] = msgspec.structs.replace(listed[place], compute_capability=capability)
        if not same and not (listing.complete and listed):
            listed.append(gpu)
    return Listing(items=tuple(listed), complete=listing.complete)


@lru_cache(maxsize=1_000)  # each of the GPUs that a text names is compared with all others
def _bare(name: str | None) -> str:
    return re.sub(r"^(?:nvidia |geforce |tesla )+", "", (name or "?").lower())
