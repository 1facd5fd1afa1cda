"""The files that a failure names, who installed each, and whether it is still what was installed.

A loader's message names the file that it could not use; a traceback, those that were being run. The RECORD of the
distribution that a file belongs to has its size and hash (PyPA, "Recording installed projects"). Nothing is looked at
unless an import or an operation failed.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import struct
import sys
from functools import cached_property
from importlib.machinery import EXTENSION_SUFFIXES
from traceback import walk_tb
from typing import Any, Iterator, NamedTuple

from ..common.out import clean
from ..common.system import mapped_files
from ..files.owners.wheels import Recorded, line_of, recorded_in

_HASH_LIMIT = 4 << 30  # Bytes that are hashed of all files together

_NAMED = re.compile(r"(?:^|[\s'\"(\[`])(/[^\s:'\"`()]{1,400}|lib[\w.+-]{1,120}\.so(?:\.[\w.]*)?)(?=[\s:;,'\")`\]]|$)")
"""An absolute path, or a library by its bare name, in what a loader or an interpreter says."""


class _NamedFile(NamedTuple):
    path: str  # Absolute; a library's bare name where the loader knew no more; a module's path below a site folder
    role: str  # ``error``: the message names it; ``frame``: it was being run; ``module``: the import of it failed
    line: int | None = None


def files_named(error: BaseException) -> list[dict[str, Any]]:
    """The files that ``error`` and its traceback name, as ``TrialFile`` records, the nearest to the cause first."""
    found: dict[str, _NamedFile] = {}
    # What was raised first, then what was raised because of it.
    chain = [error]
    while len(chain) < 8:
        later = chain[-1]
        before = later.__cause__
        if before is None and not later.__suppress_context__ and later.__context__ is not None:
            # What the later error does not quote may have been handled.
            quoted = text_of(later.__context__)
            before = later.__context__ if quoted and quoted in text_of(later) else None
        if before is None or before in chain:
            break
        chain.append(before)
    chain.reverse()
    named = [each for raised in chain for each in (*_by_attributes(raised), *_by_text(raised))]
    for each in (*named, *(each for raised in chain for each in _by_traceback(raised))):
        found.setdefault(each.path, each)
    manifest = _Manifest()
    return [manifest.described(each) for each in list(found.values())[:8]]


def cut_off(path: str) -> list[dict[str, Any]]:
    """The record of a library that ends before its own section headers; loading such a one may kill the process."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError:
        return []
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":  # what is not an ELF file, the loader refuses in words
        return []
    (start,) = struct.unpack_from("<Q", head, 40)
    length, count = struct.unpack_from("<HH", head, 58)
    if start + length * count <= size:
        return []
    return [{"state": "differs", "detail": "it is cut off", **_Manifest().described(_NamedFile(path, "error"))}]


def damaged(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that a distribution installed and that are not what it installed."""
    return [file for file in files if "owner" in file and file.get("state", "as installed") != "as installed"]


def text_of(error: BaseException) -> str:
    """Its text; empty where it has none that can be made."""
    try:
        return str(error)
    except Exception:
        return ""


def _by_attributes(error: BaseException) -> Iterator[_NamedFile]:
    if isinstance(error, SyntaxError) and _is_file(error.filename):
        yield _NamedFile(str(error.filename), "error", error.lineno)
    if isinstance(error, ImportError) and _is_file(error.path) and not isinstance(error, ModuleNotFoundError):
        role = "error" if str(error.path).endswith((".so", ".pyd")) else "frame"
        yield _NamedFile(str(error.path), role)
    if isinstance(error, ModuleNotFoundError) and error.name:
        yield _NamedFile(error.name.replace(".", "/"), "module")
    if isinstance(error, OSError) and _is_file(error.filename):
        yield _NamedFile(os.fsdecode(error.filename), "error")


def _by_text(error: BaseException) -> Iterator[_NamedFile]:
    """The paths and libraries in the message; where a library lacks something of another, that one too."""
    text = text_of(error)[:4000]
    if isinstance(error, (ModuleNotFoundError, SyntaxError)):
        return
    loaded = None
    for match in _NAMED.finditer(text):
        name = match.group(1)
        if name.startswith("/"):
            if _is_file(name) and not os.path.isdir(name):
                yield _NamedFile(name, "error")
            continue
        if loaded is None:
            loaded = {os.path.basename(path): path for path in mapped_files()}
        yield _NamedFile(loaded.get(name, name), "error")


def _by_traceback(error: BaseException) -> Iterator[_NamedFile]:
    """Files of packages that were being run, the innermost first, and the file that the import system was reading."""
    kept = 0
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        name = frame.f_code.co_filename
        if any(part in name for part in ("importlib._bootstrap", "importlib/_bootstrap")):
            places = (frame.f_locals.get(key) for key in ("source_path", "path", "bytecode_path"))
            read = next((place for place in places if isinstance(place, str) and _is_file(place)), None)
            if read and os.path.isfile(read):
                yield _NamedFile(read, "frame")
        elif name.startswith("/") and re.search("/(?:site|dist)-packages/", name) and kept < 4:
            kept += 1
            yield _NamedFile(name, "frame", line)


def _is_file(name: Any) -> bool:
    return isinstance(name, (str, bytes)) and os.fsdecode(name).startswith("/")


class _OwnedFile(NamedTuple):
    owner: str
    file: Recorded  # As its distribution recorded it


class _Manifest:
    """What the RECORDs on the search path say, read as far as it is asked for."""

    def __init__(self) -> None:
        self._left = _HASH_LIMIT

    def described(self, found: _NamedFile) -> dict[str, Any]:
        """A file with its owner and its state."""
        of_path = self._file if found.path.startswith("/") else self._library
        line = (self._module if found.role == "module" else of_path)(found.path)
        path = line.file.path if line else found.path
        fields = {"path": path, "role": found.role, "line": found.line, "owner": line.owner if line else None}
        fields.update(self._state(path, line.file if line else None) if path.startswith("/") else {})
        shown = {key: clean(value) if isinstance(value, str) else value for key, value in fields.items()}
        return {"source": "trial", **{key: value for key, value in shown.items() if value is not None}}

    def _state(self, path: str, line: Recorded | None) -> dict[str, Any]:
        try:
            size = os.stat(path).st_size
        except OSError as error:
            return {"state": "gone" if isinstance(error, FileNotFoundError) else "unreadable", "detail": error.strerror}
        if not os.access(path, os.R_OK):
            return {"state": "unreadable", "detail": "no permission to read it"}
        if size == 0 and not (line and line.size == 0):
            return {"state": "differs", "detail": "it is empty"}
        if line is None or (line.size is None and not line.hash):
            return {}
        if line.size is not None and size != line.size:
            return {"state": "differs", "detail": f"it has {size:,} bytes, {line.size:,} were installed"}
        name, _, wanted = (line.hash or "").partition("=")
        if not wanted or name not in ("sha256", "sha384", "sha512") or size > self._left:
            return {}
        self._left -= size
        digest = hashlib.new(name)
        try:
            with open(path, "rb") as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    digest.update(block)
        except OSError as error:
            return {"state": "unreadable", "detail": error.strerror}
        if base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode() == wanted.rstrip("="):
            return {"state": "as installed"}
        return {"state": "differs", "detail": "its content is not what was installed"}

    def _file(self, path: str) -> _OwnedFile | None:
        for place in dict.fromkeys((path, os.path.realpath(path))):
            for site, owner, data in self._records:
                real = next((folder for folder in (site, os.path.realpath(site)) if place.startswith(folder + "/")), "")
                line = _row(data, place[len(real) + 1 :], owner, site) if real else None
                if line:
                    return line._replace(file=line.file._replace(path=place))
        return None

    def _library(self, name: str) -> _OwnedFile | None:
        """A library that was installed under this very name."""
        wanted = f"/{name},".encode("utf-8", "surrogateescape")
        for site, owner, data in self._records:
            end = data.find(wanted)
            if end >= 0:
                start = data.rfind(b"\n", 0, end) + 1
                return _row(data, data[start : end + len(wanted) - 1].decode("utf-8", "replace"), owner, site)
        return None

    def _module(self, path: str) -> _OwnedFile | None:
        """The file that the module ``path`` (with slashes) was installed as: source, or compiled for this Python."""
        names = [f"{path}/__init__.py", f"{path}.py", *(f"{path}{suffix}" for suffix in EXTENSION_SUFFIXES)]
        lines = (_row(data, name, owner, site) for site, owner, data in self._records for name in names)
        return next(filter(None, lines), None)

    @cached_property
    def _records(self) -> list[tuple[str, str, bytes]]:
        """Site folder, distribution and RECORD, of all distributions on the search path."""
        return list(_read_records())


def _read_records() -> Iterator[tuple[str, str, bytes]]:
    left = 2000
    for site in dict.fromkeys(entry for entry in sys.path if entry.startswith("/")):
        try:
            names = [name for name in sorted(os.listdir(site)) if name.endswith(".dist-info")]
        except OSError:
            continue
        for name in names[:left]:
            left -= 1
            place = f"{site}/{name}/RECORD"
            try:
                if not os.path.isfile(place):
                    continue
                with open(place, "rb") as file:
                    data = b"\n" + file.read(64 << 20)
            except OSError:
                continue
            try:
                with open(f"{site}/{name}/INSTALLER", "rb") as file:
                    by_conda = file.read(16).strip() == b"conda"
            except OSError:
                by_conda = False
            if by_conda:
                data = _LIBRARY_LINE.sub(rb"\1,,", data)
            project, _, version = name[: -len(".dist-info")].partition("-")
            yield site, f"{re.sub(r'[-_.]+', '-', project).lower()}=={version}", data


_LIBRARY_LINE = re.compile(rb"(\.so[.\w]{0,80}),[^,\n]*,[0-9]*(?=\r?\n|$)")
"""What a RECORD says of a library: conda writes its own search paths into libraries after they were recorded."""


def _row(data: bytes, name: str, owner: str, site: str) -> _OwnedFile | None:
    """The line of a RECORD about the file ``name``."""
    found = recorded_in(line_of(data, name).decode("utf-8", "replace"), site)
    return found and _OwnedFile(owner, found._replace(path=os.path.normpath(found.path)))
