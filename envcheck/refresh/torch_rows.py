"""Regenerate the fields of ``[[torch]]`` rows that PyTorch's wheels provide, and add rows for new releases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple

import msgspec
import requests
from packaging.version import Version
from tomlkit.items import Table

from envcheck.model.versions import CudaVersion
from envcheck.refresh.document import RowChange, Work, assign, on_one_line, sources_of
from envcheck.refresh.index import IndexFile, RemoteWheel, in_parallel
from envcheck.refresh.kept import Kept
from envcheck.refresh.metadata import Metadata, pin
from envcheck.refresh.wheel_files import Release, WheelFile, newest_wheel

_TARGETS = re.compile(rb"sm_[0-9]{2,3}[af]?(?:[ ;](?:sm|compute)_[0-9]{2,3}[af]?){1,40}(?=\x00)")

_KIND = "torch build 1"  # What is kept of a file; the number changes with what is read of it


class TorchBuildFacts(NamedTuple):
    cuda: str | None  # As ``12.4``; an empty string for a CPU build, None if the wheel does not tell
    targets: tuple[str, ...] = ()
    """The output of ``torch.cuda.get_arch_list()``; empty if the wheel does not tell (before 1.6)."""


def build_of(file: IndexFile, session: requests.Session, kept: Kept) -> TorchBuildFacts:
    """The build in a wheel. Raises UsageError when it cannot be read."""
    if text := kept.get(file.sha256, _KIND):
        return msgspec.json.decode(text, type=TorchBuildFacts)
    with closing(RemoteWheel(file, session)) as wheel:
        found = read_build(wheel)
    kept.put(file.sha256, _KIND, msgspec.json.encode(found).decode())
    return found


def read_build(wheel: RemoteWheel) -> TorchBuildFacts:
    """Read the two files with the build's facts. Raises UsageError if they cannot be read."""
    text = wheel.read(lambda name: name == "torch/version.py", 1 << 16)
    cuda = cuda_of(text.decode("utf-8", "replace")) if text else None
    if not cuda:
        return TorchBuildFacts(cuda)
    library = wheel.read(lambda name: name == "torch/lib/libtorch_python.so", 1 << 28)
    return TorchBuildFacts(cuda, targets_of(library or b""))


def cuda_of(text: str) -> str | None:
    """The CUDA version in ``torch/version.py``."""
    match = re.search(r"^cuda\s*(?::[^=\n]*)?=\s*(?:None|'([^'\n]*)'|\"([^\"\n]*)\")\s*$", text, re.MULTILINE)
    if match is None:
        return None
    stated = match[1] or match[2]
    if not stated:
        return ""
    version = CudaVersion.parse(stated)
    return str(version) if version else None


def targets_of(library: bytes) -> tuple[str, ...]:
    """The architectures in the library's build flags, oldest first, native code before PTX."""
    found = max(_TARGETS.findall(library), key=len, default=b"")
    named = set(re.split("[ ;]", found.decode("ascii"))) - {""}
    return tuple(sorted(named, key=lambda name: (name.startswith("compute"), int(re.sub(r"\D", "", name)), name)))


TABLE = "torch"

_AT_ONCE = 4  # Releases that are read in parallel: a library in a wheel takes seconds

_PINS = {"cudnn": "nvidia-cudnn", "nccl": "nvidia-nccl", "triton": "triton"}
_FIELDS = ("default_cuda", "default_cuda_aarch64", "cudnn", "nccl", "triton")


class Readers(NamedTuple):
    build: Callable[[WheelFile], TorchBuildFacts]
    metadata: Callable[[WheelFile], Metadata]


class TorchFacts(NamedTuple):
    """The facts in the wheels of a release."""

    version: str
    fields: dict[str, Any]  # Fields of the row that the wheels provide
    builds: dict[str, TorchBuildFacts]  # By machine, the CUDA build in the Linux wheel on the index


def regenerate(work: Work, releases: Sequence[Release], read: Readers) -> Iterator[RowChange]:
    """Change the rows of ``[[torch]]`` in place; yields the differences."""
    known = {Version(str(row["version"])): row for row in work.document.rows(TABLE)}
    if not known:
        return
    # A post-release replaces its release: it has the same sources and better wheels.
    newest = {release.version.base_version: release for release in releases}
    wanted = [release for release in newest.values() if _base(release) >= min(known) and newest_wheel(release)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        every = in_parallel(pool, lambda release: look(release, read), wanted)
    for facts in every:
        version = Version(facts.version)
        if version in known:
            yield from _update(known[version], facts, work.generated.source)
        else:
            older = sum(Version(str(row["version"])) < version for row in work.document.rows(TABLE))
            builds = [_build(machine, build) for machine, build in facts.builds.items() if build.cuda]
            row = {field: facts.fields[field] for field in _FIELDS if field in facts.fields}
            row = {"version": facts.version, **row, "all_builds": False} | ({"builds": builds} if builds else {})
            work.document.insert(TABLE, older, row | {"source": [work.generated.source]})
            yield RowChange(f"torch {facts.version}", f"new row: CUDA {facts.fields.get('default_cuda') or 'none'}")


def look(release: Release, read: Readers) -> TorchFacts:
    """Read the wheels of a release; it must have one for Linux x86_64."""
    chosen = {machine: newest_wheel(release, machine=machine) for machine in ("x86_64", "aarch64")}
    wheels = {machine: wheel for machine, wheel in chosen.items() if wheel}
    builds = {machine: read.build(wheel) for machine, wheel in wheels.items()}
    metadata = read.metadata(wheels["x86_64"])
    fields: dict[str, Any] = {"default_cuda": builds["x86_64"].cuda}
    if "aarch64" in builds:
        fields["default_cuda_aarch64"] = builds["aarch64"].cuda
    for key, name in _PINS.items():  # the plain version if the pin is exact; names of CUDA libraries end in its major
        of_cuda = {item.name for item in metadata.requirements if item.name.rpartition("-cu")[0] == name}
        spec = next((found for each in (name, *sorted(of_cuda)) if (found := pin(metadata, each))), None)
        fields[key] = spec.removeprefix("==") if spec else None
    return TorchFacts(str(_base(release)), {key: value for key, value in fields.items() if value is not None}, builds)


def _base(release: Release) -> Version:
    return Version(release.version.base_version)


def _update(row: Table, facts: TorchFacts, source: str) -> Iterator[RowChange]:
    what = f"torch {facts.version}"
    cited = sources_of(row)
    if source not in cited:
        return
    known = row.unwrap()
    for field in _FIELDS:
        new, old = facts.fields.get(field), known.get(field)
        if new is not None and old != new:
            assign(row, field, new)
            yield RowChange(what, f"{field}: {_shown(old)} -> {_shown(new)}")
        elif new is None and old is not None and field in _PINS and cited == [source]:
            del row[field]
            yield RowChange(what, f"{field}: {_shown(old)} -> no longer stated")
    for machine, build in facts.builds.items():
        if not build.cuda:
            continue
        entries = list(row.get("builds", []))
        systems = [(each.get("os", "linux"), each.get("machine", "x86_64"), each["cuda"]) for each in entries]
        own = ("linux", machine, build.cuda)
        place = systems.index(own) if own in systems else None
        if place is None:
            if "builds" not in row:
                assign(row, "builds", [])
            row["builds"].append(on_one_line(_build(machine, build)))
            yield RowChange(what, f"new build: CUDA {build.cuda} for {machine}")
        elif build.targets and list(entries[place].get("targets", [])) != list(build.targets):
            before = " ".join(entries[place].get("targets", [])) or "none"
            stated = _build(machine, build) | entries[place].unwrap() | {"targets": list(build.targets)}
            row["builds"][place] = on_one_line(stated)
            yield RowChange(what, f"targets of CUDA {build.cuda} for {machine}: {before} -> {' '.join(build.targets)}")


def _build(machine: str, build: TorchBuildFacts) -> dict[str, Any]:
    entry: dict[str, Any] = {"cuda": build.cuda}
    if build.targets:
        entry["targets"] = list(build.targets)
    return entry | ({"machine": machine} if machine != "x86_64" else {})


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return " ".join(value) if isinstance(value, list) else str(value) or "none"
