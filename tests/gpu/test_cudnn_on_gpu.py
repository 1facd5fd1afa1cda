"""cuDNN on a real GPU: all of its work is right, what is spoiled is seen, and a library in pieces is named."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from envcheck.collect.plan import BenchRequest as Wish
from envcheck.collect.plan import choose, request_of
from envcheck.pipeline.session import Request, gather_here
from probes.bench import cudnn as bench_cudnn
from probes.bench.cudnn_gpus import COUNT, THREADS, handles
from probes.framework_bench import workloads
from probes.measuring.cudnn import attention
from probes.measuring.cudnn.convolution import KINDS, Convolutions, verified
from probes.measuring.cudnn.layers import PRECISIONS, Layer, Layers
from probes.measuring.cudnn.library import Cudnn
from probes.measuring.device import Device, ordinals
from probes.measuring.kernels import Compiler
from probes.measuring.measurement import Bench, bench_of
from probes.measuring.sampler import Sampler
from tests.every import cases

ROOT = Path(__file__).resolve().parents[2]
ALONE = """
import json, sys
sys.path.insert(0, {root!r})
from probes.bench import cudnn as bench_cudnn
from probes.measuring.device import Device, ordinals
from probes.measuring.measurement import Bench
from probes.measuring.runtime import run_all
from probes.measuring.sampler import Sampler
from probes.common.out import Out
uuid, ordinal = next(iter(ordinals().items()))
bench = Bench(uuid, Device(ordinal), Sampler(uuid, {{}}), None, False, frozenset(), json.loads(sys.argv[1]), False)
run_all(Out("bench.cudnn", sys.stdout.buffer.write), bench_cudnn.measures(bench), uuid)
"""
"""The deep check's convolution in a process that has loaded no cuDNN yet."""


@cache
def libraries() -> dict[str, list[str]]:
    facts = gather_here(Request(variables=dict(os.environ)))
    wish = Wish(force=True)
    found: dict[str, list[str]] = request_of(wish, choose(facts, wish), facts)["libraries"]
    return found


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    if not libraries().get("cudnn"):
        pytest.skip("no cuDNN here")
    uuid, ordinal = next(iter(ordinals().items()))
    with Device(ordinal) as device:
        compiler = Compiler(libraries()["nvrtc"], device.capability)
        yield Bench(uuid, device, Sampler(uuid, {}), compiler, True, frozenset(), libraries())


@pytest.fixture(scope="module")
def library(bench: Bench) -> Cudnn:
    return Cudnn(bench)


def test_all_of_its_work_is_right_and_timed(bench: Bench) -> None:
    for figure, measure in bench_cudnn.measures(bench).items():
        found = measure()
        assert found["verification"]["right"], (str(figure), found["verification"])
        assert found["value"] > 0
        assert (found["name"], found["library"]) == (figure.name, libraries()["cudnn"][0])


LAYER, SHAPE = Layer(*workloads.LayerShape()), attention.Shape(*workloads.Heads())


@pytest.mark.parametrize("layout", bench_cudnn.LAYOUTS)
@pytest.mark.parametrize("direction", list(KINDS))
def test_a_spoiled_convolution_is_seen(direction: str, layout: str, bench: Bench, library: Cudnn) -> None:
    """A quarter of the result is as it was before the run."""
    convolutions = Convolutions(bench, library)
    with ExitStack() as held:
        ready = convolutions.ready(held, "fp16", direction, layout)
        ready.run()
        written = ready.arrays[KINDS[direction][2]]
        assert verified(LAYER, direction, layout, PRECISIONS["fp16"], ready.arrays)["right"]
        bench.device.fill(written.address, written.bytes // 4, 0xFF)
        assert not verified(LAYER, direction, layout, PRECISIONS["fp16"], ready.arrays)["right"]


def test_a_spoiled_gradient_of_attention_is_seen(bench: Bench, library: Cudnn) -> None:
    with ExitStack() as held:
        run, arrays = attention.Attention(bench, library).ready(held, "bf16", "backward")
        run()
        assert attention.verified(SHAPE, "bf16", "backward", arrays)["right"]
        arrays[attention.DK].poison()
        assert not attention.verified(SHAPE, "bf16", "backward", arrays)["right"]


def test_a_layer_that_does_nothing_is_seen(bench: Bench, library: Cudnn) -> None:
    layers = Layers(bench, library)
    with ExitStack() as held:
        task = layers.softmax(held, backward=False)
        assert not task.verified()["right"]
        task.work()
        assert task.verified()["right"]


def test_handles_on_two_gpus_are_right(bench: Bench, library: Cudnn) -> None:
    others = [(uuid, ordinal) for uuid, ordinal in ordinals().items() if uuid != bench.uuid]
    if not others:
        pytest.skip("CUDA shows one GPU")
    uuid, ordinal = others[0]
    asked = {"gpus": [], "full": True, "libraries": libraries()}
    with Device(ordinal) as device:
        found = handles([bench, bench_of(asked, uuid, device)], library)
    bench.device.enter()
    assert found["verification"]["right"]
    assert found["verification"]["checked"] == 2 * THREADS * COUNT
    assert "on each of 2 GPUs" in found["detail"]


# --- in pieces ----------------------------------------------------------------------------------------------------
def alone(path: Path) -> dict[str, Any]:
    """What the deep check's measurement of a cuDNN says."""
    others = {name: paths for name, paths in libraries().items() if not name.startswith("cudnn")}
    given = json.dumps({**others, "cudnn": [str(path)]})
    command = [sys.executable, "-c", ALONE.format(root=str(ROOT)), given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]  # libraries print there too
    facts = [json.loads(line).get("fact", {}) for line in lines]
    found: list[dict[str, Any]] = [each for fact in facts for each in fact.get("measurements", ())]
    assert len(found) == 1, done.stderr[-2000:]
    return found[0]


@pytest.fixture
def copied(bench: Bench, tmp_path: Path) -> Path:
    """A cuDNN 9 in a folder of its own; its parts are links."""
    del bench
    source = Path(libraries()["cudnn"][0]).resolve().parent
    if not (source / "libcudnn_graph.so.9").exists():
        pytest.skip("cuDNN is no 9")
    for part in source.glob("libcudnn_*.so.9"):
        (tmp_path / part.name).symlink_to(part)
    main = tmp_path / "libcudnn.so.9"
    main.write_bytes((source / main.name).resolve().read_bytes())
    return main


def test_a_whole_one_convolves(copied: Path) -> None:
    found = alone(copied)
    assert found["verification"]["right"]
    assert found["library"] == str(copied)


@cases("part", "graph", "ops", "cnn", "engines_precompiled", "heuristic")
def test_a_missing_part_is_named(part: str, copied: Path) -> None:
    """Also where the loader finds one of another release elsewhere."""
    (copied.parent / f"libcudnn_{part}.so.9").unlink()
    found = alone(copied)
    if "verification" in found:
        pytest.skip("the loader found this part elsewhere, and it works")
    assert found["failed"]
    assert f"missing beside it: libcudnn_{part}.so.9" in found["missing"]


@cases("part", "graph", "ops", "cnn", "engines_precompiled")
def test_a_truncated_part_is_named(part: str, copied: Path) -> None:
    file = copied.parent / f"libcudnn_{part}.so.9"
    data = file.resolve().read_bytes()[: 1 << 20]
    file.unlink()
    file.write_bytes(data)
    found = alone(copied)
    assert found["failed"]
    assert str(file) in found["missing"]
    assert "it is cut off" in found["missing"]
