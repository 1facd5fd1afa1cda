"""What a measurement under the environment's interpreter becomes, and the processor's own figures."""

import cmath
import ctypes
import math
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from probes.bench import cpu as bench_cpu
from probes.framework_bench import processor
from probes.framework_bench.convolution import KINDS, Convolution, ConvolutionShape
from probes.framework_bench.processor import Blas, blas_of
from probes.framework_bench.workloads import TransformSize, rate
from probes.measuring.runtime import Fields, FigureKey, LibraryError, Unavailable, compared, run_all
from tests.every import cases
from tests.probes.trials.test_deep_end_to_end import python_of


class Sent:
    def __init__(self) -> None:
        self.measurements: list[Fields] = []
        self.said: list[str] = []

    def fact(self, part: dict[str, Any]) -> None:
        self.measurements += part["measurements"]

    def progress(self, text: str) -> None:
        self.said.append(text)


def ran(measures: dict[FigureKey, Callable[[], Fields]], only: tuple[str, ...] = ()) -> Sent:
    sent: Any = Sent()
    run_all(sent, measures, "GPU-1", only, inside=True)
    return sent  # type: ignore[no-any-return]


def raising(error: Exception) -> Callable[[], Fields]:
    def measure() -> Fields:
        raise error

    return measure


def test_each_end_is_a_measurement_of_its_own() -> None:
    figure = FigureKey("product", "fp32", (4, 4), "fused")
    same = {"source": "bench", "gpu": "GPU-1"}
    sent = ran(
        {
            figure: lambda: {"value": 2.0, "library": None},
            FigureKey("absent"): raising(Unavailable("NumPy is not here")),
            FigureKey("refused"): raising(LibraryError("no builder", "/lib/libnvinfer.so.8")),
            FigureKey("failed"): raising(MemoryError("17 GiB")),
        }
    )
    assert sent.measurements == [
        {**same, "name": "product", "precision": "fp32", "shape": [4, 4], "variant": "fused", "value": 2.0},
        {**same, "name": "absent", "missing": "NumPy is not here"},
        {**same, "name": "refused", "missing": "no builder", "failed": True, "library": "/lib/libnvinfer.so.8"},
        {**same, "name": "failed", "missing": "MemoryError: 17 GiB", "failed": True},
    ]
    assert sent.said == ["product fp32 fused 4x4", "absent", "refused", "failed"]


def test_only_what_was_asked_for_is_measured() -> None:
    sent = ran(
        {FigureKey("one"): dict, FigureKey("two"): raising(AssertionError("not asked for"))}, only=("one", "three")
    )
    assert [each["name"] for each in sent.measurements] == ["one"]


def test_a_rate_is_the_median_of_its_samples() -> None:
    assert rate(6.0, [1.0, 3.0, 2.0], "B/s") == {"value": 3.0, "samples": [6.0, 2.0, 3.0], "unit": "B/s"}


@cases("found", 1.2, 0.8, math.nan, math.inf)
def test_a_wrong_element_makes_the_result_wrong(found: float) -> None:
    good = [(1.0, 1.0, 1.0), (1.05, 1.0, 1.0)]
    assert compared(good, 0.1, "so")["right"]
    bad = compared([*good, (found, 1.0, 1.0)], 0.1, "so")
    assert (bad["right"], bad["checked"], bad["wrong"]) == (False, 3, 1)


def test_a_result_of_which_nothing_was_checked_is_not_right() -> None:
    assert not compared([], 0.1, "so")["right"]


def test_an_error_is_measured_by_the_size_of_the_sum() -> None:
    assert compared([(1000.0, 1001.0, 100.0)], 0.02, "so")["right"]
    assert not compared([(1000.0, 1001.0, 10.0)], 0.02, "so")["right"]


@pytest.mark.parametrize("precision", KINDS)
def test_operands_are_drawn_anew_and_cover_their_range(precision: str) -> None:
    convolution = Convolution(ConvolutionShape(2, 32, 8, 8, 32))
    first, second = convolution.given(precision), convolution.given(precision)
    assert first != second
    assert len(first) == convolution.shape.inputs * KINDS[precision].size
    triples = list(convolution.triples(precision, first, lambda _: 0.0))
    assert len({exact for _, exact, _ in triples}) > 8
    assert any(exact == 0.0 for _, exact, _ in triples)  # the ReLU cuts off about every second


def test_channels_that_int8_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="groups of 32"):
        Convolution(ConvolutionShape(1, 24, 8, 8, 32))


# --- The processor's figures ----------------------------------------------------------------------------------------
INFO = "processor\t: 0\nmodel name\t: AMD EPYC 9575F 64-Core Processor\ncpu cores\t: 64\n"
SOURCE = """
#include <string.h>
int {threads}(void) {{ return {count}; }}
const char *{config}(void) {{ return "OpenBLAS 0.3.31 DYNAMIC_ARCH Zen MAX_THREADS=64"; }}
"""


def test_the_processor_and_what_of_it_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    info, quota = tmp_path / "cpuinfo", tmp_path / "cpu.max"
    info.write_text(INFO)
    assert processor.processor(str(info), str(quota)) == "AMD EPYC 9575F 64-Core Processor, 8 logical CPUs"
    quota.write_text("250000 100000\n")
    assert processor.processor(str(info), str(quota)).endswith(", limited to the time of 2.5 by its control group")
    for unlimited in ("max 100000\n", "900000 100000\n", "100000 0\n", "x\n", ""):
        quota.write_text(unlimited)
        assert processor.processor(str(info), str(quota)).endswith("8 logical CPUs")


def compiled(folder: Path, name: str, threads: str, config: str, count: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "blas.c"
    source.write_text(SOURCE.format(threads=threads, config=config, count=count))
    library = folder / name
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    ctypes.CDLL(str(library))
    return library


@cases("name, threads, config",
    ("libscipy_openblas64_-6bb3.so", "scipy_openblas_get_num_threads64_", "scipy_openblas_get_config64_"),
    ("libopenblas64_p-r0.3.23.so", "openblas_get_num_threads64_", "openblas_get_config64_"),
    ("libopenblas.so.0", "openblas_get_num_threads", "openblas_get_config"),
)  # fmt: skip
def test_a_blas_is_asked_for_its_threads(name: str, threads: str, config: str, tmp_path: Path) -> None:
    other = compiled(tmp_path / "other", name, threads, config, 3)
    own = compiled(tmp_path / "site" / "numpy.libs", name, threads, config, 12)
    numpy: Any = SimpleNamespace(__file__=str(tmp_path / "site" / "numpy" / "__init__.py"))
    found = blas_of(numpy, [str(other), "/usr/lib/libm.so.6", str(own)])
    assert found == Blas("OpenBLAS 0.3.31", 12, str(own))
    assert found.words == "OpenBLAS 0.3.31, 12 threads"


def test_a_blas_that_says_nothing_is_still_named(tmp_path: Path) -> None:
    silent = compiled(tmp_path, "libnvpl_blas_lp64_gomp.so.0", "f", "g", 1)
    found = blas_of(SimpleNamespace(), [str(silent)])
    assert found == Blas("NVPL BLAS", None, str(silent))
    assert found.words == "NVPL BLAS, an unknown number of threads"
    assert blas_of(SimpleNamespace(), ["/usr/lib/libm.so.6"]) is None


def test_threadpoolctl_knows_better(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pools = [
        {"user_api": "openmp", "internal_api": "openmp", "num_threads": 64, "filepath": "/a/libgomp.so.1"},
        {"user_api": "blas", "internal_api": "mkl", "num_threads": 8, "version": "2025.1-Product", "filepath": "/a/b"},
    ]
    module = ModuleType("threadpoolctl")
    module.__dict__["threadpool_info"] = lambda: pools
    monkeypatch.setitem(sys.modules, "threadpoolctl", module)
    assert blas_of(SimpleNamespace(), []) == Blas("MKL 2025.1", 8, "/a/b")


@pytest.fixture
def without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numpy", raising=False)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not entry.endswith("-packages")])


@pytest.mark.usefixtures("without_numpy")
def test_without_numpy_nothing_is_measured_and_why() -> None:
    for measure in bench_cpu.measures().values():
        with pytest.raises(Unavailable, match="NumPy is not in this environment"):
            measure()


@pytest.mark.usefixtures("without_numpy")
@cases("broken", "import _numpy_core_that_is_gone", "raise ImportError('libopenblas.so')")
def test_a_broken_numpy_is_a_failure(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy.py").write_text(broken)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])  # syspath_prepend would restore the narrowed path
    with pytest.raises(ImportError):
        bench_cpu.product("fp32")


def test_memory_is_that_of_the_machine_and_of_the_control_group(tmp_path: Path) -> None:
    memory, limit, used = (tmp_path / name for name in ("meminfo", "max", "current"))
    paths = [str(path) for path in (memory, limit, used)]
    assert processor.free_memory(*paths) is None
    memory.write_text("MemTotal:       2000000 kB\nMemFree:  5 kB\nMemAvailable:    1000000 kB\n")
    assert processor.free_memory(*paths) == 1024000000
    limit.write_text("max\n")
    used.write_text("700\n")
    assert processor.free_memory(*paths) == 1024000000
    limit.write_text("1000\n")
    assert processor.free_memory(*paths) == 300
    used.write_text("1001\n")
    assert processor.free_memory(*paths) == 0


def test_what_does_not_fit_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_cpu, "free_memory", lambda: 10 << 20)
    monkeypatch.setattr(bench_cpu, "_numpy", lambda: SimpleNamespace(fft=SimpleNamespace()))
    for measure in (bench_cpu._Sparse, lambda: bench_cpu.product("fp32")):
        with pytest.raises(Unavailable, match="more than half of what is free"):
            measure()


def test_bins_are_those_of_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"2D": TransformSize((3, 4)), "1D, batched": TransformSize((4,), 3)}
    monkeypatch.setattr(bench_cpu, "TRANSFORMS", sizes)
    points = {(y, x): complex(random.uniform(-1, 1), random.uniform(-1, 1)) for y in range(3) for x in range(4)}
    wanted = [(row, column) for row in range(3) for column in range(4)]
    for name in ("2D", "1D, batched"):
        for (row, column), exact, size in bench_cpu._bins(name, points, wanted):
            expected = sum(
                value * cmath.exp(-2j * math.pi * (x * column / 4 + (y * row / 3 if name == "2D" else 0)))
                for (y, x), value in points.items()
                if name == "2D" or y == row
            )
            assert abs(exact - expected) < 1e-12
            assert size > 0


@cases("module", "bench.cpu", "bench.tensorrt")
def test_what_runs_in_environments_is_read_by_python_3_8(module: str) -> None:
    root = str(Path(bench_cpu.__file__).parents[2])
    code = f"import sys; sys.path.insert(0, {root!r}); import probes.{module}"
    subprocess.run([python_of("3.8"), "-I", "-B", "-c", code], check=True)
