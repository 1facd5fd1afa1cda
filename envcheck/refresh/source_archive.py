"""What a source archive on an index declares, read as a stream: nothing is unpacked to disk, and nothing is built."""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import closing

import requests
import urllib3

from envcheck.compat.question.package_needs import read_requirement
from envcheck.errors import UsageError
from envcheck.refresh.index import TIMEOUT, File, cause
from envcheck.refresh.metadata import Metadata, parse_metadata
from envcheck.refresh.remote_wheel import RemoteWheel

_DECLARED = re.compile(r"[^/]+/(?:[^/]+/){0,2}[^/]+\.egg-info/requires\.txt")
"""What setuptools puts into an archive: the requirements, in sections."""
_INFO = re.compile(r"[^/]+/PKG-INFO")
_SECTION = re.compile(r"\[([^\]:]{0,100})(?::([^\]]{0,500}))?\]")
_MOST_BYTES = 1 << 20
_MOST_UNPACKED = 1 << 28
"""Bytes of an archive after which the search ends."""
_MOST_MEMBERS = 50_000
_BROKEN = (tarfile.TarError, zlib.error, EOFError, OSError, urllib3.exceptions.HTTPError)


def read_archive(file: File, session: requests.Session) -> Metadata:
    """What the archive requires; nothing, where it does not say. Raises UsageError when it cannot be read."""
    members = _of_zip(file, session) if file.name.endswith(".zip") else _of_tar(file, session)
    found = parse_metadata(members.get("info", b"")).requirements
    if not found:
        lines = _lines(members.get("declared", b"").decode("utf-8", "replace"))
        found = tuple(asked for line in lines if (asked := read_requirement(line)))
    return Metadata(file.requires_python, found)


def _lines(text: str) -> Iterator[str]:
    """The requirements in ``requires.txt`` that hold without an extra, with the marker of their section."""
    extra = marker = ""
    for line in map(str.strip, text.splitlines()):
        section = _SECTION.fullmatch(line)
        if section:
            extra, marker = section[1], section[2] or ""
        elif line and not extra:
            yield f"{line} ; {marker}" if marker else line


def _kind(name: str) -> str:
    return "declared" if _DECLARED.fullmatch(name) else "info" if _INFO.fullmatch(name) else ""


def _of_zip(file: File, session: requests.Session) -> dict[str, bytes]:
    with closing(RemoteWheel(file, session)) as archive:
        info = archive.read(lambda name: _kind(name) == "info", _MOST_BYTES)
        declared = archive.read(lambda name: _kind(name) == "declared", _MOST_BYTES)
    return {"info": info or b"", "declared": declared or b""}


def _of_tar(file: File, session: requests.Session) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        with session.get(file.url, timeout=TIMEOUT, stream=True) as response:
            response.raise_for_status()
            with tarfile.open(fileobj=response.raw, mode="r|*") as archive:
                left = _MOST_UNPACKED
                for count, member in enumerate(archive):
                    left -= member.size
                    if len(found) > 1 or left < 0 or count > _MOST_MEMBERS:
                        break
                    kind = _kind(member.name) if member.isfile() and member.size <= _MOST_BYTES else ""
                    content = archive.extractfile(member) if kind else None
                    if content:
                        found.setdefault(kind, content.read(_MOST_BYTES))
    except requests.RequestException as error:
        raise UsageError(f"{file.name} cannot be read: {cause(error)}") from None
    except _BROKEN as error:
        raise UsageError(f"{file.name} cannot be read as an archive: {type(error).__name__}") from None
    return found
