"""envcheck's micro-kernels beside PyTorch on one GPU, in one process: same shape, type, data and burst, taken in turns.

    python benchmarks/speed_ratio.py [--rounds 5]

Run it with an interpreter that has PyTorch for CUDA, cuda-bindings and nvidia-ml-py, from a checkout. Each quantity is
measured by envcheck, then by PyTorch, then by envcheck again …; the ratio is that of the medians, envcheck's over
PyTorch's. Matrix products of PyTorch are timed in both layouts, and the better one counts.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from probes.bench import gemm as bench_gemm  # noqa: E402
from probes.bench import memory as bench_memory  # noqa: E402
from probes.measuring.cublaslt import PRECISIONS, CublasLt  # noqa: E402
from probes.measuring.device import Device, ordinals  # noqa: E402
from probes.measuring.host_copies import SIZE as LINK_BYTES  # noqa: E402
from probes.measuring.host_copies import WAYS, HostCopies, HostMemory  # noqa: E402
from probes.measuring.kernels import Compiler  # noqa: E402
from probes.measuring.measurement import Bench, run_task  # noqa: E402
from probes.measuring.runtime import FigureKey  # noqa: E402
from probes.measuring.sampler import Sampler  # noqa: E402

SIDE = 8192
BYTES = 4 << 30
PRODUCTS = 10
PAUSE = bench_gemm.BURST.pause
Figure = Callable[[], float]  # Measures once and returns a rate


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=5)
    rounds = options.parse_args().rounds
    torch: Any = importlib.import_module("torch")
    bench = _bench()
    print(f"| quantity | envcheck | PyTorch {torch.__version__} | ratio | spread of envcheck |\n|---|---|---|---|---|")
    for name, ours, theirs, scale, unit in [*_memory(bench, torch), *_links(bench, torch), *_products(bench, torch)]:
        pairs = [(ours(), theirs()) for _ in range(rounds)]
        mine, other = ([pair[place] for pair in pairs] for place in (0, 1))
        first, second = statistics.median(mine), statistics.median(other)
        spread = (max(mine) - min(mine)) / first
        figures = f"{first / scale:.4g} {unit} | {second / scale:.4g} {unit} | {first / second:.3f} | {spread:.1%}"
        print(f"| {name} | {figures} |")


def _bench() -> Bench:
    uuid, ordinal = next(iter(ordinals().items()))
    device = Device(ordinal)
    folders = [Path(entry) for entry in sys.path if Path(entry, "nvidia").is_dir()]
    libraries = {
        family: [str(path) for folder in folders for path in folder.glob(f"nvidia/*/lib/lib{family}.so.*")]
        for family in ("nvrtc", "cublasLt")
    }
    compiler = Compiler(libraries["nvrtc"], device.capability)
    return Bench(uuid, device, Sampler(uuid, {}), compiler, False, frozenset(), libraries)


def _timed(torch: Any, work: Callable[[], Any], runs: int, pause: float) -> float:
    """Seconds of one run, the median of seven bursts."""
    work()
    torch.cuda.synchronize()
    if pause:  # as many runs as envcheck's burst has
        started = time.perf_counter()
        work()
        torch.cuda.synchronize()
        runs = max(
            bench_gemm.BURST.least_runs, round(bench_gemm.BURST.sample_seconds / (time.perf_counter() - started))
        )
    samples: list[float] = []
    for _ in range(7):
        time.sleep(pause)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(runs):
            work()
        stop.record()
        stop.synchronize()
        samples.append(float(start.elapsed_time(stop)) / 1e3 / runs)
    return statistics.median(samples)


def _memory(bench: Bench, torch: Any) -> list[tuple[str, Figure, Figure, float, str]]:
    traffic = bench_memory.Traffic(bench, bench_memory.Buffers(bench.device, 3))
    left, right = (torch.empty(BYTES // 4, device="cuda") for _ in range(2))
    left.normal_()
    peers: dict[str, tuple[int, Callable[[], Any]]] = {
        "copy": (2, lambda: right.copy_(left)),
        "read": (1, left.sum),
        "write": (1, lambda: right.fill_(1.0)),
    }

    def theirs(kind: str) -> float:
        columns, work = peers[kind]
        return columns * BYTES / float(_timed(torch, work, 10, 0.0))

    return [
        (
            f"device memory {kind}, 4 GiB",
            lambda kind=kind: float(run_task(bench, FigureKey(kind), partial(traffic.made, kind))["value"]),  # type: ignore[misc]
            lambda kind=kind: theirs(kind),  # type: ignore[misc]
            1e9,
            "GB/s",
        )
        for kind in peers
    ]


def _links(bench: Bench, torch: Any) -> list[tuple[str, Figure, Figure, float, str]]:
    copies = HostCopies(bench, HostMemory(bench.device))
    pinned = torch.empty(LINK_BYTES, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(LINK_BYTES, dtype=torch.uint8, device="cuda")
    works: dict[str, Callable[[], Any]] = {
        "host-to-device": lambda: there.copy_(pinned, non_blocking=True),
        "device-to-host": lambda: pinned.copy_(there, non_blocking=True),
    }
    return [
        (
            f"{way}, pinned, 256 MiB",
            lambda way=way: float(copies.one_way(way)["value"]),  # type: ignore[misc]
            lambda way=way: LINK_BYTES / _timed(torch, works[way], 10, 0.0),  # type: ignore[misc]
            1e9,
            "GB/s",
        )
        for way in WAYS
    ]


def _products(bench: Bench, torch: Any) -> list[tuple[str, Figure, Figure, float, str]]:
    runner = bench_gemm.CublasRunner(bench, CublasLt(bench.libraries["cublasLt"][0]))
    figures = {name: FigureKey("gemm", name, (SIDE, SIDE, SIDE)) for name in PRECISIONS}
    return [
        (
            f"{name} product, {SIDE}^3",
            lambda figure=figure: float(run_task(bench, figure, partial(runner.product, figure))["value"]),  # type: ignore[misc]
            lambda name=name: _best_product(torch, name),  # type: ignore[misc]
            1e12,
            "TFLOP/s",
        )
        for name, figure in figures.items()
    ]


def _best_product(torch: Any, name: str) -> float:
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    works = _works(torch, name)
    return max(2.0 * SIDE**3 / _timed(torch, work, PRODUCTS, PAUSE) for work in works)


def _works(torch: Any, name: str) -> list[Callable[[], Any]]:
    """PyTorch's ways to the product, of operands uniform in [-1, 1) (INT8: in all its range)."""
    drawn = torch.float64 if name == "fp64" else torch.float32  # random bits cost power
    left, right = (2 * torch.rand(SIDE, SIDE, device="cuda", dtype=drawn) - 1 for _ in range(2))
    if name == "int8":
        whole = [torch.randint(-128, 128, (SIDE, SIDE), dtype=torch.int8, device="cuda") for _ in range(2)]
        return [lambda: torch._int_mm(*whole), lambda: torch._int_mm(whole[0], whole[1].t())]  # noqa: SLF001
    if name == "fp8":
        small = [operand.to(torch.float8_e4m3fn) for operand in (left, right)]
        one = torch.ones((), device="cuda")
        more = {"scale_a": one, "scale_b": one, "out_dtype": torch.bfloat16, "use_fast_accum": True}
        return [lambda: torch._scaled_mm(small[0], small[1].t(), **more)]  # noqa: SLF001
    kinds = {"fp64": torch.float64, "fp16": torch.float16, "bf16": torch.bfloat16}
    a, b = (operand.to(kinds.get(name, torch.float32)) for operand in (left, right))
    return [lambda: a @ b, lambda: a @ b.t()]


if __name__ == "__main__":
    main()
