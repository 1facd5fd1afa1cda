"""Which library file is mapped, and why one is not."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from probes.driver_apis import is_missing, mapped, why_not_loadable

MAPS = """\
5581-5582 r--p 00000000 00:1f 1234                       /usr/bin/python3.11
7f01-7f02 rw-p 00000000 00:00 0
7f02-7f03 r-xp 00000000 00:1f 2001                       {folder}/libcudart.so.12
7f03-7f04 r-xp 00000000 00:1f 2002                       {folder}/with blank/libcuda.so.580.1
7f04-7f05 r-xp 00000000 00:1f 2003                       {folder}/libcuda.so.1
7f05-7f06 rw-p 00000000 00:00 0                          [heap]
"""


def test_the_first_file_with_the_stem_is_named(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(MAPS.format(folder=tmp_path))
    assert mapped("libcuda.so", str(maps)) == str(tmp_path / "with blank/libcuda.so.580.1")
    assert mapped("libnvidia-ml.so", str(maps)) is None
    assert mapped("libcuda.so", str(tmp_path / "missing")) is None


def test_links_are_resolved_and_strange_names_stay_printable(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.580.1").touch()
    (tmp_path / "libcuda.so.1").symlink_to("libcuda.so.580.1")
    maps = tmp_path / "maps"
    maps.write_bytes(f"1-2 r-xp 0 00:1f 1 {tmp_path}/libcuda.so.1\n".encode())
    assert mapped("libcuda.so", str(maps)) == str(tmp_path / "libcuda.so.580.1")
    maps.write_bytes(b"1-2 r-xp 0 00:1f 1 /\xff/libcuda.so.1\n")
    assert mapped("libcuda.so", str(maps)) == "/\ufffd/libcuda.so.1"


def test_this_process_has_the_c_library_mapped() -> None:
    assert ctypes.CDLL(None)
    path = mapped("libc.so") or mapped("ld-linux-x86-64.so") or mapped("ld-linux-aarch64.so")
    assert path
    assert Path(path).is_file()


def test_the_loaders_words(tmp_path: Path) -> None:
    soname = "libof-no-such-thing.so.9"
    complaint = why_not_loadable(soname)
    assert complaint
    assert is_missing(soname, complaint)
    torn = tmp_path / "libtorn.so.1"
    torn.write_text("no library")
    complaint = why_not_loadable(str(torn))
    assert complaint
    assert not is_missing("libtorn.so.1", complaint)


def test_a_library_that_loads_has_nothing_against_it() -> None:
    path = mapped("libc.so")
    if path is None:
        pytest.skip("no libc.so among the mapped files")
    assert why_not_loadable(path) is None
