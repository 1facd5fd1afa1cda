"""The installed distributions, by ``*.dist-info``, ``*.egg-info`` and conda's records, and their requirement lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from ...common.lazy import lazy_pattern
from ...common.library_names import FAMILIES
from ...common.paths import printable, without_prefix, without_suffix
from ...common.record import Record
from ...common.tree import CIRCLE, REFUSED, TEXT_LIMIT, Tree, refused

# Which distributions are installed in a folder, by ``*.dist-info`` and ``*.egg-info`` (recording installed projects,
# PyPA; egg-info, setuptools). A damaged one costs only itself, and is reported. One without metadata is none, as for
# pip.

LIMIT = 20_000
REQUIREMENTS = 1000
_HEADS = 1 << 16  # Bytes of METADATA that are searched first for requirements; they precede the long description
_HEAD = 4096
_LONG_HEAD = 256 << 10  # Bytes read if the first part has no name or version and the header continues
_NAME = lazy_pattern(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9])?")
_VERSION = lazy_pattern(r"[0-9A-Za-z][0-9A-Za-z.!+-]{0,100}")
_SEPARATORS = lazy_pattern(r"[-_.]+")
_PYTHON_TAG = lazy_pattern(r"-py\d+(\.\d+)?(-.*)?$")  # ``-py3.11`` (and a platform) at the end of an egg's name
_NAME_LINE = lazy_pattern(rb"^Name:[ \t]*([^\r\n]*)", re.MULTILINE | re.IGNORECASE)
_VERSION_LINE = lazy_pattern(rb"^Version:[ \t]*([^\r\n]*)", re.MULTILINE | re.IGNORECASE)
_PYTHON_LINE = lazy_pattern(rb"^Requires-Python:[ \t]*([^\r\n]*)", re.MULTILINE | re.IGNORECASE)
"""The field ``Requires-Python``; field names are case-insensitive, as in mail headers."""
_REQUIRES = lazy_pattern(rb"^Requires-Dist:[ \t]*([^\r\n]*)", re.MULTILINE | re.IGNORECASE)
_END_OF_HEAD = lazy_pattern(rb"^[ \t]*\r?\n", re.MULTILINE)

_LINK = ".egg-link"

LEFT = "left by an interrupted installation"


class Installed:
    """The distributions in the order of the search path; ``complete`` if nothing was left out."""

    def __init__(self, *, complete: bool = True) -> None:
        self.items: list[Record] = []
        self.complete = complete
        self.damaged: list[Record] = []

    def damage(self, path: str, problem: str, of: Record | None = None) -> None:
        """``of``: name and version of the distribution, where they are known."""
        if len(self.damaged) < 500:
            source = f"file {printable(path)}"
            self.damaged.append({"path": printable(path), "problem": problem, "source": source, **(of or {})})


def normalised(name: str) -> str:
    """A distribution's name, normalised as PyPA specifies."""
    return _SEPARATORS.sub("-", name).lower()


def installed_in(tree: Tree, folders: Iterable[str], detailed: frozenset[str]) -> Installed:
    """The distributions in ``folders``; those named in ``detailed`` with their requirements."""
    found = Installed()
    linked: set[str] = set()
    for folder in folders:
        names = tree.list_names(folder)
        if names is None:
            found.complete = False
            continue
        links = [name for name in names if name.endswith(_LINK)]
        linked.update(normalised(name[: -len(_LINK)]) for name in links)
        for name in links:  # setuptools' older editable installation: the source folder, which has the metadata
            source = (tree.read_text(f"{folder}/{name}", 4096) or "").partition("\n")[0].strip()
            if _is_gone(tree, source):
                of = {"name": normalised(name[: -len(_LINK)])}
                found.damage(f"{folder}/{name}", f"its source folder {printable(source)} is gone", of)
        for name in names:
            if len(found.items) >= LIMIT:
                found.complete = False
                return found
            path, record = f"{folder}/{name}", None
            if name[0] in "~-" and len(name) > 1:  # pip renames folders like this until an installation succeeds
                start = tree.read_bytes(f"{path}/METADATA", _HEAD) if name.endswith(".dist-info") else None
                found.damage(path, LEFT, _from_metadata(start) if start else None)
            elif name.endswith(".dist-info"):
                record = _dist_info(tree, path, name[: -len(".dist-info")], detailed, found)
            elif name.endswith(".egg-info"):
                record = _egg(tree, path, name[: -len(".egg-info")], detailed, linked)
            elif name == "EGG-INFO":
                record = _egg(tree, path, without_suffix(folder.rpartition("/")[2], ".egg"), detailed, linked)
            if record is not None:
                found.items.append(record)
    return found


def _dist_info(tree: Tree, path: str, stem: str, detailed: frozenset[str], found: Installed) -> Record | None:
    names = tree.list_names(path)
    if names is None and REFUSED.get(path, CIRCLE) != CIRCLE:
        found.complete = False
        return None
    if names is None:
        found.damage(path, "it cannot be read" if tree.lexists(path) else "it is gone")
        return None
    start = tree.read_bytes(f"{path}/METADATA", _HEAD) if "METADATA" in names else None
    if start is not None and len(start) == _HEAD and not _from_metadata(start) and not _END_OF_HEAD.search(start):
        start = tree.read_bytes(f"{path}/METADATA", _LONG_HEAD)
    if start is None and f"{path}/METADATA" in REFUSED:
        found.complete = False
        return None
    if start is None:
        why = "METADATA cannot be read" if "METADATA" in names else "METADATA is missing"
        found.damage(path, why, _named(stem))
        return None
    record = _from_metadata(start) or _named(stem)
    problem = _problem(start)
    if problem:
        found.damage(path, problem)
    if record is None:
        return None
    record.update({"path": path, "channel": "pip", "record": "RECORD" in names, "source": "wheel metadata"})
    installer = tree.read_bytes(f"{path}/INSTALLER", 200) if "INSTALLER" in names else None
    if installer and installer.strip():
        record["installer"] = printable(installer.decode("utf-8", "replace").strip(), 40)
    checkout = _checkout(tree, path) if "direct_url.json" in names else None
    if checkout is not None:
        record["editable"] = True
        if _is_gone(tree, checkout):
            of = {"name": record["name"], "version": record["version"]}
            found.damage(path, f"its source folder {printable(checkout)} is gone", of)
    if record["name"] in detailed:
        record.update(requirements(tree, f"{path}/METADATA"))
    return record


@lru_cache(maxsize=4)  # each METADATA is asked several times in a row
def _lines(start: bytes) -> tuple[str | None, str | None]:
    """The texts of the fields for name and version."""
    return _line(start, _NAME_LINE), _line(start, _VERSION_LINE)


def _from_metadata(start: bytes) -> Record | None:
    """Name and version from the metadata, which pip and ``importlib.metadata`` use."""
    name, version = (value or "" for value in _lines(start))
    if _NAME.fullmatch(name) and _VERSION.fullmatch(version):
        return {"name": normalised(name), "version": version}
    return None


def _named(stem: str) -> Record | None:
    """Name and version from the folder's name, if it is regular."""
    name, dash, version = stem.partition("-")
    if dash and _NAME.fullmatch(name) and _VERSION.fullmatch(version) and "-" not in version:
        return {"name": normalised(name), "version": version}
    return None


def _line(start: bytes, pattern: re.Pattern[bytes]) -> str | None:
    """A field of a metadata file, in the format of a mail header that ends at an empty line."""
    match = pattern.search(start)
    if match is None or _END_OF_HEAD.search(start, 0, match.start()):
        return None
    return match[1].decode("utf-8", "replace").strip()


def _problem(start: bytes) -> str | None:
    """Why METADATA is unusable."""
    if not start.strip(b"\0 \r\n\t"):
        return "METADATA is empty"
    for name, value, form in zip(("name", "version"), _lines(start), (_NAME, _VERSION)):
        if value is None or not form.fullmatch(value):
            return f"no {name} in METADATA" if not value else f"no usable {name} in METADATA"
    return None


def _egg(tree: Tree, path: str, stem: str, detailed: frozenset[str], linked: set[str]) -> Record | None:
    metadata = path if tree.is_file(path) else f"{path}/PKG-INFO"
    start = tree.read_bytes(metadata, _HEAD)
    if start is None:
        return None
    record = _named(_PYTHON_TAG.sub("", stem)) or _from_metadata(start)
    if record is None:
        return None
    record.update({"path": path, "channel": "pip", "source": f"file {metadata}"})
    if record["name"] in linked:
        record["editable"] = True
    if record["name"] in detailed:
        record["requires"] = requirements(tree, metadata)["requires"]
    return record


def requirements(tree: Tree, metadata: str) -> Record:
    """What a file of metadata requires: other distributions, and a Python version."""
    for limit in (2 * _HEAD, _HEADS, TEXT_LIMIT):
        head = tree.read_bytes(metadata, limit) or b""
        end = _END_OF_HEAD.search(head)
        if end or len(head) < limit:
            break
    lines = _REQUIRES.findall(head[: end.start()] if end else head)
    requires = [printable(line.decode("utf-8", "replace").strip()) for line in lines[:REQUIREMENTS]]
    python = _line(head, _PYTHON_LINE)
    return {"requires": requires, **({"requires_python": printable(python, 200)} if python else {})}


def add_requirements(tree: Tree, items: Iterable[Record]) -> None:
    """Add what all other wheels require without an extra: the requirements that an installer would check."""
    for item in items:
        if "requires" not in item and item["channel"] == "pip" and item["path"].endswith(".dist-info"):
            lines = requirements(tree, f"{item['path']}/METADATA")["requires"]
            item["requires"] = [line for line in lines if "extra" not in line.partition(";")[2]]


def lost_checkout(tree: Tree, path: str) -> str | None:
    """The source folder of an editable installation with metadata at ``path``, where nothing is left of that folder."""
    folder = _checkout(tree, path)
    return folder if folder and _is_gone(tree, folder) else None


def _checkout(tree: Tree, path: str) -> str | None:
    """PEP 610: the folder of an editable installation; empty where that is not told, None where it is no such."""
    record = tree.read_json(f"{path}/direct_url.json", 65536)
    info = record.get("dir_info")
    if not isinstance(info, dict) or info.get("editable") is not True:
        return None
    url = record.get("url")
    if not isinstance(url, str) or not url.startswith("file:///"):
        return ""
    from urllib.parse import unquote  # few environments have such an installation

    return unquote(url[len("file://") :])


def _is_gone(tree: Tree, folder: str) -> bool:
    """Whether nothing is there, which is not so where nobody may look."""
    return folder.startswith("/") and "\0" not in folder and not tree.exists(folder) and folder not in REFUSED


# Which packages conda installed into a prefix, Python's and others: one ``conda-meta/NAME-VERSION-BUILD.json`` each.
#
# The name of the record says all that is wanted (neither version nor build holds a ``-``), so the records, which list
# every file of their package, stay closed; only those of frameworks are opened, for what they depend on.


_FILE = lazy_pattern(
    r"(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]{0,200})-(?P<version>[^-\s]{1,100})-(?P<build>[^-\s]{1,100})\.json"
)


def installed_by_conda(tree: Tree, prefix: str, detailed: frozenset[str]) -> Installed:
    """The packages of the conda environment at ``prefix``; none if it is not a conda environment."""
    folder = f"{prefix}/conda-meta"
    names = tree.list_names(folder)
    if names is None:
        return Installed(complete=not tree.is_folder(folder))
    found = Installed(complete=len(names) <= LIMIT)
    for name in names[:LIMIT]:
        match = _FILE.fullmatch(name)
        if match is None:
            continue
        record: Record = {"name": normalised(match["name"]).strip("-")}
        record.update(version=printable(match["version"]), build=printable(match["build"]), path=f"{folder}/{name}")
        record.update(channel="conda", installer="conda", source=f"file {folder}/{name}")
        if record["name"] in detailed:
            depends = tree.read_json(record["path"], 16 << 20).get("depends")
            lines = depends[:REQUIREMENTS] if isinstance(depends, list) else None
            record["requires"] = lines and [printable(line) for line in lines if isinstance(line, str)]
        try:
            if os.stat(tree.place(record["path"])).st_size == 0:
                found.damage(record["path"], "it is empty")
        except (OSError, ValueError) as error:
            refused(record["path"], error)
        found.items.append(record)
    return found


class CondaPackage(NamedTuple):
    """One conda package, with the CUDA facts in its build string: ``py3.11_cuda12.4_cudnn9.1.0_0``, ``cpu_py310h1``."""

    version: str
    build: str
    source: str
    cuda: str | None
    cpu_only: bool | None
    cudnn: str | None


def conda_build(distributions: Iterable[dict[str, Any]], name: str) -> CondaPackage | None:
    """The conda package with this normalised name among ``distributions``, or None."""
    record = next((item for item in distributions if item["name"] == name and item["channel"] == "conda"), None)
    if record is None:
        return None
    build = record["build"]
    found = re.search(r"cuda_?(\d+(?:\.\d+)+|\d{2,3}(?![\d.]))", build)
    cudnn = re.search(r"cudnn_?(\d+(?:\.\d+)+)", build)
    cuda = found[1] if found else None
    if cuda:  # ``12.4`` of ``12.4`` and of ``124``; ``9.2`` of ``92``
        cuda = ".".join(cuda.split(".")[:2]) if "." in cuda else f"{cuda[:-1]}.{cuda[-1]}"
    cpu_only = False if cuda else True if re.search(r"(?:^|_)cpu(?:_|$)", build) else None
    return CondaPackage(record["version"], build, record["source"], cuda, cpu_only, cudnn[1] if cudnn else None)


_REQUIRED = lazy_pattern(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_PIN = lazy_pattern(r"\s*(?:\[[^\]]*\]\s*)?(?:\(\s*)?==\s*([0-9][0-9A-Za-z.+!]*)\s*(?:\)\s*)?(?:;|$)")
_LEAST = lazy_pattern(r">=\s*(\d{1,4})\.(\d{1,4})(?:\.0)*(?![\d.])")
_BELOW = lazy_pattern(r"(?<![<>=!~])<\s*(\d{1,4})\.(\d{1,4})(?:\.0)*(?![\d.])")
_MATTERS = lazy_pattern(
    r"nvidia-(?!ml-py|pytriton)|cuda-|cupy|cudatoolkit|torch(?!metrics|diffeq|-geometric)|pytorch|triton|jax|tensorrt|"
    r"tensorflow(?!-(?:io|estimator|datasets|metadata|hub|probability))|numba|xformers|flash-attn|flashinfer|onnxruntime|"
    r"numpy$|llvmlite$|xgrammar|tilelang"
)

_LIBRARIES = {family.wheel: family.sonames for family in FAMILIES if family.sonames}
"""The libraries of NVIDIA's wheels, by the wheel's name without ``nvidia-`` and ``-cuNN``. The major version of such a
wheel is that of its library's soname (looked at in wheels for CUDA 11, 12 and 13; cudart's of CUDA 11 ends in
``.11.0``)."""


def requirement_name(line: str) -> str:
    """The normalised name of the distribution that a line requires."""
    match = _REQUIRED.match(line)
    return normalised(match[1]) if match else ""


def relevant_lines(lines: Iterable[str] | None) -> list[str]:
    """The lines for NVIDIA's wheels, frameworks, or dependencies of compiled parts, with their markers."""
    return [line for line in lines or () if _MATTERS.match(requirement_name(line))]


def extra_of(line: str) -> str | None:
    """The extra that the line belongs to; None if there is none."""
    match = re.search(r"""\bextra\s*==\s*["']([A-Za-z0-9._-]+)["']""", line)
    return normalised(match[1]) if match else None


def pinned(lines: Iterable[str], name: str) -> str | None:
    """The only version of a distribution that unconditional lines allow: ``2.5.1`` of ``torch==2.5.1``.

    Bounds that leave one minor release count as that release: ``2.14`` of ``torch<2.15.0,>=2.14.0``. A ``name`` that
    ends in ``-`` is a prefix.
    """
    found: set[str] = set()
    for line in lines:
        asked = requirement_name(line)
        if (asked == name or (name.endswith("-") and asked.startswith(name))) and extra_of(line) is None:
            rest = _after_name(line)
            pin = _PIN.match(rest)
            least, below = _LEAST.search(rest), _BELOW.search(rest)
            same = least and below and least[1] == below[1] and int(below[2]) == int(least[2]) + 1
            found.add(pin[1] if pin else f"{least[1]}.{least[2]}" if least and same else "")
    found.discard("")
    return found.pop() if len(found) == 1 else None


def libraries_of(lines: Iterable[str]) -> list[tuple[str, ...]]:
    """The sonames in NVIDIA's wheels of these lines, each with alternative names.

    ``("libcudart.so.12", "libcudart.so.12.0")`` of ``nvidia-cuda-runtime-cu12>=12.1.105; extra == "with-cuda"``.
    """
    found: dict[str, tuple[str, ...]] = {}
    for line in lines:
        name = without_prefix(requirement_name(line), "nvidia-")
        bound = re.search(r"(?:==|>=|~=)\s*(\d{1,4})(?:\.(\d{1,4}))?", _after_name(line))
        for library in _LIBRARIES.get(re.sub(r"-cu\d{2}$", "", name), ()) if bound else ():
            found.setdefault(library, sonames(library, bound[1]) if bound else ())
    return list(found.values())


def sonames(library: str, major: str, minor: str = "0") -> tuple[str, ...]:
    """Possible sonames of a library of this version: before CUDA 12 some have two numbers, and the NVRTC of CUDA 11.2
    to 11.8 is ``libnvrtc.so.11.2``.
    """
    two = dict.fromkeys((minor, "2")) if library == "nvrtc" and major == "11" else (minor,)
    return (f"lib{library}.so.{major}", *(f"lib{library}.so.{major}.{second}" for second in two))


def cuda_major(lines: Iterable[str]) -> str | None:
    """The CUDA major version in the names (``-cuNN``) of required NVIDIA wheels; None if mixed."""
    suffixes = {match[1] for line in lines if (match := re.search(r"^nvidia-.*-cu(\d{2})$", requirement_name(line)))}
    return suffixes.pop() if len(suffixes) == 1 else None


def _after_name(line: str) -> str:
    match = _REQUIRED.match(line)
    return line[match.end() :] if match else ""
