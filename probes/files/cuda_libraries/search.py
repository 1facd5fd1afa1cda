"""Search for copies of CUDA's libraries, in environments first, and describe each as a ``Library`` of the Snapshot."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

from ...common.library_names import GPU_CODE_LISTED, family_of, is_numbered
from ...common.paths import printable
from ...common.record import Found, Record, record
from ...common.tree import Tree
from ..elf.info import ElfInfo, elf_info
from ..gpu_code.targets import gpu_targets
from ..owners.claims import Claim, ToolkitOwner, decide, declared, toolkit
from ..owners.system_packages import dpkg_owners, rpm_owners
from .answer import ASKS_BESIDE, LibraryVersion, answer
from .copies import Copies, Copy, add_environment, cached, places


def found(tree: Tree, environments: Sequence[Record]) -> tuple[list[Record], bool]:
    """The copies as ``Library`` records, and whether none was left out; GPU code is that of the first environment's.

    It uses ``key``, ``site_packages``, ``distributions`` and ``distributions_complete`` of an environment.
    """
    copies = Copies(tree)
    for environment in environments:
        add_environment(tree, copies, environment)
    for folder, origin, top in places(tree):
        copies.add_folder(folder, origin, top=top)
    paths, certain = cached(tree)
    for path in paths:
        copies.add(path, "other")
    copies.complete = copies.complete and certain
    wanted = {copy.path for copy in copies.found.values() if not copy.claims and copy.origin not in ("wheel", "conda")}
    for owners in (dpkg_owners, rpm_owners):
        for path, claims in owners(tree, wanted).items():
            copies.found[path].claims.extend(claims)
    tops = {copy.top for copy in copies.found.values() if copy.top}
    describer = Describer(tree, copies, {top: toolkit(tree, top) for top in sorted(tops)})
    judged = environments[0]["key"] if environments else None
    describer.list_code(copy for copy in copies.found.values() if judged and copy.environment == judged)
    records = (describer.record(copy) for copy in copies.found.values())
    return [record for record in records if record is not None], copies.complete


_CODE_SECONDS = 0.02
"""Seconds of CPU time for listing the GPU code of all copies; nothing should wait for it."""

_IN_NAME = re.compile(r"(?:[-+]cuda-?|-cu)(\d{1,2}(?:\.\d{1,2})?)(?!\d)|-(\d{1,2})-(\d{1,2})$")


class Describer:
    """Creates records; reads each file once, and lists GPU code until its time is used up."""

    def __init__(self, tree: Tree, copies: Copies, toolkits: dict[str, ToolkitOwner]) -> None:
        self._tree = tree
        self._copies = copies
        self._toolkits = toolkits
        self._answers: dict[str, LibraryVersion] = {}
        self._code: dict[str, list[str]] = {}
        self._started = time.thread_time()

    def list_code(self, copies: Iterable[Copy]) -> None:
        """List the GPU code of copies, those that matter most first, until the time for it is used up."""
        real = (copy for copy in copies if "stubs" not in copy.path.split("/"))
        listed = [copy for copy in real if copy.name.family in GPU_CODE_LISTED]
        for copy in sorted(listed, key=lambda copy: GPU_CODE_LISTED.index(copy.name.family)):
            if time.thread_time() - self._started > _CODE_SECONDS:
                return
            found = gpu_targets(self._tree.place(copy.path))
            if found.complete and found.targets:
                self._code[copy.path] = list(found.targets)

    def record(self, copy: Copy) -> dict[str, Any] | None:
        """The record of a copy; None for one that is not for 64-bit programs, which the loader skips."""
        place = self._tree.place(copy.path)
        head = elf_info(place)
        if head is None or head.bits == 32:
            return None
        is_elf = head.refused is None
        owner, altered = decide(copy.claims, place, copy.size)
        toolkit = self._toolkits.get(copy.top or "")
        owner = owner or (toolkit.claim if toolkit and not copy.claims else None)
        elf = f"elf {printable(copy.path)}"
        packages = {
            "wheel": "wheel metadata",
            "conda": f"file {printable(copy.environment or '')}/conda-meta",
            "dpkg": "file /var/lib/dpkg",
            "rpm": "file /var/lib/rpm",
            "toolkit": f"file {printable(copy.top or '')}",
        }.get(owner.kind if owner else copy.claims[0].kind if copy.claims else "", f"file {printable(copy.path)}")
        told, said_by = self._version_answer(copy, head) if is_elf else (LibraryVersion(), elf)
        stub = "stubs" in copy.path.split("/")
        # The driver's own libraries lie in the system's folders; a toolkit has stand-ins and newer ones (``compat``).
        own = copy.name.family in ("cuda", "nvidia-ml") and copy.origin == "system" and not stub
        stated = declared(owner, copy.name.family) or (toolkit.declared(copy.name.family) if toolkit else None)
        # The version in the file's name if it has three numbers, else in the file, else in a shorter name.
        numbers = copy.name.numbers
        whole = numbers.count(".") >= 2 and not is_numbered(copy.name.family, "apart")
        in_name = whole or (not told.version and "." in numbers and copy.name.family == "nvrtc-builtins")
        on_disk = Found(numbers, elf) if in_name else Found(told.version, said_by)
        return record(
            path=Found(printable(copy.path), elf if is_elf else f"file {printable(copy.path)}"),
            family=Found(copy.name.family, elf),
            soname=Found(printable(head.soname) if head.soname else None, elf),
            names=Found([printable(name) for name in copy.names[:32]] or None, elf),
            declared=Found(stated, packages),
            on_disk=None if stub else on_disk,
            cuda=Found(self._cuda(copy, head, owner, told), elf),
            owner=Found(printable(owner.text) if owner else None, packages),
            claimed_by=Found(
                [printable(claim.text) for claim in copy.claims] if len(copy.claims) > 1 else None, packages
            ),
            altered=Found(altered, packages),
            origin=Found("driver" if own else copy.origin, elf),
            environment=Found(printable(copy.environment) if copy.environment else None, elf),
            stub=Found(True if stub else None, elf),
            gpu_code=Found(self._code.get(copy.path), elf),
        )

    def _version_answer(self, copy: Copy, head: ElfInfo) -> tuple[LibraryVersion, str]:
        """The version in the file, or in the related file that has it, and its source."""
        own = self._answer(copy.path, copy.name.family, head)
        folder = copy.path.rpartition("/")[0]
        for start in ASKS_BESIDE.get(copy.name.family, ()) if own.version is None else ():
            for other in self._copies.found.values():
                beside, _, name = other.path.rpartition("/")
                known = elf_info(self._tree.place(other.path)) if beside == folder and name.startswith(start) else None
                if known is not None and _major(known.soname) == _major(head.soname):
                    return self._answer(other.path, other.name.family, known), f"elf {printable(other.path)}"
        return own, f"elf {printable(copy.path)}"

    def _answer(self, path: str, family: str, head: ElfInfo) -> LibraryVersion:
        if path not in self._answers:
            self._answers[path] = answer(self._tree.place(path), family, head.soname)
        return self._answers[path]

    def _cuda(self, copy: Copy, head: ElfInfo, owner: Claim | None, told: LibraryVersion) -> str | None:
        """Its CUDA version, from the file, its owner, the libraries it needs, its folder or its toolkit."""
        if copy.origin == "driver" or copy.name.family in ("cuda", "nvidia-ml"):
            return None
        if copy.name.family in ("cudart", "nvrtc", "nvJitLink") and told.version:
            return ".".join(told.version.split(".")[:2])
        needed = [family_of(name) for name in (head.soname or "", *head.needed)]
        majors = [
            name.numbers.split(".")[0] for name in needed if name and name.numbers and is_numbered(name.family, "cuda")
        ]
        texts = (owner.name, owner.version) if owner and owner.kind != "toolkit" else ()
        matches = (_IN_NAME.search(text) or re.search(r"~(\d{1,2}\.\d{1,2})\.\d{1,3}-", text) for text in texts)
        in_package = (".".join(filter(None, match.groups())) for match in matches if match)
        folder = re.search(r"/cu(\d{2})/", copy.path)
        found, of_folder = self._toolkits.get(copy.top or ""), folder[1] if folder else None
        of_toolkit = found.claim.version if found else None
        return told.cuda or next(in_package, None) or of_toolkit or next(iter(majors), None) or of_folder


def _major(soname: str | None) -> str:
    name = family_of(soname or "")
    return name.numbers.split(".")[0] if name else ""
