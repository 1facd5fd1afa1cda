"""From components as they were written to a Question."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, get_args

from envcheck.compat.fit import Fit
from envcheck.compat.gpu_code import capability_row
from envcheck.compat.gpu_driver import Flavour
from envcheck.compat.question.judgement import Judgement
from envcheck.compat.question.members import cuda_members, driver_members, gpu_of, version_members
from envcheck.compat.question.names import SYSTEMS, canonical, scheme
from envcheck.compat.question.question import AskedGpu, Question
from envcheck.compat.question.rows import is_known, like
from envcheck.compat.question.spelling import spelled
from envcheck.compat.specifier import parse_version
from envcheck.compat.tables import Machine, Os, Tables
from envcheck.components import Component
from envcheck.errors import UsageError

_OS: dict[str, Os] = {
    "linux": "linux",
    "windows": "windows",
    "win": "windows",
    "wsl": "wsl",
    "wsl2": "wsl",
    "macos": "macos",
    "darwin": "macos",
}
_MACHINES: dict[str, Machine] = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "x64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "sbsa": "aarch64",
}
_RELEASE_OF_OS = re.compile(r"(ubuntu|debian|rhel|rocky|centos|fedora|sles|windows|win|macos)[-_ ]?v?([0-9][0-9.]*)")
_SUPERCHIP = re.compile(r"G[BH][0-9]")
"""Superchips with an Arm processor: GH200, GB200, GB10."""


def read_question(tables: Tables, components: Sequence[Component]) -> Question:
    """Read ``components``; raise UsageError for what no question can be made of."""
    named = [(canonical(component.name), component) for component in components]
    _check(named)
    draft = _Draft(tables)
    for name, component in sorted(named, key=lambda item: item[0] != "os"):
        _READERS.get(name, _read_version)(draft, name, spelled(name, component))
    labels: dict[str, str] = {}
    for name, component in named:
        labels[name] = f"{labels[name]}, {component}" if name in labels else str(component)
    return draft.finish(labels)


def _check(named: Sequence[tuple[str, Component]]) -> None:
    seen: set[str] = set()
    for name, component in named:
        if any(bound.operator == "!=" for bound in component.bounds):
            raise UsageError(f"{str(component)!r}: write what is there, {component.name}==VERSION; != says what is not")
        if name in seen and name != "gpu":
            raise UsageError(f"{str(component)!r}: {name} is named twice; ask two questions")
        seen.add(name)


class _Draft:
    """A Question in the making."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.fields: dict[str, Any] = {}
        self.versions: dict[str, Any] = {}
        self.gpus: list[AskedGpu] = []
        self.problems: list[Judgement] = []
        self.assumed: dict[str, str] = {}

    @property
    def os(self) -> Os:
        found: Os = self.fields.get("os", "linux")
        return found

    def unknown(self, name: str, reason: str) -> None:
        self.problems.append(Judgement((name,), Fit(verdict="unknown", reason=reason)))

    def finish(self, labels: dict[str, str]) -> Question:
        if "os" not in self.fields:
            self.assumed["os"] = "linux"
        if "machine" not in self.fields:
            self.fields["machine"] = self.assumed["machine"] = self._machine(labels)
        return Question(
            labels=labels,
            gpus=tuple(self.gpus),
            versions=self.versions,
            problems=tuple(self.problems),
            assumed=self.assumed,
            **self.fields,
        )

    def _machine(self, labels: dict[str, str]) -> Machine:
        """Jetsons and superchips have Arm processors."""
        if SYSTEMS & labels.keys():
            return "aarch64"
        for gpu in self.gpus:
            row = capability_row(self.tables, gpu.capability)
            if (row and row.tegra) or (gpu.model and _SUPERCHIP.match(gpu.model.name)):
                return "aarch64"
        return "x86_64"


def _read_os(draft: _Draft, name: str, component: Component) -> None:
    text = (component.exact or "").lower()
    release = _RELEASE_OF_OS.fullmatch(text)
    base = release[1] if release else text
    os = _OS.get(base) or ("linux" if release or base == "ubuntu" else None)
    if os is None:
        draft.unknown(name, f"{component}: the systems are {', '.join(get_args(Os))}")
        return
    draft.fields["os"] = os
    version = parse_version(release[2], scheme(base)) if release else None
    if version and is_known(draft.tables, base):
        draft.versions[base] = (version,)


def _read_machine(draft: _Draft, name: str, component: Component) -> None:
    machine = _MACHINES.get((component.exact or "").lower().replace("x86-64", "x86_64"))
    if machine is None:
        draft.unknown(name, f"{component}: the machines are {', '.join(get_args(Machine))}")
        return
    draft.fields["machine"] = machine


def _read_flavour(draft: _Draft, name: str, component: Component) -> None:
    text = (component.exact or "").lower()
    if text not in get_args(Flavour):
        draft.unknown(name, f"{component}: the kernel module is {' or '.join(get_args(Flavour))}")
        return
    draft.fields["flavour"] = text


def _read_driver(draft: _Draft, name: str, component: Component) -> None:
    members, assumed = driver_members(draft.tables, component, draft.os)
    if not members:
        draft.unknown(name, f"{component} names no driver release such as 550.54.14")
        return
    draft.fields["drivers"] = members
    if assumed:
        draft.assumed[name] = assumed


def _read_cuda(draft: _Draft, name: str, component: Component) -> None:
    members = cuda_members(draft.tables, component)
    if not members:
        draft.unknown(name, f"{component}: the matrix has no such CUDA version")
        return
    draft.fields[name] = members
    draft.versions[name] = version_members(draft.tables, name, component)


def _read_compat(draft: _Draft, name: str, component: Component) -> None:
    members = cuda_members(draft.tables, component)
    if len(members) != 1:
        draft.unknown(name, f"{component}: write the CUDA version of the package, as in cuda-compat==12.4")
        return
    draft.fields["compat"] = members[0]
    draft.versions[name] = version_members(draft.tables, name, component)


def _read_gpu(draft: _Draft, name: str, component: Component) -> None:
    gpu = gpu_of(draft.tables, component)
    if gpu is None:
        draft.unknown(name, f"{component}: the matrix knows no such GPU; write its marketing name or sm_NN")
        return
    draft.gpus.append(gpu)


def _read_version(draft: _Draft, name: str, component: Component) -> None:
    if not is_known(draft.tables, name):
        near = like(draft.tables, name)
        hint = f"; did you mean {near}?" if near else ""
        draft.unknown(name, f"the matrix has no component called {component.name}{hint}")
        return
    members = version_members(draft.tables, name, component)
    if not members:
        draft.unknown(name, f"{component} names no version that the matrix could know")
        return
    draft.versions[name] = members


_READERS: dict[str, Callable[[_Draft, str, Component], None]] = {
    "os": _read_os,
    "machine": _read_machine,
    "kernel-module": _read_flavour,
    "driver": _read_driver,
    "cuda": _read_cuda,
    "nvcc": _read_cuda,
    "cuda-compat": _read_compat,
    "gpu": _read_gpu,
}
