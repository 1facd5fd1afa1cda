"""``--reports``: saved reports, whatever brought them."""

from __future__ import annotations

import glob
import json
import lzma
import os
import re
import sys
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet.engines.engine import Coming
from envcheck.fleet.examine import NodeAnswer
from envcheck.report.saved import MOST_BYTES
from envcheck.text.clean import brief

MOST = 200_000  # Reports that are read at once
_TAR = re.compile(r"\.(?:tar(?:\.(?:gz|bz2|xz))?|tgz)$")
_BLOCK = 512
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ")
_CHUNK = 1 << 20
_LINE = 200
_BEGINS = re.compile(rb"""\{\s*"(?:schema_version|collected)":""")  # How a report or a collection begins


def answers(wanted: str) -> Coming:
    """One answer for each report: in a folder or a tar file (``*.json``), of a pattern, or on stdin (``-``).

    Raises UsageError where nothing is there.
    """
    if wanted == "-":
        return Coming(_on_stdin(cast("BufferedReader", sys.stdin.buffer)))
    if _TAR.search(wanted) and Path(wanted).is_file():
        try:
            return Coming(_in_tar(Path(wanted).open("rb"), wanted))
        except OSError as error:
            raise UsageError(f"--reports {wanted}: {error.strerror or error}") from None
    paths = files(wanted)
    unread = [NodeAnswer(node="", path=path, problem="interrupted before it was read") for path in paths]
    return Coming((NodeAnswer(node="", path=path) for path in paths), unread)


def files(wanted: str) -> list[str]:
    """The files of a folder, a pattern or a name; raise UsageError where there are none."""
    if Path(wanted).is_dir():
        try:
            found = [entry.path for entry in os.scandir(wanted) if entry.name.endswith(".json")]
        except OSError as error:
            raise UsageError(f"--reports {wanted}: {error.strerror or error}") from None
        nothing = f"--reports {wanted}: the folder has no .json file"
    else:
        found = [wanted] if Path(wanted).exists() else glob.glob(wanted, recursive=True)  # noqa: PTH207  10,000 of them
        nothing = f"--reports {wanted}: no such file, folder or pattern"
    if not found:
        raise UsageError(nothing)
    if len(found) > MOST:
        raise UsageError(f"--reports {wanted}: {len(found):,} files; at most {MOST:,} are read")
    return sorted(found)


def _in_tar(stream: IO[bytes], name: str) -> Iterator[NodeAnswer]:
    """The reports of a tar file, which is read from its start to its end and unpacked nowhere."""
    with closing(stream):
        try:
            with tarfile.open(fileobj=stream, mode="r|*") as tar:
                members = (each for each in tar if each.isreg() and each.name.endswith(".json"))
                for number, member in enumerate(members, 1):
                    path = f"{name}: {member.name}"
                    file = tar.extractfile(member) if 0 < member.size <= MOST_BYTES else None
                    if number > MOST:
                        yield NodeAnswer(node=name, problem=f"more than {MOST:,} reports; the others were not read")
                        return
                    problem = "" if file else f"it is empty or has more than {MOST_BYTES >> 20} MiB"
                    yield NodeAnswer(node="", path=path, content=file.read() if file else b"", problem=problem)
                # tarfile takes a missing or shortened header for the block of zeros that ends an archive.
                if tar.fileobj is not None and tar.fileobj.tell() < tar.offset + tarfile.BLOCKSIZE:
                    raise tarfile.ReadError("it ends without an end of archive")
        except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            yield NodeAnswer(node=name, problem=brief(f"damaged or cut off, the rest was not read: {error}"))


def _on_stdin(stream: BufferedReader) -> Iterator[NodeAnswer]:
    """A tar file; or JSON objects with only white space between them, on a line each or over many."""
    begins = stream.peek(_BLOCK)
    if begins[257:262] == b"ustar" or begins.startswith(_PACKED):
        yield from _in_tar(stream, "stdin")
        return
    for number, content in enumerate(_objects(stream), 1):
        if number > MOST:
            raise UsageError(f"--reports -: more than {MOST:,} reports on stdin")
        name = f"report {number} on stdin"
        if isinstance(content, str):
            yield NodeAnswer(node=name, problem=content)
        else:
            yield NodeAnswer(node="", path=name, content=content)


def _objects(stream: BufferedReader) -> Iterator[bytes | str]:
    """The text of each object, as soon as it came; as str, why the rest cannot be read."""
    kept, ended, again = b"", False, 0
    decoder = json.JSONDecoder()
    while not ended:
        chunk = stream.read1(_CHUNK)
        ended = not chunk
        kept += chunk
        # A line that closes an object at the margin, or holds a whole one, ends a report.
        while kept and (ended or (len(kept) >= again and (b"\n}" in kept or b"}\n" in kept))):
            text = kept.lstrip()
            if not text:
                return
            # The start of the next report, at the start of a line; 0 for none.
            place = text.find(b"\n{")
            while place >= 0 and not _BEGINS.match(text, place + 1):
                place = text.find(b"\n{", place + 1)
            following = place + 1
            part = text[:following] if following else text
            size = len(part) if following and _is_json(part) else _size(part, decoder)
            if size is None and following:
                # Before a report stands a word on stderr, or a report that was cut off.
                word = "" if part[:1] == b"{" else f": {part.splitlines()[0][:_LINE].decode('utf-8', 'replace')}"
                yield brief(f"no usable report: it is not JSON, or is cut off{word}")
                kept, again = text[len(part) :], 0
                continue
            if size is None:
                again = len(kept) * 5 // 4  # what only looks like an end costs no second reading of all for each chunk
                break
            yield text[:size]
            kept, again = text[size:], 0
        if len(kept) > MOST_BYTES:
            yield f"it has more than {MOST_BYTES >> 20} MiB; what follows was not read"
            return
    if kept.strip():
        yield "no usable report: what is left is not JSON, or is cut off"


def _is_json(text: bytes) -> bool:
    """Whether ``text`` is one object: answered much faster than where it ends."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return text[:1] == b"{"


def _size(text: bytes, decoder: json.JSONDecoder) -> int | None:
    """Bytes of the JSON object or list at the start of ``text``; None where none is whole."""
    if text[:1] not in b"{[":
        return None  # the date of a log line begins with a number
    try:
        decoded = text.decode("utf-8", "surrogateescape")
        _, end = decoder.raw_decode(decoded)
    except (ValueError, RecursionError):
        return None
    return len(decoded[:end].encode("utf-8", "surrogateescape"))
