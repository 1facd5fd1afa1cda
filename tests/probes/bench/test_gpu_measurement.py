"""Measurements as they are sent, and which code a GPU gets where no NVRTC compiles it."""

import json
import sys
from pathlib import Path
from threading import Event, Timer
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from envcheck.model.snapshot import Measurement
from probes.bench import chip as bench_chip
from probes.bench import gemm as bench_gemm
from probes.bench import links as bench_links
from probes.bench import memory as bench_memory
from probes.common.out import Out
from probes.common.tree import Tree
from probes.measuring import kernels
from probes.measuring.cublaslt import CublasLt, Heuristic, Product
from probes.measuring.kernels import CompileError, Compiler, Nvrtc, prepared_name
from probes.measuring.measurement import Bench, measurement
from probes.measuring.runtime import CudaError, FigureKey, LibraryError, Unavailable, run_all
from probes.measuring.variants import variants
from tests.every import cases


def bench(*only: str) -> Bench:
    nothing: Any = None
    return Bench("GPU-1", nothing, nothing, nothing, full=False, only=frozenset(only), libraries={})


def sent(measures: dict[FigureKey, Any], *only: str, fails: type[Exception] | None = None) -> list[Measurement]:
    lines: list[bytes] = []
    out = Out("bench_a", lines.append)
    if fails:
        with pytest.raises(fails):
            run_all(out, measures, "GPU-1", only)
    else:
        run_all(out, measures, "GPU-1", only)
    facts = [json.loads(line).get("fact", {}).get("measurements", []) for line in lines]
    return msgspec.convert([each for fact in facts for each in fact], list[Measurement])


def one(name: str) -> Any:
    return lambda: measurement(name, "GPU-1", [3.0, 1.0, 2.0], conditions={}, unit="B/s")


def failing(error: Exception) -> Any:
    def measure() -> None:
        raise error

    return measure


def test_the_value_is_the_median() -> None:
    (found,) = sent({FigureKey("device-memory-copy"): one("device-memory-copy")})
    assert (found.value, found.samples, found.gpu) == (2.0, (3.0, 1.0, 2.0), "GPU-1")


def test_only_what_was_asked_for() -> None:
    asked = {"gemm": "fp32", "fma": "fp32", "mma": "bf16"}
    measures = {FigureKey(name, precision): one(name) for name, precision in asked.items()}
    assert [each.name for each in sent(measures, "gemm", "mma")] == ["gemm", "mma"]
    assert len(sent(measures)) == 3


def test_what_is_unavailable_costs_itself_alone() -> None:
    found = sent(
        {FigureKey("gemm", "fp8"): failing(Unavailable("no algorithm")), FigureKey("gemm", "bf16"): one("gemm")}
    )
    assert [each.missing for each in found] == ["no algorithm", None]
    assert (found[0].name, found[0].precision, found[0].value) == ("gemm", "fp8", None)


def test_a_failed_call_ends_the_rest_and_is_said() -> None:
    error = CudaError("cuLaunchKernel", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    found = sent({FigureKey("gemm", "fp8"): failing(error), FigureKey("gemm", "bf16"): one("gemm")}, fails=CudaError)
    assert [each.missing for each in found] == ["cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700)"]


def test_a_library_that_fails_costs_itself_alone_and_is_told_from_one_that_is_not_there() -> None:
    error = LibraryError("cudnnCreate: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED (1012)", "/opt/libcudnn.so.9")
    figure = FigureKey("cudnn-convolution", "fp16", variant="forward")
    found = sent({figure: failing(error), FigureKey("gemm", "bf16"): one("gemm")})
    assert [each.failed for each in found] == [True, False]
    assert (found[0].missing, found[0].library) == (str(error), "/opt/libcudnn.so.9")
    assert (found[0].precision, found[0].variant) == ("fp16", "forward")


@cases("figure, called, facts",
    (FigureKey("device-memory-copy"), "device-memory-copy", {}),
    (FigureKey("fma", "fp64"), "fma fp64", {"precision": "fp64"}),
    (FigureKey("gemm", "bf16", burst=False), "gemm bf16 sustained", {"precision": "bf16", "burst": False}),
    (FigureKey("gemm", "tf32", (16384, 8192, 1024)), "gemm tf32 16384x8192x1024", {"precision": "tf32"}),
)  # fmt: skip
def test_what_is_missing_is_named_as_what_is_there(figure: FigureKey, called: str, facts: dict[str, Any]) -> None:
    (found,) = sent({figure: failing(Unavailable("why"))})
    assert str(figure) == called
    assert (found.name, found.missing, found.shape) == (figure.name, "why", figure.shape)
    assert facts.items() <= figure.facts.items()
    assert (found.precision, found.burst) == (figure.precision, figure.burst)


# --- bindings that cannot make a call -----------------------------------------------------------------------------
def old_driver(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    """A binding, and a driver that lacks the entry points ``missing``."""

    def calling(name: str) -> Any:
        def made(*_: Any) -> tuple[int, int]:
            if name in missing:
                raise RuntimeError(f'Function "{name}" not found')
            return 0, 0

        return made

    binding = SimpleNamespace(**{name: calling(name) for name in ("cuInit", "cuDeviceGetCount")})
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bindings=SimpleNamespace(__version__="99.1")))
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=binding, __version__="99.1"))


def asked(probe: Any, **bench: Any) -> dict[str, Any]:
    """How a bench probe ended."""
    lines: list[bytes] = []
    out = Out(probe.__name__, lines.append)
    probe.collect(Tree({"bench": {"gpu": "GPU-1", "gpus": [{"uuid": "GPU-1"}], "libraries": {}, **bench}}), out)
    out.done()
    done: dict[str, Any] = json.loads(lines[-1])["done"]
    return done


@cases("probe", bench_chip, bench_gemm, bench_links, bench_memory)
def test_a_binding_that_cannot_speak_to_the_driver_is_named(probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    old_driver(monkeypatch, "cuInit")
    done = asked(probe, full=True)
    assert done["status"] == "absent"
    assert done["detail"] == 'cuda-bindings 99.1 cannot work with this driver: Function "cuInit" not found'


def test_no_binding_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert asked(bench_memory)["detail"].startswith("cuda-bindings cannot be used: ")


def test_a_gpu_that_cuda_does_not_show_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    old_driver(monkeypatch)
    assert asked(bench_memory)["detail"] == "CUDA does not show GPU-1 to this process"


# --- links --------------------------------------------------------------------------------------------------------
def test_a_gpu_without_a_context_costs_its_own_links_only(monkeypatch: pytest.MonkeyPatch) -> None:
    uuids = ["GPU-1", "GPU-2", "GPU-3"]

    class Fake:
        def __init__(self, ordinal: int) -> None:
            if ordinal == 0:
                raise CudaError("cuDevicePrimaryCtxRetain", 2, "CUDA_ERROR_OUT_OF_MEMORY")
            self.capability = (9, 0)

    links: list[str] = []
    monkeypatch.setattr(bench_links, "visible", lambda _out: {uuid: place for place, uuid in enumerate(uuids)})
    monkeypatch.setattr(bench_links, "Device", Fake)
    monkeypatch.setattr(bench_links, "_host_links", lambda _tree, bench, *_: links.append(bench.uuid))
    monkeypatch.setattr(bench_links, "_pair", lambda one, other, *_: links.append(f"{one.uuid} {other.uuid}"))
    with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
        asked(bench_links, gpus=[{"uuid": uuid} for uuid in uuids])
    assert links == ["GPU-2", "GPU-3", "GPU-2 GPU-3"]


# --- Which code a GPU gets where no NVRTC compiles it, and what is said where there is none -------------------------
@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernels, "PREPARED", str(tmp_path / "prepared"))
    (tmp_path / "prepared").mkdir()
    for name in ("sm_50.cubin", "sm_80.cubin", "sm_89.cubin", "sm_90.cubin", "compute_50.ptx", "compute_89.ptx"):
        (tmp_path / "prepared" / f"memory-UNROLL1.{name}").write_text(name)
    (tmp_path / "prepared" / "memory-UNROLL1.notes.txt").write_text("no code")
    return tmp_path / "prepared"


@cases("capability, code",
    ((5, 0), b"sm_50.cubin"), ((5, 3), b"sm_50.cubin"), ((8, 0), b"sm_80.cubin"), ((8, 6), b"sm_80.cubin"),
    ((8, 9), b"sm_89.cubin"), ((9, 0), b"sm_90.cubin"), ((7, 5), b"compute_50.ptx\0"), ((10, 0), b"compute_89.ptx\0"),
)  # fmt: skip
def test_the_nearest_code_is_taken(capability: tuple[int, int], code: bytes, prepared: Path) -> None:
    assert Compiler((), capability).module("memory", ("-DUNROLL=1",)) == code


@cases("options, capability", (("-DUNROLL=4",), (9, 0)), ((), (9, 0)), (("-DUNROLL=1",), (3, 5)))
def test_other_options_or_gpus_have_none(options: tuple[str, ...], capability: tuple[int, int], prepared: Path) -> None:
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


class Configured:
    """A cuBLASLt that tells the first ``known`` numbers of an algorithm: 66, 67 and so on."""

    def __init__(self, known: int) -> None:
        self.known, self.function = known, lambda _name: self._read if known else None

    def _read(self, _algorithm: object, attribute: int, value: Any, size: Any, _written: object) -> int:
        assert size.value == (2 if attribute >= 7 else 4)
        if attribute < self.known:
            value._obj.value = 66 + attribute
        return int(attribute >= self.known)


@cases("known, named",
    (9, "NN 66-67-68-69-70-71-72-73-74"), (7, "NN 66-67-68-69-70-71-72-?-?"), (0, None),
)  # fmt: skip
def test_an_algorithm_is_named_by_its_configuration(known: int, named: str | None) -> None:
    product: Any = Product.__new__(Product)
    product.layout, product._library = "NN", Configured(known)
    assert product.named(Heuristic()) == named
