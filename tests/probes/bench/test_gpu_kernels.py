"""Which code a GPU gets where no NVRTC compiles it, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Timer

import pytest

from probes.measuring import kernels
from probes.measuring.cublaslt import CublasLt
from probes.measuring.device import Unavailable
from probes.measuring.kernels import CompileError, Compiler, Nvrtc, prepared_name
from probes.measuring.variants import variants


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernels, "PREPARED", str(tmp_path / "prepared"))
    (tmp_path / "prepared").mkdir()
    for name in ("sm_50.cubin", "sm_80.cubin", "sm_89.cubin", "sm_90.cubin", "compute_50.ptx", "compute_89.ptx"):
        (tmp_path / "prepared" / f"memory-UNROLL1.{name}").write_text(name)
    (tmp_path / "prepared" / "memory-UNROLL1.notes.txt").write_text("no code")
    return tmp_path / "prepared"


@pytest.mark.parametrize(
    ("capability", "code"),
    [
        ((5, 0), b"sm_50.cubin"),
        ((5, 3), b"sm_50.cubin"),
        ((8, 0), b"sm_80.cubin"),
        ((8, 6), b"sm_80.cubin"),
        ((8, 9), b"sm_89.cubin"),
        ((9, 0), b"sm_90.cubin"),
        ((7, 5), b"compute_50.ptx\0"),
        ((10, 0), b"compute_89.ptx\0"),
    ],
)
def test_the_nearest_code_is_taken(capability: tuple[int, int], code: bytes, prepared: Path) -> None:
    assert Compiler((), capability).module("memory", ("-DUNROLL=1",)) == code


@pytest.mark.parametrize(
    ("options", "capability"), [(("-DUNROLL=4",), (9, 0)), ((), (9, 0)), (("-DUNROLL=1",), (3, 5))]
)
def test_other_options_and_older_gpus_have_none(
    options: tuple[str, ...], capability: tuple[int, int], prepared: Path
) -> None:
    with pytest.raises(Unavailable, match=r"no NVRTC was found, and none was prepared"):
        Compiler((), capability).module("memory", options)


def test_what_is_wrong_with_the_libraries_is_said(tmp_path: Path) -> None:
    """A file that is not a library, and one that is not there."""
    (tmp_path / "libnvrtc.so.12").write_bytes(b"\x7fELF nonsense")
    compiler = Compiler([str(tmp_path / "libnvrtc.so.12"), str(tmp_path / "missing.so")], (9, 0))
    with pytest.raises(Unavailable) as caught:
        compiler.module("no-such-kernel")
    assert str(caught.value).count("NVRTC cannot be loaded") == 2


def test_a_library_that_is_no_nvrtc_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="compiles no cubins"):
        Nvrtc("libc.so.6")
    with pytest.raises(Unavailable, match="is not a cuBLASLt"):
        CublasLt("libc.so.6")
    with pytest.raises(Unavailable, match="cuBLASLt cannot be loaded"):
        CublasLt("no-such-library.so.12")


def test_names_of_prepared_code_tell_variants_apart() -> None:
    found = variants()
    names = [prepared_name(variant.name, variant.options) for variant in found]
    assert len(set(names)) == len(names)
    assert "gemm-KIND4-RESULT3" in names
    assert "compute-MMA-KIND4" in names
    assert all((Path(kernels.FOLDER) / f"{variant.name}.cu").is_file() for variant in found)


def test_every_source_has_a_variant() -> None:
    assert {file.stem for file in Path(kernels.FOLDER).glob("*.cu")} == {variant.name for variant in variants()}


class SlowNvrtc:
    """Compiles one source after it was let."""

    path, version = "libnvrtc.so.13", "13.0"

    def __init__(self) -> None:
        self.let, self.compiled = Event(), list[str]()
        self.error: Exception | None = None

    def cubin(self, _source: str, name: str, _architecture: str, _options: object) -> bytes:
        self.let.wait(10)
        self.compiled.append(name)
        if self.error:
            raise self.error
        return b"cubin"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> tuple[Compiler, SlowNvrtc]:
    monkeypatch.setattr(kernels, "_COMPILED", {})
    nvrtc = SlowNvrtc()
    compiler = Compiler((), (9, 0))
    monkeypatch.setattr(compiler, "_nvrtc", nvrtc)
    return compiler, nvrtc


def test_what_is_compiled_ahead_is_waited_for_and_compiled_once(slow: tuple[Compiler, SlowNvrtc]) -> None:
    compiler, nvrtc = slow
    compiler.ahead(("caches",), ("caches",))
    compiler.ahead(("caches",))
    Timer(0.05, nvrtc.let.set).start()
    assert compiler.module("caches") == compiler.module("caches") == b"cubin"
    assert nvrtc.compiled == ["caches.cu"]


def test_an_error_ahead_is_reported_where_the_module_is_needed(slow: tuple[Compiler, SlowNvrtc]) -> None:
    compiler, nvrtc = slow
    nvrtc.error = CompileError("no such register")
    nvrtc.let.set()
    compiler.ahead(("caches",))
    with pytest.raises(Unavailable, match="no such register"):
        compiler.module("caches")
