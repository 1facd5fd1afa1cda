"""Slim wheels: real wheels of CUDA libraries whose GPU code is blanked, so that a whole stack is soon installed.

Name, size, headers, symbols and needed libraries of each file stay what they are; the sections with code for GPUs
become zeros, and RECORD says the new hashes. What a static check reads is untouched, frameworks can be imported, and a
gigabyte of zeros compresses to nothing. No GPU can compute with such a library.
"""

import base64
import csv
import hashlib
import io
import zipfile
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

GPU_CODE = (".nv_fatbin", "__nv_relfatbin", ".rodata.fatbin")
SMALL = 4 << 20  # Bytes of a library that is not worth the work


def slim(wheel: Path, folder: Path) -> Path:
    """Write the slim copy of ``wheel`` into ``folder``, under the same name."""
    written = folder / wheel.name
    changed: dict[str, tuple[str, int]] = {}
    unfinished = written.with_suffix(".part")
    with (
        zipfile.ZipFile(wheel) as source,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out,
    ):
        for info in sorted(source.infolist(), key=_is_record):
            content = source.read(info)
            if _is_record(info):
                content = _recorded(content, changed)
            elif ".so" in info.filename and len(content) > SMALL:
                content = _blanked(content)
                changed[info.filename] = (_digest(content), len(content))
            out.writestr(info, content, compress_type=zipfile.ZIP_DEFLATED, compresslevel=1)
    return unfinished.rename(written)


def _is_record(info: zipfile.ZipInfo) -> bool:
    """What is written last, when all that changed is known: not every wheel ends with it."""
    return info.filename.endswith(".dist-info/RECORD")


def _blanked(content: bytes) -> bytes:
    try:
        sections = list(ELFFile(io.BytesIO(content)).iter_sections())
    except ELFError:
        return content
    found = bytearray(content)
    for section in sections:
        if section.name in GPU_CODE:
            start, size = section["sh_offset"], section["sh_size"]
            found[start : start + size] = bytes(size)
    return bytes(found)


def _digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _recorded(record: bytes, changed: dict[str, tuple[str, int]]) -> bytes:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    for name, digest, size in csv.reader(io.StringIO(record.decode())):
        writer.writerow([name, *map(str, changed.get(name, (digest, size)))])
    return written.getvalue().encode()
