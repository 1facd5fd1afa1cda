"""``envcheck.require``: what a program needs, compared with what it has, at the top of that program.

It reads a few files of the search path, procfs and ``/dev`` in the program's own process: no child, no driver call, no
import of what is asked about. Of its own it imports ``packaging``, and msgspec with the rows of GPU models where a GPU
is named. Where the files do not say, the answer is not "yes".
"""

# ruff: noqa: PTH113, PTH208  a program waits for this, and need not have pathlib
from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from envcheck.errors import RequirementNotMet, UsageError
from envcheck.knowledge.names import is_within, unreadable
from envcheck.knowledge.specifier import parse_version
from envcheck.model.bounds import capability_holds, names_capability, same_words, sentence
from envcheck.model.components import Bound, Component, parse_components

_NEEDS_THE_DRIVER = ("cuda", "gpu-memory")  # No file says anything about these
_MOST = 1 << 16  # Bytes read of a file; the head of a METADATA is shorter
_ELSEWHERE = ("/dev/dxg", "/dev/nvgpu", "/dev/nvhost-gpu", "/dev/nvidiactl")
"""Device nodes of GPUs that need not be in the driver's folder of procfs: WSL, Tegra, a container without it."""


class Program(NamedTuple):
    """Where a program looks: the root of its files, its search path, variables and Python version."""

    root: str
    path: Sequence[str]
    variables: Mapping[str, str]
    python: str


class SeenGpu(NamedTuple):
    bus: str  # PCI address
    name: str
    uuid: str


def require(*requirements: str) -> None:
    """Raise RequirementNotMet unless this program has all of ``requirements``; its text says what was found.

    ``"torch>=2.4"`` is the distribution that this interpreter would import, ``"python>=3.11"`` the interpreter,
    ``"driver>=550"`` the running kernel module, ``"gpus>=8"`` the number of GPUs, ``"gpu>=sm_90"`` and ``"gpu==H100"``
    each of them; CUDA_VISIBLE_DEVICES counts. What the files do not show is not met. Raise UsageError for an expression
    that cannot be read, and for what only the driver can answer: ``envcheck.check(require=...)`` asks it.
    """
    here = Program("/", tuple(sys.path), os.environ, ".".join(map(str, sys.version_info[:3])))
    components = tuple(component for text in requirements for component in parse_components(text))
    if not components:
        raise UsageError('nothing is required: write require("torch>=2.4", "gpu>=sm_90")')
    unmet = tuple(unmet_by(here, components))
    if unmet:
        from envcheck.text.clean import brief  # noqa: PLC0415  needed for a sentence that quotes files, and for no other

        raise RequirementNotMet(brief("; ".join(unmet)))


def unmet_by(program: Program, components: Sequence[Component]) -> Iterator[str]:
    """A sentence for each of ``components`` that ``program`` lacks, or about which its files say nothing."""
    for component in components:
        if component.name in _NEEDS_THE_DRIVER:
            asked = f"envcheck.check(require={str(component)!r})"
            raise UsageError(f"{component}: no file says it; ask the driver with {asked}")
        for bound in component.bounds:
            if component.name != "gpu" and (why := unreadable(bound)):
                raise UsageError(f"{component}: {why}")
            known = bound.operator in ("==", "!=") or (names_capability(bound) and bound.operator != "~=")
            if component.name == "gpu" and not known:
                raise UsageError(f"{component}: a GPU is named with == or !=, its capability as in gpu>=sm_90")
    for component in components:
        found = _installed(program, component)
        if not found or not all(_holds(component.name, bound, value) for bound in component.bounds for value in found):
            yield sentence(component, found)


def _holds(name: str, bound: Bound, value: str) -> bool:
    if name != "gpu":
        return is_within(bound, name, value)
    if names_capability(bound):
        return capability_holds(bound, _capability(value))
    from envcheck.knowledge.gpu_names import find_model  # noqa: PLC0415  it brings msgspec

    actual = find_model(value)
    for model in map(str.strip, bound.value.split("|")):
        row = find_model(model)
        if (row and actual and row.name == actual.name) or same_words(model, value):
            return bound.operator == "=="
    return bound.operator != "=="


def _capability(name: str) -> str | None:
    from envcheck.knowledge.gpu_names import find_model  # noqa: PLC0415  as above

    row = find_model(name)
    return row.compute_capability if row else None


def _installed(program: Program, component: Component) -> tuple[str, ...] | None:
    """What is here of that name; None where the files do not say."""
    name = component.name
    if name == "python":
        return (program.python,)
    if name == "driver":
        text = _read(program, "/proc/driver/nvidia/version")
        found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", (text or "").partition("\n")[0])
        release = found[1] if found else (_read(program, "/sys/module/nvidia/version") or "").strip() or None
        return (release,) if release else None
    if name not in ("gpu", "gpus"):
        return _distribution(program, name)
    listed = _gpus(program)
    if listed is None:
        return None
    count, gpus = _visible(program, listed)
    if name == "gpus":
        return (str(count),)
    if gpus is None:
        return None
    names = tuple(gpu.name for gpu in gpus)
    complete = all(names) and not (any(map(names_capability, component.bounds)) and None in map(_capability, names))
    return names if complete else None


def _gpus(program: Program) -> list[SeenGpu] | None:
    """The GPUs of this program by PCI address; None where procfs need not show them."""
    folder = "/proc/driver/nvidia/gpus"
    try:
        names = sorted(os.listdir(_place(program, folder)))
    except FileNotFoundError:
        # There is none where the kernel has no NVIDIA driver at all, and no GPU shows elsewhere.
        modules = _read(program, "/proc/modules", 1 << 20)
        if modules is None or re.search(r"^(?:nvidia|nvgpu)\s", modules, re.MULTILINE):
            return None
        return None if any(os.path.lexists(_place(program, node)) for node in _ELSEWHERE) else []
    except OSError:
        return None
    found: list[tuple[SeenGpu, bool]] = []
    for name in names:
        text = _read(program, f"{folder}/{name}/information")
        if text is None:
            return None
        values = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
        node = _place(program, f"/dev/nvidia{values.get('Device Minor', '')}")
        model, uuid = (values.get(key, "").replace("N/A", "") for key in ("Model", "GPU UUID"))
        found.append((SeenGpu(name, model, "" if "?" in uuid else uuid), os.access(node, os.R_OK | os.W_OK)))
    # Inside a container procfs may show the GPUs of others, for which it has no node. Without any, none was made yet.
    given = [gpu for gpu, openable in found if openable]
    return given or [gpu for gpu, _ in found]


def _visible(program: Program, gpus: list[SeenGpu]) -> tuple[int, list[SeenGpu] | None]:
    """How many GPUs CUDA_VISIBLE_DEVICES leaves, and which; None where it cannot be told of several models."""
    value = program.variables.get("CUDA_VISIBLE_DEVICES")
    if value is None or not gpus:
        return len(gpus), gpus
    from envcheck.knowledge.relations.variables import read_visible  # noqa: PLC0415  it brings msgspec
    from envcheck.model.snapshot import Gpu  # noqa: PLC0415  as above

    reading = read_visible(value, [Gpu(pci_bus_id=gpu.bus, name=gpu.name, uuid=gpu.uuid or None) for gpu in gpus])
    count = reading.visible
    if len({gpu.name for gpu in gpus}) == 1 or count in (0, len(gpus)):
        return count, gpus[:count]
    chosen = [_named(entry.text, gpus, program) for entry in reading.entries[:count]]
    return count, (None if None in chosen else [gpu for gpu in chosen if gpu])


def _named(text: str, gpus: list[SeenGpu], program: Program) -> SeenGpu | None:
    """The GPU that an entry selects; numbers follow the bus only where CUDA is told so, else the models' speed."""
    if text in map(str, range(len(gpus))) and program.variables.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return gpus[int(text)]
    return next((gpu for gpu in gpus if gpu.uuid and gpu.uuid.lower().startswith(text.lower())), None)


def _distribution(program: Program, name: str) -> tuple[str, ...] | None:
    """The version of the first distribution of this name on the search path; empty where there is none."""
    unread = False
    for entry in program.path:
        metadata = []
        try:
            with os.scandir(_place(program, entry or os.curdir)) as entries:
                for each in entries:
                    stem, _, suffix = each.name.rpartition(".")
                    is_one = suffix in ("dist-info", "egg-info")
                    if is_one and re.sub(r"[-_.]+", "-", stem.partition("-")[0]).lower() == name:
                        metadata.append(each.path)
        except (FileNotFoundError, NotADirectoryError):
            unread = unread or os.path.isfile(_place(program, entry))  # an archive, which may hold distributions too
            continue
        except OSError:
            unread = True
            continue
        if metadata:  # several are left-overs
            versions = {_version_in(path) for path in metadata}
            known = tuple(version for version in versions if version)
            return known if len(known) == len(versions) == 1 else None
    return None if unread else ()


def _version_in(metadata: str) -> str | None:
    for file in (f"{metadata}/METADATA", f"{metadata}/PKG-INFO", metadata):
        text = _text(file, _MOST)
        found = re.search(r"^Version:[ \t]*(\S{1,100})\s*$", (text or "").partition("\n\n")[0], re.MULTILINE)
        if found and parse_version(found[1]):
            return found[1]
    return None


def _place(program: Program, path: str) -> str:
    return path if program.root == "/" else program.root + path


def _read(program: Program, path: str, most: int = _MOST) -> str | None:
    return _text(_place(program, path), most)


def _text(path: str, most: int) -> str | None:
    """The beginning of a file; None where it cannot be read. It is opened without waiting for a pipe's writer."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except (OSError, TypeError):
        return None
