"""PyTorch, read as files: nothing of it is imported.

What Linux wheels hold (looked at: 1.13.1, 2.0.1, 2.5.1, 2.8.0, 2.11.0, 2.14.1 and 2.15.0, for CUDA 11.7 to
13.2, and the CPU build of 2.13.0):

- ``torch/version.py`` assigns literals: ``__version__``, ``cuda``, ``hip`` (later also ``rocm`` and ``xpu``), the newer
  ones with annotations. ``__version__`` carries a label (``+cu124``) that the metadata of PyPI's wheels lacks.
- The targets it was compiled for stand in ``torch/lib/libtorch_python.so``, once, in ``.rodata``, as one text that a
  NUL ends: ``sm_75 sm_80 sm_86``. In 2.8.0 no NUL comes before it. No other library of 2.5.1, 2.8.0, 2.11.0 and 2.14.1
  holds such a text, nor does any of the CPU build.
- The metadata pins ``nvidia-cudnn-cuNN`` and (not in 1.13.1) ``nvidia-nccl-cuNN`` by ``==``; the wheels for CUDA 13
  take the other libraries through ``cuda-toolkit[...]``.
"""

from __future__ import annotations

import re
from typing import Any

from ._env_conda import CondaBuild, conda_build
from ._env_elf import constants
from ._env_paths import printable
from ._env_site import Gathered, Package, Site, packages
from ._torch_version import VersionFile, read_version_file

DISTRIBUTIONS = frozenset({"torch", "pytorch"})
"""The distribution on PyPI, and the package of conda."""

_TARGETS = re.compile(rb"(?:sm|compute)_\d{2,3}[a-z]?(?: (?:sm|compute)_\d{2,3}[a-z]?)*(?=\0)")
_DECLARED = re.compile(r"(nvidia|cuda|triton|pytorch-triton)\b")
_PIN = re.compile(r"([A-Za-z0-9._-]+)\s*\(?\s*==\s*([0-9][0-9A-Za-z.+]*)\s*\)?\s*(?:;|$)")
_LABEL = re.compile(r"\+.*")


def read(site: Site) -> dict[str, Any] | None:
    """The PyTorch that ``import torch`` would take, as a ``Framework``; None when there is no trace of one."""
    found = packages(site, "torch")
    package = found[0] if found else None
    wheels = site.installed("torch", "pip")
    wheel = _wheel_of(package, wheels)
    conda = conda_build(site.distributions, "pytorch")
    if not (package or wheels or conda):
        return None
    file = read_version_file(site.request, package.path) if package else VersionFile()
    facts = Gathered("torch", package.path if package else None)
    _add_build(facts, file, conda)
    _add_declared(facts, wheel, conda)
    _add_targets(facts, site, package, file)
    return facts.record(
        [*_missing(package, wheel, file), *_contradictions(file, wheel, conda), *_shadowing(found, wheels)]
    )


def _wheel_of(package: Package | None, wheels: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The metadata of the package: that beside it, else (an editable installation) the first; PYTHONPATH's has none."""
    beside = [wheel for wheel in wheels if package and _folder(wheel) == package.folder]
    elsewhere = [] if package and package.by_variable else wheels
    return next(iter([*beside, *elsewhere]), None)


def _add_build(facts: Gathered, file: VersionFile, conda: CondaBuild | None) -> None:
    if file.version:
        facts.add(f"file {file.path}", version=file.version, cuda=file.cuda, hip=file.hip, cpu_only=file.cpu_only)
    elif conda:
        facts.add(conda.source, version=conda.version, cuda=conda.cuda, cpu_only=conda.cpu_only)


def _add_declared(facts: Gathered, wheel: dict[str, Any] | None, conda: CondaBuild | None) -> None:
    if wheel:
        declared = [line for line in wheel.get("requires") or () if _DECLARED.match(line)]
        pins = {"cudnn": _pinned(declared, "nvidia-cudnn-"), "nccl": _pinned(declared, "nvidia-nccl-")}
        facts.add(wheel["source"], version=wheel["version"], requires=declared or None, **pins)
        facts.add(wheel["source"], cpu_only=True if wheel["version"].endswith("+cpu") else None)
    if conda:
        facts.add(conda.source, cudnn=conda.cudnn)


def _pinned(lines: list[str], prefix: str) -> str | None:
    """The one version to which the lines pin the distribution whose name starts with ``prefix``."""
    matches = (_PIN.match(line) for line in lines)
    pins = {match[2] for match in matches if match and match[1].startswith(prefix)}
    return pins.pop() if len(pins) == 1 else None


def _add_targets(facts: Gathered, site: Site, package: Package | None, file: VersionFile) -> None:
    """What a CUDA build was compiled for; one target alone counts only if nothing else in the file looks like one."""
    if package is None or not file.cuda:
        return
    library = f"{package.path}/lib/libtorch_python.so"
    texts = {match.group().decode() for match in _TARGETS.finditer(constants(site.request, library) or b"")}
    lists = {text for text in texts if " " in text} or texts
    if len(lists) == 1:
        facts.add(f"elf {library}", gpu_code=lists.pop().split())


def _missing(package: Package | None, wheel: dict[str, Any] | None, file: VersionFile) -> list[str]:
    if package is None:
        if wheel and wheel.get("editable"):
            return ["it is installed in editable mode, and no file tells where its folder is"]
        return ["its metadata is there, its folder is not: an incomplete installation"]
    if not file.there:
        return [f"{printable(package.path)} holds no version.py: an incomplete or shadowing torch"]
    return [f"{printable(file.path)} tells too little: {file.problem}"] if file.problem else []


def _contradictions(file: VersionFile, wheel: dict[str, Any] | None, conda: CondaBuild | None) -> list[str]:
    if file.version is None:
        return []
    said: list[str] = []
    if wheel and not _same(file.version, wheel["version"]):
        said.append(f"its metadata says {wheel['version']}, its version.py says {file.version}")
    if conda and not _same(file.version, conda.version):
        said.append(f"conda installed {conda.version} ({conda.build}), its version.py says {file.version}")
    elif conda and None not in {conda.cpu_only, file.cpu_only} and conda.cpu_only != file.cpu_only:
        said.append(f"conda installed the build {conda.build}, its version.py says CUDA {file.cuda or 'none'}")
    return said


def _same(first: str, second: str) -> bool:
    """Equal, where a label (``+cu124``) counts only if both have one."""
    if "+" in first and "+" in second:
        return first == second
    return _LABEL.sub("", first) == _LABEL.sub("", second)


def _shadowing(found: list[Package], wheels: list[dict[str, Any]]) -> list[str]:
    """A torch that PYTHONPATH puts before the one that is installed."""
    if not found or not found[0].by_variable:
        return []
    taken = found[0]
    others = [package.path for package in found[1:] if package.regular and not package.by_variable]
    others += [wheel["path"] for wheel in wheels if _folder(wheel) != taken.folder]
    return [f"PYTHONPATH puts {printable(taken.path)} before {printable(others[0])}"] if others else []


def _folder(wheel: dict[str, Any]) -> str:
    return str(wheel["path"].rpartition("/")[0])
