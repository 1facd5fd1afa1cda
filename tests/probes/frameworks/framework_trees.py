"""Environments of frameworks as file trees, constructed.

Their text files hold only the few assignments that matter, in the form that the wheels named beside them have; their
binaries are ELF files with a dynamic section and constants alone.
"""

import shutil
import struct
from collections.abc import Mapping
from typing import Any

import msgspec

from envcheck.model.snapshot import Framework
from probes.files.installations.catalog import DETAILED, frameworks
from probes.files.python.distributions import installed_by_conda, installed_in
from probes.files.python.site import Site
from tests.probes.environment_trees import Tree

SITE = "/env/lib/python3.12/site-packages"
Files = Mapping[str, str | bytes]  # Path below ``SITE`` → content


class Frameworks(Tree):
    """A tree whose one environment, ``/env``, has its packages in ``SITE``."""

    def package(self, files: Files, name: str = "", version: str = "", lines: str = "") -> None:
        """Files below ``SITE``, and the metadata of the distribution that holds them, if it has a name."""
        for path, content in files.items():
            self.file(f"{SITE}/{path}", content, 0o755 if "/bin/" in path else 0o644)
        if name:
            self.wheel(SITE, name.replace("-", "_"), version, lines)
        if name and files:
            self.record(name, version, files)

    def record(self, name: str, version: str, files: Files) -> None:
        """The list of files of a distribution, with their sizes; the digests are no digests."""
        listed = [f"{path},sha256=x,{len(content)}" for path, content in files.items()]
        self.file(f"{SITE}/{name.replace('-', '_')}-{version}.dist-info/RECORD", "\n".join(listed) + "\n")

    def remove(self, path: str) -> None:
        """Remove a folder again."""
        shutil.rmtree(self.at(path))

    def found(self, *before: str, **variables: str) -> dict[str, Framework]:
        """What is found, by name; ``before`` are folders on PYTHONPATH."""
        view = self.view(variables=variables)
        self.at(SITE).mkdir(parents=True, exist_ok=True)
        folders = (*before, SITE)
        items = installed_in(view, folders, DETAILED).items + installed_by_conda(view, "/env", DETAILED).items
        records: list[dict[str, Any]] = frameworks(Site(view, "/env", folders, len(before), tuple(items)))
        read = [msgspec.convert(record, Framework) for record in records]
        assert len({framework.name for framework in read}) == len(read)
        return {framework.name: framework for framework in read}

    def only(self, **variables: str) -> Framework:
        """The one framework that is found."""
        (framework,) = self.found(**variables).values()
        return framework


def told(framework: Framework, *fields: str) -> tuple[Any, ...]:
    return tuple(getattr(framework, field) for field in fields)


def requires(*lines: str) -> str:
    return "".join(f"Requires-Dist: {line}\n" for line in lines)


def elf_needing(*needed: str, constants: bytes = b"") -> bytes:
    """A 64-bit little-endian shared library that needs these, with a section ``.rodata``; nothing in it runs."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    strings = 64 + 2 * 56
    dynamic = strings + len(names)
    offsets = [names.index(b"\0" + name.encode() + b"\0") + 1 for name in needed]
    tags = [*((1, offset) for offset in offsets), (5, strings), (10, len(names)), (0, 0)]
    entries = b"".join(struct.pack("<qQ", *tag) for tag in tags)
    start = dynamic + len(entries)
    labels = b"\0.rodata\0.shstrtab\0"
    table = start + len(constants) + len(labels)
    size = table + 3 * 64
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, table, 0, 64, 56, 2, 64, 3, 2)
    segments = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096)
    segments += struct.pack("<IIQQQQQQ", 2, 6, dynamic, dynamic, dynamic, len(entries), len(entries), 8)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 2, start, start, len(constants), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 9, 3, 0, 0, start + len(constants), len(labels), 0, 0, 1, 0)
    return head + segments + names + entries + constants + labels + sections
