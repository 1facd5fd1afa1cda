"""The configuration of one Python's dynamic loader, its cache, and cached look-ups of paths."""

from __future__ import annotations

import re
import struct
from functools import cached_property
from typing import NamedTuple

from ...common.lazy import lazy_pattern
from ...common.paths import name_of
from ...common.tree import Tree
from ..elf.info import ElfInfo, elf_info
from ..elf.library import Elf, ElfError

# Read ``/etc/ld.so.cache``, in which glibc's loader looks libraries up by name.
#
# The format is that of glibc's ``dl-cache.h``: a header, entries of fixed size, and strings that they point to by their
# distance from the header. Older systems put an entry table of an older format in front of it.

_MAGIC = b"glibc-ld.so.cache1.1"
_OLD_MAGIC = b"ld.so-1.7.0"
_OLD_HEADER = 16
_OLD_ENTRY = 12
_ALIGNMENT = 8

_HEADER = 48
_FLAGS_AT = 28
_BIG_ENDIAN = 3
_MAX_STRING = 4096

_EXTENSIONS_AT = 32
_EXTENSIONS_MAGIC = 0xEAA42174
_SUBFOLDERS = 1
_MAX_SECTIONS = 64
_NAMED = 1 << 62
_LEVEL = ((1 << 10) - 1) << 32  # Bits of an entry's capabilities with the instruction set level, as in its name


class CacheEntry(NamedTuple):
    """A file that the cache has for a name."""

    path: str
    flags: int  # Kind of library and architecture: 0x0303 for x86-64, 0x0a03 for AArch64
    subfolder: str | None  # The required subfolder of ``glibc-hwcaps`` (``x86-64-v3``); None: none
    legacy: bool  # Whether it requires capability bits of old loaders


class Lookup:
    """A cache by name: ``Lookup(data).entries(b"libcuda.so.1")``. Damaged or truncated parts are left out."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._start = 0
        if data.startswith(_OLD_MAGIC) and len(data) >= _OLD_HEADER:
            (count,) = struct.unpack_from("=I", data, _OLD_HEADER - 4)
            end = _OLD_HEADER + int(count) * _OLD_ENTRY
            self._start = end + -end % _ALIGNMENT
        self._subfolders: list[str] = []
        self._rows: list[tuple[int, ...]] = []
        self._by_name: dict[bytes, list[tuple[int, ...]]] = {}
        self._count: int | None = None
        header = data[self._start : self._start + _HEADER]
        if len(header) < _HEADER or not header.startswith(_MAGIC):
            return
        self._order = ">" if header[_FLAGS_AT] & 3 == _BIG_ENDIAN else "<"
        (self._count,) = struct.unpack_from(self._order + "I", header, len(_MAGIC))
        entry = struct.Struct(self._order + "iIIIQ")
        table = data[self._start + _HEADER : self._start + _HEADER + self._count * entry.size]
        self._rows = list(entry.iter_unpack(table[: len(table) // entry.size * entry.size]))
        for row in self._rows:
            at = self._start + row[1]
            self._by_name.setdefault(data[at : data.find(b"\0", at, at + _MAX_STRING)], []).append(row)
        # The names of subfolders that entries refer to by index.
        (at,) = self._numbers(_EXTENSIONS_AT, 1) or (0,)
        magic, sections = self._numbers(at, 2) or (0, 0)
        for number in range(min(sections, _MAX_SECTIONS) if at and magic == _EXTENSIONS_MAGIC else 0):
            tag, _, offset, size = self._numbers(at + 8 + number * 16, 4) or (0, 0, 0, 0)
            if tag == _SUBFOLDERS:
                self._subfolders = [self._string(place) or "" for place in self._numbers(offset, size // 4)]
                break

    @property
    def complete(self) -> bool:
        """Whether it could be read whole."""
        return self._count == len(self._rows)

    def pairs(self) -> tuple[tuple[tuple[str, str], ...], bool]:
        """Every name with its path, in the loader's order, and whether all could be read."""
        pairs = ((self._string(row[1]), self._string(row[2])) for row in self._rows)
        found = tuple((name, path) for name, path in pairs if name and path)
        return found, len(found) == self._count

    def entries(self, name: str) -> list[CacheEntry]:
        """The entries for a name, in the cache's order."""
        found: list[CacheEntry] = []
        for flags, _, path_at, _, capabilities in self._by_name.get(name.encode("utf-8", "surrogateescape"), ()):
            path = self._string(path_at)
            named = capabilities & ~_LEVEL & ~0xFFFFFFFF == _NAMED
            number = capabilities & 0xFFFFFFFF
            if path is not None and not (named and number >= len(self._subfolders)):
                subfolder = self._subfolders[number] if named else None
                found.append(CacheEntry(path, flags, subfolder, legacy=bool(capabilities) and not named))
        return found

    def _numbers(self, at: int, count: int) -> tuple[int, ...]:
        """32-bit numbers at an offset from the header; none if the data ends before."""
        raw = self._data[self._start + at : self._start + at + 4 * min(count, len(self._data))]
        return struct.unpack(f"{self._order}{count}I", raw) if len(raw) == 4 * count else ()

    def _string(self, at: int) -> str | None:
        end = self._data.find(b"\0", self._start + at, self._start + at + _MAX_STRING)
        return self._data[self._start + at : end].decode("utf-8", "replace") if end > self._start + at else None


_CACHE = "/etc/ld.so.cache"

_DEFAULTS = ("/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
OF_THE_DRIVER = (
    "/usr/lib/wsl/lib", "/usr/local/nvidia/lib", "/usr/local/nvidia/lib64", "/usr/lib/*-linux-gnu/nvidia",
    "/usr/lib/*-linux-gnu/nvidia/*", "/usr/lib/*-linux-gnu/tegra", "/run/opengl-driver/lib",
)  # fmt: skip
"""Patterns of the folders into which distributions and container engines put the driver's libraries alone."""


class LoaderPath(NamedTuple):
    """The loader's search path: folders of LD_LIBRARY_PATH, then entries of the cache, then built-in folders."""

    variable: tuple[str, ...]
    cache: tuple[tuple[str, str], ...]  # Name and path, in the cache's order
    defaults: tuple[str, ...]
    complete: bool  # Whether the cache was read completely, or does not exist


def search_path(tree: Tree) -> LoaderPath:
    """The loader's search path for a program started with the variables of the request."""
    data = tree.read_bytes(_CACHE, 16 * 1024 * 1024)
    cache, complete = Lookup(data).pairs() if data is not None else ((), not tree.lexists(_CACHE))
    by_real: dict[str | None, str] = {}
    for folder in (folder for pattern in _DEFAULTS for folder in tree.expand(pattern)):
        by_real.setdefault(tree.resolve(folder), folder)  # the first name of each: /lib is often a link to /usr/lib
    return LoaderPath(library_path(tree), cache, tuple(by_real.values()), complete)


def library_path(tree: Tree) -> tuple[str, ...]:
    """The folders of LD_LIBRARY_PATH; an empty entry is the current folder, one with ``$`` depends on the program."""
    value = tree.variables.get("LD_LIBRARY_PATH", "")
    if not value:
        return ()
    cwd = tree.cwd
    entries = [entry for entry in value.replace(";", ":").split(":") if "$" not in entry][:200]
    return tuple(dict.fromkeys(entry if entry.startswith("/") else f"{cwd}/{entry}".rstrip("/") for entry in entries))


class Paths:
    """The paths of one system, inside the request's root."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._folders: dict[str, str | None] = {}
        self._real: dict[str, str | None] = {}
        self._heads: dict[str, ElfInfo | None] = {}

    def folder(self, path: str) -> str | None:
        """The folder with its links resolved; None if it does not exist."""
        if path not in self._folders:
            self._folders[path] = self._tree.resolve(path or "/")
        return self._folders[path]

    def real(self, path: str) -> str | None:
        """The path with its links resolved; None if its folder or target does not exist."""
        if path not in self._real:
            folder, _, name = path.rpartition("/")
            inside = self.folder(folder)
            place = f"{(inside or '').rstrip('/')}/{name}"
            is_link = inside is not None and self._tree.link_target(place) is not None
            self._real[path] = self._tree.resolve(place) if is_link else place if inside is not None else None
        return self._real[path]

    def head(self, path: str) -> ElfInfo | None:
        """The ELF facts of the file at a path; None if there is none.

        Raises OSError where a path can lead nowhere for another reason (a link in a circle, a name that is too long).
        """
        if path not in self._heads:
            inside = path if self._tree.at_real_root or "\0" in path else self.real(path)
            known = inside is not None and "\0" not in path
            self._heads[path] = elf_info(self._tree.place(inside or "")) if known else None
        return self._heads[path]


# The configuration of one Python's dynamic loader: its file, its folders, and its processor.
#
# glibc compiles the default folders, the cache's path and the meaning of ``$LIB`` into the loader. They are read from
# its file, so distributions that changed them (Debian's multiarch folders, Nix) are searched correctly.


_FOLDERS = lazy_pattern(rb"(?:/[^\0]{0,200}lib[^\0/]{0,20}/(?:[^\0/]{1,60}/)?\0){1,8}")
_MULTIARCH = lazy_pattern(rb"(?<=\0)(lib(?:/[a-z0-9_]+-linux-gnu[a-z0-9_]*|64|32)?)(?=\0)")

_LEGACY_UNTIL = (2, 37)  # The glibc release that dropped capability subfolders outside ``glibc-hwcaps``

_LEVELS = {
    "x86-64-v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
"""The kernel's names of the features that each level adds (x86-64 psABI)."""

_HASWELL = "avx2 fma bmi1 bmi2 abm movbe popcnt"
_XEON_PHI = "avx512cd avx512er avx512pf"
_AVX512_1 = "avx512cd avx512bw avx512dq avx512vl"

_CACHE_FLAGS = {("x86_64", 64): 0x0303, ("aarch64", 64): 0x0A03, ("ppc64", 64): 0x0503, ("riscv", 64): 0x1003}
"""``dl-cache.h``: FLAG_ELF_LIBC6 and the architecture."""


class _Named(NamedTuple):
    """The fields; a NamedTuple has no place for cached attributes."""

    tree: Tree
    program: ElfInfo | None
    loader: str | None  # Path of the loader; None if unknown, or for a static program
    problem: str | None  # Why its search is unknown


class LoaderSystem(_Named):
    """The loader of a program, and its behaviour."""

    @property
    def machine(self) -> str:
        return self.program.machine if self.program else ""

    @property
    def bits(self) -> int:
        return self.program.bits if self.program else 0

    def skips(self, head: ElfInfo) -> bool:
        """Whether the loader skips such a file and continues with the next folder."""
        if self.program is None or not head.bits:
            return False
        foreign = head.order == self.program.order and head.machine != self.program.machine
        return head.bits != self.program.bits or foreign

    def why_refused(self, head: ElfInfo) -> str | None:
        """Why the loader reports an error for such a file instead of continuing."""
        if self.program is not None and head.order not in {self.program.order, ""}:
            return "its byte order is another processor's"
        return head.refused or ("it is a program and no library" if head.program else None)

    @cached_property
    def paths(self) -> Paths:
        return Paths(self.tree)

    @cached_property
    def _inside(self) -> bytes:
        """The constants in the loader's file."""
        if self.loader is None:
            return b""
        try:
            with Elf(self.tree.place(self.loader)) as elf:
                return elf.read(*elf.sections.get(".rodata", (0, 1 << 20)))
        except ElfError:
            return b""

    @cached_property
    def release(self) -> tuple[int, int] | None:
        match = re.search(rb"release version (\d{1,4})\.(\d{1,4})", self._inside)
        return (int(match[1]), int(match[2])) if match else None

    @cached_property
    def defaults(self) -> tuple[str, ...]:
        """The default folders, which are searched last."""
        match = max(_FOLDERS.findall(self._inside), key=len, default=b"")
        folders = [folder.decode("utf-8", "surrogateescape").rstrip("/") for folder in match.split(b"\0") if folder]
        return tuple(folders)

    @cached_property
    def lib(self) -> str:
        """The value of ``$LIB``."""
        texts = [match.decode() for match in _MULTIARCH.findall(self._inside)]
        return max(texts, key=len, default="lib64" if self.bits == 64 else "lib")

    @cached_property
    def cache(self) -> Lookup | None:
        match = re.search(rb"(/[^\0]{0,400}/ld\.so\.cache)\0", self._inside)
        path = match[1].decode("utf-8", "surrogateescape") if match else "/etc/ld.so.cache"
        if not self.loader or not self.tree.lexists(path):
            return None
        return Lookup(self.tree.read_bytes(path, 16 << 20) or b"")

    def cached(self, name: str) -> tuple[list[str], bool]:
        """The paths in the cache for a name, best first, and whether they are certain."""
        if self.cache is None:
            return [], True
        flags = _CACHE_FLAGS.get((self.machine, self.bits))
        entries = [entry for entry in self.cache.entries(name) if entry.flags == flags]
        best = [entry.path for level in self.levels for entry in entries if entry.subfolder == level]
        plain = [entry.path for entry in entries if entry.subfolder is None and not entry.legacy]
        guessed = any(entry.legacy or (entry.subfolder and not self.knows_processor) for entry in entries)
        certain = self.cache.complete and flags is not None and not guessed
        return [*best, *plain], certain

    @cached_property
    def _processor(self) -> str:
        return self.tree.read_text("/proc/cpuinfo", 1 << 16) or ""

    @cached_property
    def _features(self) -> frozenset[str]:
        match = re.search(r"^flags\s*:(.*)$", self._processor, re.MULTILINE)
        return frozenset(match[1].split()) if match else frozenset()

    @property
    def knows_processor(self) -> bool:
        """Whether the processor's features are known; they decide the subfolders of ``glibc-hwcaps``."""
        return self.machine != "x86_64" or bool(self._features)

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The subfolders of ``glibc-hwcaps`` that the processor supports, best first."""
        if b"glibc-hwcaps" not in self._inside and b"-hwcaps/" not in self._inside:
            return ()
        fit: list[str] = []
        for level, features in _LEVELS.items() if self.machine == "x86_64" else ():
            if not self._features.issuperset(features.split()):
                break
            fit.insert(0, level)
        return tuple(fit)

    @cached_property
    def legacy(self) -> tuple[str, ...]:
        """Capability subfolders that loaders before glibc 2.37 also try, best first."""
        if self.machine != "x86_64" or self.release is None or self.release >= _LEGACY_UNTIL:
            return ()
        parts = ["tls", *self._platform, "x86_64"]
        choices = [""]
        for part in reversed(parts):
            choices = [*(f"{part}/{rest}".rstrip("/") for rest in choices), *choices]
        return tuple(choice for choice in choices if choice)

    @cached_property
    def _platform(self) -> list[str]:
        """The platform name of glibc, which only Intel's processors have."""
        if self.machine != "x86_64" or "GenuineIntel" not in self._processor:
            return []
        if self._features.issuperset(_XEON_PHI.split()):
            return ["xeon_phi"]
        named = ["haswell"] if self._features.issuperset(_HASWELL.split()) else []
        wide = "avx512er" not in self._features and self._features.issuperset(_AVX512_1.split())
        return [*named, *(["avx512_1"] if wide else [])]

    @property
    def platform(self) -> str:
        """The value of ``$PLATFORM``."""
        return next((name for name in self._platform if name != "avx512_1"), self.machine)

    @cached_property
    def preloaded(self) -> tuple[str, ...]:
        """The files in LD_PRELOAD and in ``/etc/ld.so.preload``."""
        match = re.search(rb"(/[^\0]{0,400}/ld\.so\.preload)\0", self._inside)
        path = match[1].decode("utf-8", "surrogateescape") if match else "/etc/ld.so.preload"
        lines = (self.tree.read_text(path, 65536) or "").splitlines()
        listed = [name for line in lines for name in re.split(r"[\s:]+", line.partition("#")[0]) if name]
        return (*(name for name in re.split(r"[ :]+", self.tree.variables.get("LD_PRELOAD", "")) if name), *listed)


def system_of(tree: Tree, program: ElfInfo | None, interpreter: str | None) -> LoaderSystem:
    """The loader that a program names as ``interpreter``; ``program`` is None if unknown."""
    problem = None
    loader = interpreter if interpreter and tree.is_file(interpreter) else None
    if program is None or program.problem:
        problem = "the Python that would load it cannot be read"
    elif interpreter is None:
        problem = "its Python is linked statically"
    elif name_of(interpreter).startswith("ld-musl"):
        problem = "its Python runs on musl, whose loader searches in other ways"
    elif loader is None:
        problem = f"the loader of its Python is not here: {interpreter}"
    return LoaderSystem(tree, program, loader, problem)
