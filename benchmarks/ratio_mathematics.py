"""Sparse products, transforms, factorizations and random numbers: envcheck's figures beside PyTorch's and CuPy's.

    python benchmarks/ratio_mathematics.py --peer PYTHON --libraries FILE [--turns 3] [--out FILE] [NAME ...]

``PYTHON`` has PyTorch and CuPy; ``FILE`` is a JSON object of library paths by family, as in the request of a bench
probe, and should name the files that those two load. Each case is done by envcheck and by its peer in turns, in two
processes that stay; the ratio is that of the median times, above 1 where envcheck is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module as imported
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from probes.bench.curand import GENERATORS, MOST  # noqa: E402
from probes.bench.cusolver import SIDES, diagonal  # noqa: E402
from probes.framework_bench.workloads import PANELS, PER_ROW, TRANSFORMS, WIDE_PANELS, WIDTH  # noqa: E402
from probes.measuring.cusparselt import BURST, SIDE  # noqa: E402
from probes.measuring.device import Device, ordinals  # noqa: E402
from probes.measuring.kernels import Compiler  # noqa: E402
from probes.measuring.measurement import Bench, Plan, Work  # noqa: E402
from probes.measuring.sampler import Sampler  # noqa: E402
from probes.measuring.sparse import panels  # noqa: E402

PAUSE = BURST.pause  # Before a sample of the products that reach the power limit
CASES = {
    "spmm-csr-fp32": ("bench.cusparse", "cusparse-spmm fp32 CSR"),
    "spmm-csr-fp64": ("bench.cusparse", "cusparse-spmm fp64 CSR"),
    "spmv-csr-fp32": ("bench.cusparse", "cusparse-spmv fp32 CSR"),
    "spmm-2:4-fp16": ("bench.cusparse", "cusparselt-spmm fp16 2:4"),
    "spmm-2:4-bf16": ("bench.cusparse", "cusparselt-spmm bf16 2:4"),
    "spmm-2:4-int8": ("bench.cusparse", "cusparselt-spmm int8 2:4"),
    **{
        f"fft-{name}-{form}-{kind}": ("bench.cufft", f"cufft {kind} {words}, {form}")
        for name, words in (("1D", "1D"), ("2D", "2D"), ("batched", "1D, batched"))
        for form in ("C2C", "R2C")
        for kind in ("fp32", "fp64")
    },
    **{
        f"{name}-{kind}": ("bench.cusolver", f"cusolver-{name} {kind}")
        for name in ("lu", "cholesky", "qr", "svd")
        for kind in ("fp32", "fp64")
    },
    **{
        f"random-{law}-{name}": ("bench.curand", f"curand-{law} fp32 {name}")
        for law in ("uniform", "normal")
        for name in ("XORWOW", "MTGP32", "Philox")
    },
}
"""Probe and figure of each case."""


def module(name: str) -> Any:
    return imported(name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default="")
    parser.add_argument("--libraries", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", choices=("ours", "theirs"), help="be one of the two processes")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    libraries = json.loads(asked.libraries.read_text())
    if asked.work:
        serve(ours(libraries) if asked.work == "ours" else theirs())
        return 0
    rows = compared(asked, [name for name in CASES if not asked.names or name in asked.names])
    if asked.out:
        asked.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def compared(asked: argparse.Namespace, names: list[str]) -> list[dict[str, Any]]:
    """One row for each case, printed as it is known."""
    rows = []
    given = ["--libraries", str(asked.libraries), "--work"]
    with ExitStack() as held:
        workers = {
            side: held.enter_context(
                subprocess.Popen(
                    [python, __file__, *given, side], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for side, python in (("ours", sys.executable), ("theirs", asked.peer))
        }
        print(f"{'case':26} {'ours, ms':>10} {'peer, ms':>10} {'ratio':>7}  who")
        for name in names:
            answers: dict[str, list[dict[str, Any]]] = {side: [] for side in workers}
            for _ in range(asked.turns):
                for side, worker in workers.items():
                    answers[side].append(answered(worker, name))
            rows.append(row_of(name, answers))
    return rows


def answered(worker: subprocess.Popen[str], name: str) -> dict[str, Any]:
    assert worker.stdin
    assert worker.stdout
    worker.stdin.write(name + "\n")
    worker.stdin.flush()
    line = worker.stdout.readline()
    return json.loads(line) if line else {"error": "the process ended"}


def row_of(name: str, answers: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    errors = [f"{side}: {each['error']}" for side, found in answers.items() for each in found if "error" in each]
    if errors:
        print(f"{name:26} {errors[0][:200]}", flush=True)
        return {"case": name, "errors": errors}
    ours, theirs = ([each["seconds"] for each in answers[side]] for side in ("ours", "theirs"))
    row = {
        "case": name,
        "ours": ours,
        "theirs": theirs,
        "ratio": statistics.median(theirs) / statistics.median(ours),
        "detail": answers["ours"][0]["detail"],
        "peer": answers["theirs"][0]["detail"],
    }
    medians = (1e3 * statistics.median(ours), 1e3 * statistics.median(theirs))
    print(
        f"{name:26} {medians[0]:10.4f} {medians[1]:10.4f} {row['ratio']:7.3f}  {row['detail']}; {row['peer']}",
        flush=True,
    )
    return row


def serve(work: Callable[[str], dict[str, Any]]) -> None:
    """Answer each name on standard input with a line of JSON."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        try:
            found = work(line.strip())
        except Exception as error:  # noqa: BLE001  the other cases go on
            found = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(found) + "\n")
        out.flush()


class Seconds(Bench):
    """A bench whose values are the reciprocals of seconds."""

    def rate(
        self, name: str, amount: float, work: Work, plan: Plan, *, poison: Work | None = None, **facts: Any
    ) -> dict[str, Any]:
        return super().rate(name, amount / amount, work, plan, poison=poison, **facts)


def ours(libraries: dict[str, list[str]]) -> Callable[[str], dict[str, Any]]:
    """The probes' own measurements."""
    uuid, ordinal = next(iter(ordinals().items()))
    device = Device(ordinal)
    compiler = Compiler(libraries.get("nvrtc", []), device.capability)
    bench = Seconds(uuid, device, Sampler(uuid, {}), compiler, True, frozenset(), libraries)
    probes = {probe for probe, _ in CASES.values()}
    figures = {probe: module(f"probes.{probe}").measures(bench) for probe in probes}

    def work(name: str) -> dict[str, Any]:
        probe, wanted = CASES[name]
        measure = next(measure for figure, measure in figures[probe].items() if str(figure) == wanted)
        found = measure()
        if not found["verification"]["right"]:
            return {"error": f"wrong result: {found['verification']}"}
        return {"seconds": 1 / found["value"], "detail": found["detail"]}

    return work


# --- peers --------------------------------------------------------------------------------------------------------


def theirs() -> Callable[[str], dict[str, Any]]:
    """The same work by PyTorch or CuPy."""
    torch = module("torch")

    def work(name: str) -> dict[str, Any]:
        kinds = {"spmm": torch_sparse, "spmv": torch_sparse, "fft": torch_fft, "random": cupy_random}
        run, detail = kinds.get(name.partition("-")[0], torch_solver)(name)
        seconds = seconds_of(run, PAUSE if "2:4" in name else 0.0)
        del run
        torch.cuda.empty_cache()
        return {"seconds": seconds, "detail": detail}

    return work


def seconds_of(run: Callable[[], object], pause: float) -> float:
    """The median of seven samples of about 10 ms, after 20 ms of warm-up: the plan of the probes.

    ``pause`` is a rest in seconds before each sample.
    """
    torch = module("torch")
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def sample(count: int, pause: float = 0.0) -> float:
        torch.cuda.synchronize()
        time.sleep(pause)
        before.record()
        for _ in range(count):
            run()
        after.record()
        after.synchronize()
        return float(before.elapsed_time(after)) / 1e3 / count

    run()
    torch.cuda.synchronize()
    warm = 0.0
    while warm < 0.02:
        one = sample(1)
        warm += one
    if one > 0.2:
        return one
    count = max(2, min(1000, round(0.01 / one)))
    return statistics.median(sample(count, pause) for _ in range(7))


def torch_sparse(name: str) -> tuple[Callable[[], object], str]:
    torch = module("torch")
    call, form, kind = name.split("-")
    if form == "2:4":
        return torch_structured(kind)
    matrix = panels(random.Random(), PER_ROW, WIDE_PANELS if call == "spmm" else PANELS)
    dtype = torch.float32 if kind == "fp32" else torch.float64
    offsets, indices = (
        torch.frombuffer(bytearray(b"".join(pieces)), dtype=torch.int32).cuda()
        for pieces in (matrix.all_offsets(), matrix.all_indices())
    )
    values = torch.rand(matrix.entries, dtype=dtype, device="cuda") * 2 - 1
    sparse = torch.sparse_csr_tensor(offsets, indices, values, (matrix.rows, matrix.columns))
    shape = (matrix.columns, WIDTH) if call == "spmm" else (matrix.columns,)
    dense = torch.rand(shape, dtype=dtype, device="cuda") * 2 - 1
    return (lambda: sparse @ dense), f"torch {torch.__version__}, CSR tensor @ dense"


def torch_structured(kind: str) -> tuple[Callable[[], object], str]:
    torch = module("torch")
    torch.sparse.SparseSemiStructuredTensor._FORCE_CUTLASS = False  # noqa: SLF001
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16, "int8": torch.int8}[kind]
    if kind == "int8":
        left, right = (torch.randint(-128, 128, (SIDE, SIDE), device="cuda").to(dtype) for _ in range(2))
    else:
        left, right = ((torch.rand(SIDE, SIDE, device="cuda") * 2 - 1).to(dtype) for _ in range(2))
    mask = torch.tensor([1, 0, 0, 1], device="cuda", dtype=dtype).repeat(SIDE // 4)
    sparse = torch.sparse.to_sparse_semi_structured(left * mask)
    return (lambda: torch.mm(sparse, right.t())), f"torch {torch.__version__}, semi-structured @ dense"


def torch_fft(case: str) -> tuple[Callable[[], object], str]:
    torch = module("torch")
    _, name, form, kind = case.split("-")
    size = TRANSFORMS["1D, batched" if name == "batched" else name]
    shape = (size.batch, *size.lengths) if size.batch > 1 else size.lengths
    dtypes = {"C2C": (torch.complex64, torch.complex128), "R2C": (torch.float32, torch.float64)}
    given = torch.randn(shape, dtype=dtypes[form][kind == "fp64"], device="cuda")
    function = getattr(torch.fft, ("r" if form == "R2C" else "") + ("fft2" if name == "2D" else "fft"))
    return (lambda: function(given)), f"torch {torch.__version__}, torch.fft.{function.__name__.removeprefix('fft_')}"


def torch_solver(name: str) -> tuple[Callable[[], object], str]:
    torch = module("torch")
    what, kind = name.split("-")
    side, dtype = SIDES[what], torch.float32 if kind == "fp32" else torch.float64
    matrix = (torch.rand(side, side, dtype=dtype, device="cuda") * 2 - 1).T
    if what == "cholesky":
        matrix = (
            torch.tril(matrix, -1)
            + torch.tril(matrix, -1).T
            + diagonal(side) * torch.eye(side, dtype=dtype, device="cuda")
        )
    runs: dict[str, Callable[[], object]] = {
        "lu": lambda: torch.linalg.lu_factor_ex(matrix),
        "cholesky": lambda: torch.linalg.cholesky_ex(matrix),
        "qr": lambda: torch.geqrf(matrix),
        "svd": lambda: torch.linalg.svd(matrix),
    }
    return runs[what], f"torch {torch.__version__}, {what}, {torch.backends.cuda.preferred_linalg_library()}"


def cupy_random(case: str) -> tuple[Callable[[], object], str]:
    cupy, torch = module("cupy"), module("torch")
    curand = module("cupy_backends.cuda.libs.curand")
    _, law, name = case.split("-")
    target = torch.empty(MOST, device="cuda")
    generator = curand.createGenerator(GENERATORS[name])
    curand.setPseudoRandomGeneratorSeed(generator, 7)
    curand.setStream(generator, torch.cuda.current_stream().cuda_stream)
    runs: dict[str, Callable[[], object]] = {
        "uniform": lambda: curand.generateUniform(generator, target.data_ptr(), MOST),
        "normal": lambda: curand.generateNormal(generator, target.data_ptr(), MOST, 0.0, 1.0),
    }
    return runs[law], f"cupy {cupy.__version__}, curand of its host API"


if __name__ == "__main__":
    sys.exit(main())
