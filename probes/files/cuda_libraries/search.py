"""Search for copies of CUDA's libraries, in environments first, and describe each as a ``Library`` of the Snapshot."""

from __future__ import annotations

import os
import posixpath
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ...common.lazy import lazy_pattern
from ...common.library_names import GPU_CODE_LISTED, LibraryFileName, family_of, is_numbered
from ...common.paths import printable
from ...common.record import Found, Record, record
from ...common.tree import Tree, refused
from ..elf.info import ElfInfo, elf_info
from ..gpu_code.targets import gpu_targets
from ..loader.setup import OF_THE_DRIVER, Paths, library_path, search_path
from ..owners.claims import Claim, ToolkitOwner, decide, declared, toolkit
from ..owners.conda import owners as owners_by_conda
from ..owners.system_packages import dpkg_owners, rpm_owners
from ..owners.wheels import libraries_by
from .answer import ASKS_BESIDE, LibraryVersion, answer

LIMIT = 5000


class Copy(NamedTuple):
    path: str  # Real path, as the examined machine sees it
    name: LibraryFileName
    size: int
    origin: str
    environment: str | None
    top: str | None  # Real path of the toolkit that contains it
    names: list[str]  # Links to it
    claims: list[Claim]


class Copies:
    """Collects copies; the first to add a file decides its origin."""

    def __init__(self, tree: Tree) -> None:
        self.found: dict[str, Copy] = {}
        self.complete = True
        self._tree = tree
        self._paths = Paths(tree)

    def add_folder(self, folder: str, origin: str, environment: str | None = None, top: str | None = None) -> None:
        names, certain = self._tree.folder_names(folder)
        self.complete = self.complete and certain
        for name in names:
            if name.startswith("lib") and family_of(name):
                self.add(f"{folder}/{name}", origin, environment, top)

    def add(
        self, path: str, origin: str, environment: str | None = None, top: str | None = None, claim: Claim | None = None
    ) -> None:
        """Add a path that may be a library; ``claim`` is its owner's claim."""
        found = self._real(path)
        if found is None:
            return
        real, size, linked = found
        copy = self.found.get(real)
        if copy is None:
            name = family_of(posixpath.basename(real)) or family_of(posixpath.basename(path))
            if name is None or len(self.found) >= LIMIT:
                self.complete = self.complete and name is None
                return
            copy = self.found[real] = Copy(real, name, size, origin, environment, top, [], [])
        if path != real and path not in copy.names:
            copy.names.append(path)
        if claim is not None and not linked and claim not in copy.claims:
            copy.claims.append(claim)  # the owner of a link (a development package) does not own the file

    def _real(self, path: str) -> tuple[str, int, bool] | None:
        """Real path and size of a regular file, and whether ``path`` ends in a link to it."""
        folder, name = posixpath.split(path)
        inside = self._paths.folder(folder)
        real: str | None = f"{inside.rstrip('/')}/{name}" if inside else None
        linked = False
        try:
            status = os.lstat(self._tree.place(real, follow=False)) if real else None
            if real and status and stat.S_ISLNK(status.st_mode):
                linked = True
                real = self._tree.resolve(real)
                status = os.lstat(self._tree.place(real, follow=False)) if real else None
        except (OSError, ValueError) as error:
            refused(path, error)
            return None
        if real is None or status is None or not stat.S_ISREG(status.st_mode):
            return None
        return real, status.st_size, linked


_BUNDLES = (
    "torch/lib", "tensorrt_libs", "tensorrt_lean_libs", "tensorrt_dispatch_libs", "tensorrt", "cutensor/lib",
    "cusparselt/lib", "cupy/.data/lib", "jaxlib/cuda", "onnxruntime/capi", "paddle/libs", "mxnet",
)  # fmt: skip
"""Folders of site-packages in which wheels bundle copies; read whether or not a RECORD lists them."""

_CONDA = ("lib", "lib/stubs", "targets/*/lib", "targets/*/lib/stubs", "cuda-compat", "nvvm/lib64")


def add_environment(tree: Tree, copies: Copies, environment: Record) -> None:
    key = environment["key"]
    distributions = environment.get("distributions") or ()
    for distribution in distributions:
        if distribution["channel"] != "pip" or not distribution["path"].endswith(".dist-info"):
            continue
        by_conda = distribution.get("installer") == "conda"  # conda's own record takes precedence
        for recorded in libraries_by(tree, distribution["path"]) or ():
            claim = Claim("wheel", distribution["name"], distribution["version"], recorded.size, recorded.hash)
            copies.add(recorded.path, "conda" if by_conda else "wheel", key, claim=None if by_conda else claim)
    for site in environment.get("site_packages") or ():
        names = set(tree.folder_names(site)[0])
        origin = {"site-packages": "wheel", "dist-packages": "system"}.get(site.rpartition("/")[2], "other")
        folders = [f"{site}/{bundle}" for bundle in _BUNDLES if bundle.partition("/")[0] in names]
        folders += [f"{site}/{name}" for name in sorted(names) if name.endswith(".libs")]
        if "nvidia" in names:
            folders += tree.expand(f"{site}/nvidia/*/lib")
        for folder in folders:
            copies.add_folder(folder, origin, key)
    conda = [item for item in distributions if item["channel"] == "conda"]
    for path, claims in owners_by_conda(tree, key, conda).items() if conda else ():
        for claim in claims:
            copies.add(path, "conda", key, claim=claim)
    for pattern in _CONDA if conda else ():
        for folder in tree.expand(f"{key}/{pattern}"):
            copies.add_folder(folder, "conda", key)
    copies.complete = copies.complete and bool(environment.get("distributions_complete"))


_TOOLKITS = ("/usr/local/cuda*", "/opt/cuda*", "/opt/nvidia/hpc_sdk/*/*/cuda/*", "/usr/lib/cuda")
_TOOLKIT_FOLDERS = ("lib64", "lib", "targets/*/lib", "lib64/stubs", "lib/stubs", "targets/*/lib/stubs")
_NO_TOOLKITS = frozenset({"/", "/usr", "/usr/local"})
"""Values of CUDA_HOME where a distribution spreads the toolkit over system folders, which are searched anyway."""

_VENDOR = (
    "/usr/local/tensorrt*/lib", "/usr/local/TensorRT*/lib", "/opt/tensorrt*/lib", "/opt/TensorRT*/lib",
    "/usr/local/cudnn*/lib", "/usr/local/cudnn*/lib64", "/opt/cudnn*/lib", "/usr/local/nccl*/lib",
    "/opt/nvidia/nccl*/lib", "/opt/nvidia/nvshmem*/lib", "/opt/nvidia/deepstream/*/lib",
    "/opt/nvidia/hpc_sdk/*/*/math_libs/*/lib64", "/opt/nvidia/hpc_sdk/*/*/math_libs/*/targets/*/lib",
    "/opt/nvidia/hpc_sdk/*/*/comm_libs/*/*/lib", "/opt/nvidia/hpc_sdk/*/*/comm_libs/nccl/lib",
    "/opt/nvidia/hpc_sdk/*/*/comm_libs/nvshmem/lib", "/opt/magma*/lib", "/usr/local/magma/lib",
)  # fmt: skip
_VENDOR_VARIABLES = ("CUDNN_PATH", "NCCL_HOME", "TENSORRT_HOME", "NVSHMEM_HOME", "CUTENSOR_HOME", "MAGMA_HOME")

_SYSTEM = (
    "/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/usr/lib/*-linux-gnu/stubs", "/lib64", "/usr/lib64", "/lib",
    "/usr/lib", "/usr/local/lib", "/usr/local/lib64", "/usr/lib/nvidia-cuda-toolkit/lib64",
)  # fmt: skip


def places(tree: Tree) -> Iterator[tuple[str, str, str | None]]:
    """All existing folders (maybe links), their kinds and their toolkits, those of the most specific kind first."""
    usual = [path for pattern in _TOOLKITS for path in tree.expand(pattern)]
    for top in dict.fromkeys(tree.resolve(path) for path in (*usual, *_named(tree, ("CUDA_HOME", "CUDA_PATH")))):
        if top is None or top in _NO_TOOLKITS:
            continue
        conda = tree.resolve(f"{top}/conda-meta") is not None
        for pattern in (*_TOOLKIT_FOLDERS, "extras/CUPTI/lib64", "nvvm/lib64", "compat", "compat/*"):
            for folder in tree.expand(f"{top}/{pattern}"):
                yield (folder, "conda", None) if conda else (folder, "toolkit", top)
    for pattern in _VENDOR:
        yield from ((folder, "vendor", None) for folder in tree.expand(pattern))
    for top in _named(tree, _VENDOR_VARIABLES):
        yield from ((f"{top}/{name}", "vendor", None) for name in ("lib", "lib64", "build/lib"))
    for origin, patterns in (("driver", OF_THE_DRIVER), ("system", _SYSTEM)):
        for pattern in patterns:
            yield from ((folder, origin, None) for folder in tree.expand(pattern))
    yield from ((folder, "other", None) for folder in library_path(tree))


def _named(tree: Tree, names: tuple[str, ...]) -> Iterator[str]:
    variables = tree.variables
    for name in names:
        value = str(variables.get(name, ""))
        if value.startswith("/"):
            yield value.rstrip("/") or "/"


def library_records(tree: Tree, environments: Sequence[Record]) -> tuple[list[Record], bool]:
    """The copies as ``Library`` records, and whether none was left out; GPU code is that of the first environment's.

    It uses ``key``, ``site_packages``, ``distributions`` and ``distributions_complete`` of an environment.
    """
    copies = Copies(tree)
    for environment in environments:
        add_environment(tree, copies, environment)
    for folder, origin, top in places(tree):
        copies.add_folder(folder, origin, top=top)
    loader = search_path(tree)
    for name, path in loader.cache:
        if family_of(name):
            copies.add(path, "other")
    copies.complete = copies.complete and loader.complete
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


_CODE_SECONDS = 0.02  # Seconds of CPU time for listing the GPU code of all copies; nothing should wait for it

_IN_NAME = lazy_pattern(r"(?:[-+]cuda-?|-cu)(\d{1,2}(?:\.\d{1,2})?)(?!\d)|-(\d{1,2})-(\d{1,2})$")


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
        answer, said_by = self._version_answer(copy, head) if is_elf else (LibraryVersion(), elf)
        stub = "stubs" in copy.path.split("/")
        # The driver's own libraries lie in the system's folders; a toolkit has stand-ins and newer ones (``compat``).
        own = copy.name.family in ("cuda", "nvidia-ml") and copy.origin == "system" and not stub
        stated = declared(owner, copy.name.family) or (toolkit.declared(copy.name.family) if toolkit else None)
        # The version in the file's name if it has three numbers, else in the file, else in a shorter name.
        numbers = copy.name.numbers
        whole = numbers.count(".") >= 2 and not is_numbered(copy.name.family, "apart")
        in_name = whole or (not answer.version and "." in numbers and copy.name.family == "nvrtc-builtins")
        on_disk = Found(numbers, elf) if in_name else Found(answer.version, said_by)
        return record(
            path=Found(printable(copy.path), elf if is_elf else f"file {printable(copy.path)}"),
            family=Found(copy.name.family, elf),
            soname=Found(printable(head.soname) if head.soname else None, elf),
            names=Found([printable(name) for name in copy.names[:32]] or None, elf),
            declared=Found(stated, packages),
            on_disk=None if stub else on_disk,
            cuda=Found(self._cuda(copy, head, owner, answer), elf),
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

    def _cuda(self, copy: Copy, head: ElfInfo, owner: Claim | None, answer: LibraryVersion) -> str | None:
        """Its CUDA version, from the file, its owner, the libraries it needs, its folder or its toolkit."""
        if copy.origin == "driver" or copy.name.family in ("cuda", "nvidia-ml"):
            return None
        if copy.name.family in ("cudart", "nvrtc", "nvJitLink") and answer.version:
            return ".".join(answer.version.split(".")[:2])
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
        return answer.cuda or next(in_package, None) or of_toolkit or next(iter(majors), None) or of_folder


def _major(soname: str | None) -> str:
    name = family_of(soname or "")
    return name.numbers.split(".")[0] if name else ""
