"""A library by its path: what is not there, what cannot be loaded, and what a call of it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.measuring.device import LibraryError, Unavailable
from probes.measuring.library import Library
from tests.probes.bench.host_gpu import HostDevice, PythonLibrary, bench_on, load_instead
from tests.probes.tiny_elf import tiny_elf


def opened(*first: str, **libraries: str) -> Library:
    return Library(bench_on(HostDevice(), {name: [path] for name, path in libraries.items()}), "cufft", "cuFFT", first)


def test_no_library_is_nobodys_fault() -> None:
    with pytest.raises(Unavailable, match="no cuFFT was found"):
        opened()


def test_a_file_that_is_not_there_and_one_that_is_no_library_fail(tmp_path: Path) -> None:
    text = tmp_path / "libcufft.so.11"
    with pytest.raises(LibraryError, match="cannot open shared object file"):
        opened(cufft=str(text))
    text.write_text("no library " * 100)
    with pytest.raises(LibraryError, match="it is not an ELF file") as error:
        opened(cufft=str(text))
    assert error.value.path == str(text)


def test_a_truncated_library_is_not_loaded(tmp_path: Path) -> None:
    """Loaded, it would end the process with SIGBUS."""
    path = tmp_path / "libcufft.so.11"
    whole = tiny_elf(["libm.so.6"], soname="libcufft.so.11")
    path.write_bytes(whole[:-5])
    with pytest.raises(LibraryError, match=f"it is cut off: {len(whole) - 5} of at least {len(whole)} bytes"):
        opened(cufft=str(path))


def test_a_truncated_library_that_it_needs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_instead(monkeypatch, PythonLibrary())
    needed = tmp_path / "libnvJitLink.so.12"
    needed.write_bytes(tiny_elf(soname="libnvJitLink.so.12")[:-1])
    with pytest.raises(LibraryError, match=r"libnvJitLink\.so\.12: it is cut off") as error:
        opened("nvJitLink", cufft="/opt/libcufft.so.11", nvJitLink=str(needed))
    assert error.value.path == str(needed)


def test_a_function_that_this_release_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    load_instead(monkeypatch, PythonLibrary(("cufftNew",)))
    found = opened(cufft="/opt/libcufft.so.11")
    assert (found.offers("cufftNew"), found.offers("cufftCreate")) == (False, True)
    with pytest.raises(Unavailable, match="this release of cuFFT has no cufftNew"):
        found.ask("cufftNew")
