"""Compare the installed files of frameworks and their requirements with what was shipped.

Every check compares presence and size of the files that decide (``wheels.decisive``), then those of the other modules;
``verify`` compares all hashes. A differing file is examined: whether the loader, or Python, can still use it.
"""

from __future__ import annotations

import ast
import errno
import os
import re
import stat
import sys
import warnings
from collections.abc import Container, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from ...common.lazy import lazy_pattern
from ...common.paths import printable
from ...common.record import Record
from ...common.tree import Tree, refused
from ..elf.info import elf_info
from ..elf.library import Elf, ElfError
from ..elf.tables import MACHINES, SHT_SYMTAB
from ..python.distributions import extra_of, relevant_lines, requirement_name, requirements
from .wheels import (
    Modules,
    Recorded,
    compiled_by,
    decisive,
    first_package,
    libraries_by,
    line_about,
    list_of,
    sources_by,
)

PACKAGES = 500
_SOURCE_LIMIT = 1 << 20
_ELF = b"\x7fELF"
_MODULE = lazy_pattern(
    r"\.(?:cpython-(\d)(\d{1,2})[a-z]{0,3}-(\w{1,20}?)(?:-linux-(gnu|musl)\w{0,20})?|cp\d+-win\w{1,20})\.(?:so|pyd)$"
)
"""The end of a compiled module's name: the Python, the machine and the C library that it is for."""
_ANY_PYTHON = ".abi3.so"  # Ends modules for every later Python; one for a certain Python may lie beside them
_COMPARED = ("x86_64", "aarch64")  # Machines that ELF files and names of modules spell alike
_BYTES = lazy_pattern(r"([0-9]{1,18}) bytes$")


class Own(NamedTuple):
    """What an environment's compiled parts must be for; None where it is not known."""

    python: str | None  # ``3.11.7``
    machine: str | None = None
    libc: str | None = None  # ``gnu`` or ``musl``


def own_of(tree: Tree, program: str | None, python: str | None) -> Own:
    """By the file of its interpreter."""
    try:
        head = elf_info(tree.place(program)) if program else None
    except OSError:
        head = None
    if head is None or head.refused or not head.machine:
        return Own(python)
    loader = head.interpreter
    return Own(python, head.machine, ("musl" if "ld-musl" in loader else "gnu") if loader else None)


def shipped(
    tree: Tree,
    distributions: Sequence[Record],
    required: Sequence[Record],
    own: Own,
    compiling: Container[str] = (),
    share: tuple[int, int] = (0, 1),
) -> Record:
    """The record ``Shipped`` of an environment, for whose interpreter ``own`` stands, or a ``share`` of it: the number
    of the share, and of how many.

    ``required`` is what ``closure`` found among its distributions; those of the names ``compiling`` compile their own
    sources where they run.
    """
    names = {item["name"] for item in required}
    others = [item for item in _listed(distributions) if item["name"] not in names]
    further = [item for item in others if libraries_by(tree, item["path"]) or _is_lost(tree, item)]
    # Of what else has compiled parts, those alone: a disk that was full cuts off the largest files.
    parts = [item for item in others if item not in further and compiled_by(tree, item["path"])[0]]
    record: Record = {"source": "wheel metadata", "packages": [], "unlisted": [], "files": 0, "damaged": []}
    complete = len(required) < PACKAGES

    def compare(item: Record, files: Iterable[Recorded], among: Modules | None = None) -> bool:
        """Whether the existence of each is known, and not too many differ."""
        known = True
        for recorded in files:
            if len(record["damaged"]) >= 200:
                return False
            try:
                damage = _compared(tree, recorded, sized=_is_sized(item), python=own.python)
            except OSError:
                known = False
                continue
            if damage and damage["kind"] == "size" and "problem" not in damage and _is_no_newer(tree, recorded, item):
                damage["as_published"] = True
            if damage and not is_anothers(tree, distributions, item, recorded):
                path, site = recorded.path, item["path"].rpartition("/")[0]
                module = path[len(site) + 1 : -len(".py")]
                needed = among and (among.is_imported(path, site) or among.is_named_beside(site, module))
                aside = not needed if among else _is_unnamed(tree, path, site)
                record["damaged"].append({**_owner(item), **damage, **({"aside": True} if aside else {})})
        return known

    listed: list[Record] = []
    for item in _shared([*required, *further, *parts], tree, *share):
        whole = item["channel"] == "pip" and not item.get("editable") and item["path"].endswith(".dist-info")
        if not whole or libraries_by(tree, item["path"]) is None:
            record["unlisted"].append(item["name"])
            continue
        files, all_there = decisive(tree, item["path"])
        files = (*files, *(sources_by(tree, item["path"]) if item["name"] in compiling else ()))
        record["packages"].append(item["name"])
        record["files"] += len(files)
        complete = compare(item, files) and complete and all_there
        if item not in parts:
            listed.append(item)
        other = _foreign(tree, item, [file for file in files if _is_library(file.path)], own)
        record["damaged"] += [{**_owner(item), **other}] if other else []
    modules = Modules(tree)
    for item in listed:
        complete = compare(item, modules.differing(item["path"], sized=_is_sized(item)), modules) and complete
    record["files"] += modules.compared
    return {**record, "complete": complete and modules.complete}


def _is_unnamed(tree: Tree, path: str, site: str) -> bool:
    """Whether the file is a program that its package does not name."""
    folder, _, name = path.rpartition("/")
    if not folder.endswith("/bin") or _is_library(path):
        return False
    package = path[len(site) + 1 :].partition("/")[0]
    source = tree.read_bytes(f"{site}/{package}/__init__.py", _SOURCE_LIMIT)
    return name.encode("utf-8", "surrogateescape") not in (source or b"")


def _shared(items: Sequence[Record], tree: Tree, number: int, of: int) -> list[Record]:
    """One of several shares of the distributions, which list about as much each."""
    ends = list(accumulate(len(list_of(tree, item["path"]) or b"") + 1 for item in items))
    return [item for item, end in zip(items, ends) if (end - 1) * of // ends[-1] == number]


def joined(shares: Sequence[Record]) -> Record:
    """The record ``Shipped`` of which these are all shares."""
    fields = ("packages", "unlisted", "damaged")
    added = {field: [item for each in shares for item in each[field]] for field in fields}
    complete, files = all(each["complete"] for each in shares), sum(each["files"] for each in shares)
    return {**shares[0], **added, "files": files, "complete": complete}


def missing_files(tree: Tree, dist_info: str, package: str) -> list[str]:
    """The missing decisive files of one import package, as paths relative to its site folder."""
    site = dist_info.rpartition("/")[0]
    start = f"{site}/{package}/"
    files = (each for each in decisive(tree, dist_info)[0] if each.path.startswith(start))
    wanted = (each for each in files if _is_library(each.path) or each.path == f"{start}__init__.py")
    return [each.path[len(site) + 1 :] for each in wanted if _is_gone(tree, each.path)]


def _is_lost(tree: Tree, item: Record) -> bool:
    """Whether nothing is left of a package, as after another that shares its folder was removed."""
    first = None if item.get("editable") else first_package(tree, item["path"])
    return first is not None and _is_gone(tree, first.path)


def _is_gone(tree: Tree, path: str) -> bool:
    try:
        return _state(tree, path) is None
    except OSError:
        return False  # it may exist


def differing(tree: Tree, item: Record, path: str, python: str | None, fault: Record) -> Record:
    """A ``DamagedFile`` of a distribution: its difference ``said``, and why the present file is unusable, if so."""
    problem = None if fault["kind"] == "missing" else _unusable(tree, path, python)
    more: Record = {"problem": problem} if problem else _stripped(tree, path, fault)
    return {**_owner(item), "path": printable(path), **fault, **more}


def comparable(record: Record) -> list[Record]:
    """The distributions of frameworks and their requirements in an environment's record that list their files."""
    looked = record.get("shipped") or {}
    wanted = {*(looked.get("packages") or ()), *(looked.get("unlisted") or ())}
    distributions = [item for item in record.get("distributions") or () if item["name"] in wanted]
    conda = [item for item in distributions if item["channel"] == "conda"]
    wheels = [item for item in _listed(distributions) if item.get("installer") != "conda" and not item.get("editable")]
    return [*wheels, *conda]


def _owner(item: Record) -> Record:
    place = printable(item["path"])
    source = f"file {place}/RECORD" if place.endswith(".dist-info") else f"file {place}"
    return {"package": item["name"], "version": item["version"], "source": source}


def _is_sized(item: Record) -> bool:
    """Whether the recorded sizes are those of the installed files: conda writes its prefix into them."""
    return item.get("installer") != "conda"


def _listed(distributions: Iterable[Record]) -> list[Record]:
    return [item for item in distributions if item["channel"] == "pip" and item["path"].endswith(".dist-info")]


def closure(tree: Tree, distributions: Sequence[Record], roots: frozenset[str]) -> list[Record]:
    """The installed distributions of frameworks, which ``roots`` names, then those that their metadata requires.

    Requirements that were not read before are added to the distributions. Markers are not evaluated: whatever is
    installed and required is examined.
    """
    by_name: dict[str, list[Record]] = {}
    for item in distributions:
        by_name.setdefault(item["name"], []).append(item)
    queue = [name for name in by_name if name in roots]
    queued = set(queue)
    found: list[Record] = []
    for name in queue:
        for item in by_name[name]:
            found.append(item)
            if len(found) >= PACKAGES:
                return found
            if "requires" not in item and item["channel"] == "pip" and item["path"].endswith(".dist-info"):
                item.update(requirements(tree, f"{item['path']}/METADATA"))
            # Without an extra, and those of extras that install CUDA libraries; not test tools.
            lines = item.get("requires") or ()
            always = [line for line in lines if extra_of(line) is None]
            for line in [*always, *(line for line in relevant_lines(lines) if extra_of(line) is not None)]:
                asked = requirement_name(line)
                if asked in by_name and asked not in queued:
                    queued.add(asked)
                    queue.append(asked)
    return found


def _compared(tree: Tree, recorded: Recorded, *, sized: bool, python: str | None) -> Record | None:
    """How a file differs in presence and size, or cannot be loaded; ``sized``: its size is meaningful.

    Raises OSError if its existence is unknown.
    """
    found = _state(tree, recorded.path)
    if found is None:
        # The broken link at its path, or at a folder above it.
        link = recorded.path
        while link and (tree.link_target(link) is None or tree.is_folder(link)):
            link = link.rpartition("/")[0]
        if link:
            return {**_differs(recorded, "missing"), "dead_link": printable(link)}
        # A folder is imported even without its empty __init__.py, and bytecode beside a source without that.
        needless = recorded.size == 0 and recorded.path.endswith("/__init__.py")
        needless |= recorded.path.endswith(".py") and not _is_gone(tree, f"{recorded.path}c")
        return None if needless else _differs(recorded, "missing")
    if not stat.S_ISREG(found.st_mode):
        return {**_differs(recorded, "size"), "problem": "it is not a regular file"}
    is_program = recorded.path.rpartition("/")[0].endswith("/bin")
    if tree.at_real_root and not os.access(recorded.path, os.R_OK):  # unknown, and not damaged
        refused(recorded.path, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    elif is_program and not found.st_mode & 0o111 and tree.read_bytes(recorded.path, 4) == _ELF:
        mode = f"mode {found.st_mode & 0o777:04o}"
        return {**_differs(recorded, "content"), "found": mode, "problem": "its mode does not allow running"}
    other = sized and recorded.size is not None and recorded.size != found.st_size
    if not other:  # a byte or two speak against it; more is read where it is loaded
        sound = True
        if _is_library(recorded.path):
            start = tree.read_bytes(recorded.path, 24)
            of_elf = start and len(start) == 24 and start[4:7] in (b"\2\1\1", b"\1\1\1", b"\2\2\1")
            sound = start is None or bool(of_elf and start.startswith(_ELF))
        elif recorded.path.endswith(".py"):
            sound = not _ends_in_zeros(tree, recorded.path)
        if sound:
            return None
    problem = _unusable(tree, recorded.path, python)
    if not other and not problem:
        return None
    difference = {**_differs(recorded, "size" if other else "content"), "found": f"{found.st_size} bytes"}
    return {**difference, **({"problem": problem} if problem else _stripped(tree, recorded.path, difference))}


def _foreign(tree: Tree, item: Record, libraries: Sequence[Recorded], own: Own) -> Record | None:
    """A compiled part of a package none of whose parts is for this system and Python, as a copied folder has them."""
    modules = [(file.path, match) for file in libraries if (match := _MODULE.search(file.path))]
    modules = [] if any(file.path.endswith(_ANY_PYTHON) for file in libraries) else modules
    path, why = (modules[0][0], _other_module(modules[0][1], own)) if modules else ("", None)
    if not all(_other_module(match, own) for _, match in modules):
        return None
    if not libraries:
        path = f"{item['path']}/WHEEL"
        tags = re.findall(r"^Tag: *\S*-([a-z]+)\d*_\S+ *$|^Tag:", tree.read_text(path, 8192) or "", re.MULTILINE)
        system = {"macosx": "macOS", "win32": "Windows", "win": "Windows"}.get(tags[0]) if len(set(tags)) == 1 else None
        why = f"{system}, not Linux" if system else None
    for file in () if why or own.machine is None else libraries:
        head = tree.read_bytes(file.path, 20) or b""
        machine = MACHINES.get(int.from_bytes(head[18:20], "little" if head[5:6] == b"\1" else "big"))
        if head[:4] != _ELF or machine in (None, own.machine):
            return None
        path, why = file.path, f"{machine}, not {own.machine}"
    return {"path": printable(path), "kind": "foreign", "problem": f"it is built for {why}"} if why else None


def _other_module(match: re.Match[str], own: Own) -> str | None:
    """What else a compiled module is for, by its name."""
    major, minor, machine, libc = match.groups()
    if major is None or machine == "darwin":
        return f"{'Windows' if major is None else 'macOS'}, not Linux"
    python = ".".join((own.python or "").split(".")[:2])
    for there, wanted in ((f"Python {major}.{minor}", f"Python {python}"), (machine, own.machine), (libc, own.libc)):
        known = wanted not in ("Python ", None) and (there != machine or there in _COMPARED)
        if known and there is not None and there != wanted:
            return f"{there}, not {wanted}".replace("gnu", "glibc")
    return None


def _differs(recorded: Recorded, kind: str) -> Record:
    size = {"recorded": f"{recorded.size} bytes"} if recorded.size is not None else {}
    return {"path": printable(recorded.path), "kind": kind, **size}


def is_anothers(tree: Tree, distributions: Sequence[Record], item: Record, file: Recorded, digest: str = "") -> bool:
    """Whether another distribution lists the file with its present size (and ``digest``), and so overwrote this one."""
    try:
        found = _state(tree, file.path)
    except OSError:
        found = None
    for other in _listed(distributions) if found is not None else ():
        site = other["path"].rpartition("/")[0]
        if other is item or not file.path.startswith(f"{site}/"):
            continue
        line = line_about(tree, other["path"], file.path[len(site) + 1 :])
        hashed, length = line.rsplit(b",", 2)[1:] if line.count(b",") > 1 else (b"", b"")
        # Another kind of hash, or none, is no contradiction.
        of_kind = digest and hashed.partition(b"=")[0] == digest.partition("=")[0].encode()
        fits = not of_kind or hashed == digest.encode()
        if line and fits and found is not None and length in (b"", b"%d" % found.st_size):
            return True
    return False


def _state(tree: Tree, path: str) -> os.stat_result | None:
    """The ``stat`` result, with links followed inside the root; None: nothing is there. OSError if that is unknown."""
    try:
        return os.stat(tree.place(path))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None  # a link that leads to itself
        refused(path, error)
        raise


def _is_no_newer(tree: Tree, recorded: Recorded, item: Record) -> bool:
    """Whether a file was written before the list of its package, which installers write last."""
    found, written = (_state(tree, path) for path in (recorded.path, f"{item['path']}/RECORD"))
    return found is not None and written is not None and found.st_mtime_ns <= written.st_mtime_ns


def _is_library(path: str) -> bool:
    return ".so" in path.rpartition("/")[2]


def _ends_in_zeros(tree: Tree, path: str) -> bool:
    """Whether the last byte is zero, as after a power failure: the length was stored, and the contents were not."""
    try:
        descriptor = os.open(tree.place(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.pread(descriptor, 1, os.fstat(descriptor).st_size - 1) == b"\0"
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _unusable(tree: Tree, path: str, python: str | None) -> str | None:
    """Why a library cannot be loaded, or a module imported, judged by the file alone."""
    if path.endswith(".py"):
        source = tree.read_bytes(path, _SOURCE_LIMIT)
        return None if source is None or len(source) >= _SOURCE_LIMIT else _no_python(source, python)
    if not _is_library(path):
        start = tree.read_bytes(path, 64)
        return "it is empty" if start is not None and not start else None
    try:
        head = elf_info(tree.place(path))
    except OSError:
        return None
    return head.refused if head else None


def _stripped(tree: Tree, path: str, fault: Record) -> Record:
    """Whether a loadable library of another size was stripped: shorter, and without symbols."""
    lengths = [
        int(found[1]) for text in (fault.get("recorded"), fault.get("found")) if (found := _BYTES.match(text or ""))
    ]
    if fault["kind"] != "size" or not _is_library(path) or len(lengths) < 2 or lengths[1] >= lengths[0]:
        return {}
    try:
        with Elf(tree.place(path)) as elf:
            sections = elf.section_list
    except ElfError:
        return {}
    kept = any(each.type == SHT_SYMTAB or each.name.startswith(".debug") for each in sections)
    return {"stripped": True} if sections and not kept else {}


def _no_python(source: bytes, python: str | None) -> str | None:
    if b"\0" in source:
        return "it holds zeros, and is not Python"
    if not source.strip():
        return "it is empty"
    own = (sys.version_info.major, sys.version_info.minor)
    if python is None or own < tuple(int(part) for part in re.findall(r"\d+", python)[:2]):
        return None  # an older parser may reject newer syntax
    problem = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(source)
        except SyntaxError as error:
            problem = printable(f"it is not Python: line {error.lineno}: {error.msg}")
        except (ValueError, RecursionError, MemoryError):
            pass  # it exceeds the parser's limits, which proves nothing about the file
    return problem
