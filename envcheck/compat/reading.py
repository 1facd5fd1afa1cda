"""From components as people and tools write them to a Question: spellings, families of releases, bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, get_args

from envcheck.compat.containers import inside, read_container
from envcheck.compat.question import CONTAINER, AnyPatch, AskedGpu, BranchHead, LibraryWheel, Question, exactly
from envcheck.compat.wheels import published, release_meant, series_meant, wheels_of
from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import ARM, canonical, scheme
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.specifier import Specifier, Version, parse_specifier, parse_version
from envcheck.knowledge.tables import Machine, Os
from envcheck.knowledge.tables.packages import Trait
from envcheck.model.components import Component
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease, Flavour
from envcheck.text.lazy import lazy_pattern

# The many ways in which people, and tools, write one version: as the grammar of versions has it.

_PACKAGED = lazy_pattern(r"-[0-9]+(?:ubuntu|\.|~|$).*")
_MSVC = lazy_pattern(r"(?:19|14\.)([0-9]{2})(?:\.[0-9.]+)?")
_COUNT = lazy_pattern(r"^[0-9]{1,3} ?[x\N{MULTIPLICATION SIGN}] ?(?=[A-Za-z])")


def spelled(name: str, component: Component) -> Component:
    """A component, by its canonical name, with its exact value as the readers of values have it."""
    text = component.exact
    if text is None:
        return component
    write = _SPELLINGS.get(name, _version)
    return exactly(component.name, write(text.strip()))


def _version(text: str) -> str:
    """``12.x`` and ``12.*`` are families, as ``12`` is."""
    return re.sub(r"(?:\.[x*])+$", "", text, flags=re.IGNORECASE) if text[:1].isdigit() else text


def _cuda(text: str) -> str:
    """``cu124``, ``V12.4.131`` and ``12.4 Update 1`` are 12.4."""
    plain = re.sub(r"(?<=[0-9])[ -]?(?:u|update)[ -]?[0-9]+$", "", text.lower().removeprefix("v"))
    return str(CudaVersion.from_tag(plain)) if re.fullmatch(r"cu[0-9]{2,3}", plain) else _version(plain)


def _python(text: str) -> str:
    """``cp312``."""
    tag = re.fullmatch(r"(?:cp|py)([23])([0-9]{0,2})", text.lower())
    return _version(".".join(filter(None, tag.groups())) if tag else text)


_SPELLINGS: dict[str, Callable[[str], str]] = {
    "cuda": _cuda,
    "nvcc": _cuda,
    "cuda-compat": _cuda,
    # ``R550`` and ``v550.54.14``; ``550.54.14-0ubuntu1`` as packages are called.
    "driver": lambda text: _version(_PACKAGED.sub("", text.lower()).removeprefix("r").removeprefix("v")),
    "l4t": lambda text: _version(text.lower().removeprefix("r")),  # ``R36.4.3``
    "python": _python,
    # ``1940``, as _MSC_VER has it, and ``14.40``, as the toolset is called, are 19.40.
    "msvc": lambda text: f"19.{match[1]}" if (match := _MSVC.fullmatch(text)) else _version(text),
    "gpu": lambda text: _COUNT.sub("", text),  # ``8x H100``
}


def _drivers_within(matrix: Matrix, component: Component, os: Os) -> tuple[tuple[DriverRelease, ...], str]:
    """The releases that are meant, ascending, and what was assumed: both ends of each known branch, and the bounds
    themselves; between them nothing changes.
    """
    spec = _specifier(component)
    if spec is None:
        return (), ""
    kind = "linux" if os == "linux" else "windows"
    branches = [number for row in matrix.drivers if row.os == kind for number in {row.branch, row.until or row.branch}]
    ends = [release for branch in branches for release in (DriverRelease(branch, 0), BranchHead.of(branch))]
    named = [DriverRelease(*(*bound.numbers, 0, 0)[:3]) for bound in spec.bounds]
    lowest = {bound.numbers[0] for bound in spec.bounds if bound.operator == ">=" and len(bound.numbers) == 1}
    starts = {DriverRelease(branch, 0) for branch in lowest}
    admitted = {release for release in (*ends, *named) if spec.cover(Version(tuple(release))) == "all"} - starts
    admitted |= {BranchHead.of(branch) for branch in lowest if spec.cover(Version((branch,))) == "all"}
    since = "".join(f"from the newest release of R{branch} on" for branch in sorted(lowest)[-1:])
    return tuple(sorted(admitted)), since


def cuda_members(matrix: Matrix, component: Component) -> tuple[CudaVersion, ...]:
    """The CUDA versions that are meant: one, or the known toolkits of a family or within bounds."""
    text = component.exact
    if text is None:
        spec = _specifier(component)
        return tuple(matrix.admitted_toolkits(spec)) if spec else ()
    version = CudaVersion.parse(text)
    if version is None or "." in text:
        return (version,) if version else ()
    return tuple(member for member in matrix.toolkits if member.major == version.major)


def gpu_of(matrix: Matrix, component: Component) -> AskedGpu | None:
    """The GPU that is meant, by marketing name or compute capability."""
    text = component.exact or ""
    if re.fullmatch(r"(?:sm|compute)[_ ]?[0-9]{2,3}[af]?|[0-9]{1,2}\.[0-9]", text, re.IGNORECASE):
        capability = ComputeCapability.parse(text.lower().replace(" ", "_"))
        suffix = text[-1:].lower() if text[-1:].isalpha() else ""
        return AskedGpu(f"{capability.sm}{suffix}", capability, None, suffix) if capability else None
    model = matrix.find_gpu(text)
    capability = ComputeCapability.parse(model.compute_capability) if model else None
    return AskedGpu(model.name, capability, model) if model and capability else None


def version_members(matrix: Matrix, name: str, component: Component) -> tuple[Version, ...]:
    """The version that is meant, or the known ones within bounds."""
    numbering = scheme(name)
    if component.exact is not None:
        version = parse_version(component.exact, numbering)
        return (version,) if version else ()
    spec = _specifier(component)
    single = numbering._replace(numbers=1)
    known = [version._replace(scheme=single) for version in matrix.known_versions(name) or published(matrix, name)]
    return tuple(version for version in known if spec and spec.cover(version) == "all")


def _specifier(component: Component) -> Specifier | None:
    try:
        return parse_specifier(",".join(str(bound) for bound in component.bounds))
    except ValueError:
        return None


OS: dict[str, Os] = {
    "linux": "linux", "windows": "windows", "win": "windows", "win32": "windows", "wsl": "wsl", "wsl2": "wsl",
    "macos": "macos", "darwin": "macos",
}  # fmt: skip
MACHINES: dict[str, Machine] = {
    "x86_64": "x86_64", "amd64": "x86_64", "x64": "x86_64",
    "aarch64": "aarch64", "arm64": "aarch64", "sbsa": "aarch64",
}  # fmt: skip
_CUDA, _COMPAT = "cuda", "cuda-compat"
_CHOOSES: Trait = "chooses-cuda-of-torch"


def read_question(matrix: Matrix, components: Sequence[Component]) -> Question:
    named = [(canonical(component.name), component) for component in components]
    for place, (name, component) in enumerate(named):
        if any(bound.operator == "!=" for bound in component.bounds):
            raise UsageError(f"{str(component)!r}: name a version with {component.name}==VERSION; != names none")
        if name != "gpu" and any(name == other for other, _ in named[:place]):
            raise UsageError(f"{str(component)!r}: {name} is named twice; ask two separate questions")
    draft = _Draft(matrix)
    # The system for which alone something that was named is to be had, where none was and that is not Linux.
    for name, component in named if all(name != "os" for name, _ in named) else ():
        version = parse_version(component.exact, scheme(name)) if component.exact else None
        rows = wheels_of(matrix, name, version) if version else ()
        systems = {system.partition("-")[0] for row in rows for system in row.pythons}
        elsewhere = any(row.archive for row in rows) or any(name in row.packages for row in matrix.indexes)
        only = "" if elsewhere or len(systems) != 1 else systems.pop()
        if only in ("windows", "macos"):
            draft.fields["os"] = draft.assumed["os"] = OS[only]
            break
    for name, component in sorted(named, key=lambda item: item[0] != "os"):
        _READERS.get(name, _read_version)(draft, name, spelled(name, component))
        if matrix.has_trait(name, _CHOOSES) and name != _CUDA:
            _read_cuda(draft, _CUDA, spelled(_CUDA, component))
    labels: dict[str, str] = {}
    for name, component in named:
        labels[name] = f"{labels[name]}, {component}" if name in labels else str(component)
        if matrix.has_trait(name, _CHOOSES):
            labels.setdefault(_CUDA, str(component))
    return draft.finish(labels)


class _Draft:
    """A Question in the making."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self.fields: dict[str, Any] = {}
        self.versions: dict[str, Any] = {}
        self.gpus: list[AskedGpu] = []
        self.problems: list[Fit] = []
        self.assumed: dict[str, str] = {}
        self.libraries: dict[str, tuple[LibraryWheel, Component]] = {}

    @property
    def os(self) -> Os:
        found: Os = self.fields.get("os", "linux")
        return found

    def unknown(self, name: str, reason: str) -> None:
        self.problems.append(Fit(verdict="unknown", reason=reason).concerning(name))

    def finish(self, labels: dict[str, str]) -> Question:
        if "os" not in self.fields:
            self.assumed["os"] = "linux"
        if "machine" not in self.fields:
            # Jetsons, DRIVE and superchips have Arm processors.
            rows = [(gpu, self.matrix.capability_rows.get(gpu.capability)) for gpu in self.gpus]
            chips = any((row and row.tegra) or (gpu.model and gpu.model.superchip) for gpu, row in rows)
            machine = "aarch64" if ARM & labels.keys() or chips else "x86_64"
            self.fields["machine"] = self.assumed["machine"] = machine
        libraries: dict[str, LibraryWheel] = {}
        for name, (wheel, component) in self.libraries.items():
            members = version_members(self.matrix, name, component)
            if name not in labels and members:
                libraries[name] = wheel
                self.versions[name] = members
        container = self.fields.get("container")
        if container:
            self.fields["container"] = inside(container, self.fields, self.versions)
        return Question(
            matrix=self.matrix,
            labels=labels,
            gpus=tuple(self.gpus),
            versions=self.versions,
            problems=tuple(self.problems),
            assumed=self.assumed,
            libraries=libraries,
            **self.fields,
        )


_Reader = Callable[[_Draft, str, Component], None]


def _read_os(draft: _Draft, name: str, component: Component) -> None:
    text = (component.exact or "").lower()
    distributions = draft.matrix.distribution_names
    release = _release_of_os(distributions).fullmatch(text)
    base = release[1] if release else text
    os = OS.get(base) or ("linux" if release or base in distributions else None)
    if os is None:
        draft.unknown(name, f"{component}: known systems are {', '.join(get_args(Os))}")
        return
    draft.fields["os"] = os
    version = parse_version(release[2], scheme(base)) if release else None
    if version and (base in distributions or draft.matrix.knows(base)):
        draft.versions[base] = (version,)


@cache
def _release_of_os(distributions: frozenset[str]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, sorted(distributions)))
    return re.compile(rf"({names}|windows|win|macos)[-_ ]?(?:linux|stream)?[-_ ]?v?([0-9][0-9.]*)")


def _reader(field: str, value_of: Callable[[Matrix, str], Any], otherwise: str) -> _Reader:
    """What sets a field of the question; the text of what has no value goes on with ``otherwise``."""

    def read(draft: _Draft, name: str, component: Component) -> None:
        value = value_of(draft.matrix, (component.exact or "").lower())
        if value is None:
            draft.unknown(name, f"{component}{otherwise}")
        else:
            draft.fields[field] = value

    return read


def _profile(matrix: Matrix, text: str) -> str | None:
    profile = text.removeprefix("mig ").removeprefix("mig-")
    return profile if any(profile in row.profiles for row in matrix.migs) else None


def _read_driver(draft: _Draft, name: str, component: Component) -> None:
    """A branch alone is its newest release."""
    text, assumed = component.exact or "", ""
    release, dots = DriverRelease.parse(text), text.count(".")
    members: tuple[DriverRelease, ...] = (release,) if release else ()
    if component.exact is None:
        members, assumed = _drivers_within(draft.matrix, component, draft.os)
    elif release and not dots:
        members, assumed = (BranchHead.of(release.branch),), f"the newest release of R{release.branch}"
    elif release and dots == 1 and draft.os == "linux":
        members = (release, AnyPatch.of(release))
    if not members:
        draft.unknown(name, f"{component} is not a driver release such as 550.54.14")
        return
    draft.fields["drivers"] = members
    if assumed:
        draft.assumed[name] = assumed


def _read_cuda(draft: _Draft, name: str, component: Component) -> None:
    members = cuda_members(draft.matrix, component)
    if name == _COMPAT and len(members) != 1:
        draft.unknown(name, f"{component}: write the CUDA version of the package, as in cuda-compat==12.4")
        return
    if not members:
        draft.unknown(name, f"{component}: the matrix has no such CUDA version")
        return
    draft.fields |= {"compat": members[0]} if name == _COMPAT else {name: members}
    if name != _COMPAT and len(members) == 1 and component.exact and "." not in component.exact:
        component = exactly(component.name, str(members[0]))  # a major with one toolkit means it
    draft.versions[name] = version_members(draft.matrix, name, component)


def _read_gpu(draft: _Draft, name: str, component: Component) -> None:
    gpu = gpu_of(draft.matrix, component)
    draft.gpus += [gpu] if gpu else []
    if gpu is None:
        draft.unknown(name, f"{component}: this GPU is not in the matrix; write its marketing name or sm_NN")


def library_of(matrix: Matrix, name: str) -> tuple[str, LibraryWheel] | None:
    """The library in a distribution of NVIDIA, by its canonical name, and the distribution; None for any other."""
    match = re.fullmatch(r"nvidia-([a-z0-9-]+?)(?:-cu([0-9]{2}))?", name)
    family = next((row for row in matrix.families if match and row.wheel == match[1]), None)
    if match is None or family is None:
        return None
    library = match[1] if matrix.knows(match[1]) else canonical(family.name)
    return library, LibraryWheel(name, match[1], int(match[2]) if match[2] else None)


def _read_version(draft: _Draft, name: str, component: Component) -> None:
    library = library_of(draft.matrix, name)
    if not draft.matrix.knows(name) and (library is None or not draft.matrix.knows(library[0])):
        near = draft.matrix.similar_name(name)
        hint = f"; did you mean {near}?" if near else ""
        draft.unknown(name, f"the matrix has no component called {component.name}{hint}")
        return
    members = version_members(draft.matrix, name, component)
    if not members:
        draft.unknown(name, f"{component} is not a version that the matrix could know")
        return
    series = series_meant(draft.matrix, name, members[0]) if component.exact else None
    release = release_meant(draft.matrix, name, members[0]) if component.exact else None
    if release:
        members = (release,)
    if series:
        members, component = series[:1], exactly(component.name, str(series[0]))
        draft.assumed[name] = f"{series[0]}, whose first release is {series[1]}"
    draft.versions[name] = members
    if library:
        draft.libraries[library[0]] = (library[1], component)


def _read_python(draft: _Draft, name: str, component: Component) -> None:
    """``3.13t`` and ``cp313t`` are builds without the global interpreter lock."""
    match = re.fullmatch(r"(.*[0-9])t", component.exact or "")
    if match:
        draft.fields["free_threaded"] = True
        component = exactly(component.name, _python(match[1]))
    _read_version(draft, name, component)


def _read_container(draft: _Draft, name: str, component: Component) -> None:
    found = read_container(draft.matrix, component.exact or "")
    if isinstance(found, str):
        draft.unknown(name, f"{component}: {found}")
    else:
        draft.fields["container"] = found


_READERS: dict[str, _Reader] = {
    "os": _read_os,
    "machine": _reader(
        "machine",
        lambda _, text: MACHINES.get(text.replace("x86-64", "x86_64")),
        f": known machines are {', '.join(get_args(Machine))}",
    ),
    "kernel-module": _reader(
        "flavour",
        lambda _, text: text if text in get_args(Flavour) else None,
        f": the kernel module is {' or '.join(get_args(Flavour))}",
    ),
    "driver": _read_driver,
    "cuda": _read_cuda,
    "nvcc": _read_cuda,
    _COMPAT: _read_cuda,
    "python": _read_python,
    "mig": _reader("mig", _profile, ": the matrix knows no such MIG instance; write mig==1g.10gb"),
    "fabric-manager": _reader(
        "fabric_manager", lambda _, text: DriverRelease.parse(text), " is not a version such as 550.54.14"
    ),
    "gpu": _read_gpu,
    CONTAINER: _read_container,
}
