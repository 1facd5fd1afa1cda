"""envcheck's convolutions and attention beside PyTorch's on one GPU: same shape, type, layout and library, in turns.

    python benchmarks/ratio_cudnn.py --ours PYTHON --cudnn FILE --nvrtc FILE --cublaslt FILE [--rounds 3] [--json FILE]

Run it with an interpreter that has PyTorch for CUDA. ``--ours`` is one that has cuda-bindings; it runs envcheck's side
in a process of its own. The files are those that PyTorch loads, and PyTorch runs with ``cudnn.benchmark``. The ratio is
that of the medians, envcheck's over PyTorch's.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from probes.framework_bench import workloads  # noqa: E402
from probes.measuring.cudnn.attention import DIRECTIONS, Attention, Shape  # noqa: E402
from probes.measuring.cudnn.convolution import FINAL, KINDS, Convolutions  # noqa: E402
from probes.measuring.cudnn.layers import PRECISIONS, Layer  # noqa: E402
from probes.measuring.cudnn.library import Cudnn  # noqa: E402
from probes.measuring.device import Device, ordinals  # noqa: E402
from probes.measuring.kernels import Compiler  # noqa: E402
from probes.measuring.measurement import Bench, timed  # noqa: E402
from probes.measuring.sampler import Sampler  # noqa: E402

LAYER, SHAPE = Layer(*workloads.LayerShape()), Shape(*workloads.Heads())
CONVOLUTIONS = [f"{name} {way}, {layout}" for name in PRECISIONS for way in KINDS for layout in ("NCHW", "NHWC")]
ATTENTION = [f"attention {direction}" for direction in DIRECTIONS]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("ours", "cudnn", "nvrtc", "cublaslt"):
        options.add_argument(f"--{name}", required=True)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="", help="figures that contain this text")
    options.add_argument("--json", type=Path)
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        _serve(given)
    else:
        _compare(given)


# envcheck's side: a line names a figure, an answer is the rate of a turn.


def _serve(given: argparse.Namespace) -> None:
    uuid, ordinal = next(iter(ordinals().items()))
    device = Device(ordinal)
    libraries = {"cudnn": [given.cudnn], "nvrtc": [given.nvrtc], "cublasLt": [given.cublaslt]}
    compiler = Compiler(libraries["nvrtc"], device.capability)
    bench = Bench(uuid, device, Sampler(uuid, {}), compiler, True, frozenset(), libraries)
    library = Cudnn(bench)
    convolutions, attention = Convolutions(bench, library), Attention(bench, library)
    held, current, run, amount = ExitStack(), "", _nothing, 0.0
    for line in sys.stdin:
        if line != current:
            held.close()
            current, held = line, ExitStack()
            if line.startswith("attention"):
                direction = line.split()[1]
                run, amount = attention.ready(held, "bf16", direction)[0], SHAPE.work(direction)
            else:
                name, way = line.strip().split(" ", 1)
                direction, layout = way.split(", ")
                ready = convolutions.ready(held, name, direction, layout)
                run, amount = ready.run, LAYER.operations
        seconds = statistics.median(timed(device, run, FINAL))
        print(json.dumps(amount / seconds), flush=True)


def _nothing() -> None:
    pass


# PyTorch's side.


def _compare(given: argparse.Namespace) -> None:
    torch: Any = importlib.import_module("torch")
    torch.backends.cudnn.benchmark = True
    command = [given.ours, __file__, "--serve"]
    for name in ("ours", "cudnn", "nvrtc", "cublaslt"):
        command += [f"--{name}", getattr(given, name)]
    rows = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        print(f"cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}\n")
        print(f"| figure | envcheck | PyTorch {torch.__version__} | ratio |\n|---|---|---|---|")
        for figure in [each for each in (*CONVOLUTIONS, *ATTENTION) if given.only in each]:
            work, amount = _attention(torch, figure) if figure in ATTENTION else _convolution(torch, figure)
            turns = [(_ours(process, figure), amount / _timed(torch, work)) for _ in range(given.rounds)]
            ours, theirs = (statistics.median(turn[side] for turn in turns) for side in (0, 1))
            rows.append({"figure": figure, "ours": ours, "theirs": theirs, "ratio": ours / theirs, "turns": turns})
            print(f"| {figure} | {ours / 1e12:.1f} TFLOP/s | {theirs / 1e12:.1f} TFLOP/s | {ours / theirs:.3f} |")
            sys.stdout.flush()
            if given.json:
                given.json.write_text(json.dumps(rows, indent=1))
        process.stdin.close()  # type: ignore[union-attr]


def _ours(process: subprocess.Popen[str], figure: str) -> float:
    process.stdin.write(figure + "\n")  # type: ignore[union-attr]
    process.stdin.flush()  # type: ignore[union-attr]
    return float(json.loads(process.stdout.readline()))  # type: ignore[union-attr]


def _timed(torch: Any, work: Callable[[], Any]) -> float:
    """Seconds of one run, timed as envcheck does: after a warm-up, several samples, each after a rest."""
    runs, until = 1, time.monotonic() + FINAL.warmup_seconds
    work()
    torch.cuda.synchronize()
    while True:
        one = _sample(torch, work, 1)
        if time.monotonic() >= until:
            break
    runs = max(1, round(FINAL.sample_seconds / one))
    samples = []
    for _ in range(FINAL.samples):
        time.sleep(FINAL.pause)
        samples.append(_sample(torch, work, runs))
    return statistics.median(samples)


def _sample(torch: Any, work: Callable[[], Any], runs: int) -> float:
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(runs):
        work()
    stop.record()
    stop.synchronize()
    return float(start.elapsed_time(stop)) / 1e3 / runs


def _convolution(torch: Any, figure: str) -> tuple[Callable[[], Any], float]:
    name, way = figure.split(" ", 1)
    direction, layout = way.split(", ")
    torch.backends.cudnn.allow_tf32 = name == "tf32"
    kind = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(name, torch.float32)
    memory = torch.channels_last if layout == "NHWC" else torch.contiguous_format

    def drawn(*shape: int) -> Any:
        return (2 * torch.rand(*shape, device="cuda") - 1).to(kind).contiguous(memory_format=memory)

    x = drawn(LAYER.images, LAYER.channels, LAYER.side, LAYER.side)
    w = drawn(LAYER.filters, LAYER.channels, LAYER.window, LAYER.window)
    y = drawn(LAYER.images, LAYER.filters, LAYER.side, LAYER.side)
    if direction == "forward":
        return lambda: torch.nn.functional.conv2d(x, w, padding=LAYER.pad), LAYER.operations
    wanted = [direction == "backward data", direction == "backward filter", False]
    pad = [LAYER.pad, LAYER.pad]
    more = (None, [1, 1], pad, [1, 1], False, [0, 0], 1, wanted)
    return lambda: torch.ops.aten.convolution_backward(y, x, w, *more), LAYER.operations


def _attention(torch: Any, figure: str) -> tuple[Callable[[], Any], float]:
    direction = figure.split()[1]
    q, k, v, gradient = ((2 * torch.rand(*SHAPE.dimensions, device="cuda") - 1).to(torch.bfloat16) for _ in range(4))
    attention = torch.nn.functional.scaled_dot_product_attention
    backend = importlib.import_module("torch.nn.attention")

    def forward() -> Any:
        with backend.sdpa_kernel(backend.SDPBackend.CUDNN_ATTENTION):
            return attention(q, k, v, scale=SHAPE.scale)

    if direction == "forward":
        with torch.no_grad():
            return forward, SHAPE.work(direction)
    for tensor in (q, k, v):
        tensor.requires_grad_()
    result = forward()
    return (
        lambda: torch.autograd.grad(result, (q, k, v), gradient, retain_graph=True),
        SHAPE.work(direction),
    )


if __name__ == "__main__":
    main()
