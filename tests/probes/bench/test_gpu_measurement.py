"""Measurements as they are sent: what is sent is what was asked for, also where nothing could be measured."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from envcheck.snapshot import Measurement
from probes.bench import chip as bench_chip
from probes.bench import gemm as bench_gemm
from probes.bench import links as bench_links
from probes.bench import memory as bench_memory
from probes.kit.figures import Figure
from probes.kit.out import Out
from probes.kit.tree import Tree
from probes.measuring.device import CudaError, LibraryError, Unavailable
from probes.measuring.measurement import Bench, measurement, run_all


def bench(*only: str) -> Bench:
    nothing: Any = None
    return Bench("GPU-1", nothing, nothing, nothing, full=False, only=frozenset(only), libraries={})


def sent(measures: dict[Figure, Any], *only: str, fails: type[Exception] | None = None) -> list[Measurement]:
    lines: list[bytes] = []
    out = Out("bench_a", lines.append)
    if fails:
        with pytest.raises(fails):
            run_all(bench(*only), out, measures)
    else:
        run_all(bench(*only), out, measures)
    facts = [json.loads(line).get("fact", {}).get("measurements", []) for line in lines]
    return msgspec.convert([each for fact in facts for each in fact], list[Measurement])


def one(name: str) -> Any:
    return lambda _: measurement(name, "GPU-1", [3.0, 1.0, 2.0], conditions={}, unit="B/s")


def failing(error: Exception) -> Any:
    def measure(_: Bench) -> None:
        raise error

    return measure


def test_the_value_is_the_median() -> None:
    (found,) = sent({Figure("device-memory-copy"): one("device-memory-copy")})
    assert (found.value, found.samples, found.gpu) == (2.0, (3.0, 1.0, 2.0), "GPU-1")


def test_only_what_was_asked_for() -> None:
    asked = {"gemm": "fp32", "fma": "fp32", "mma": "bf16"}
    measures = {Figure(name, precision): one(name) for name, precision in asked.items()}
    assert [each.name for each in sent(measures, "gemm", "mma")] == ["gemm", "mma"]
    assert len(sent(measures)) == 3


def test_what_is_unavailable_costs_itself_alone() -> None:
    found = sent({Figure("gemm", "fp8"): failing(Unavailable("no algorithm")), Figure("gemm", "bf16"): one("gemm")})
    assert [each.missing for each in found] == ["no algorithm", None]
    assert (found[0].name, found[0].precision, found[0].value) == ("gemm", "fp8", None)


def test_a_failed_call_ends_the_rest_and_is_said() -> None:
    error = CudaError("cuLaunchKernel", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    found = sent({Figure("gemm", "fp8"): failing(error), Figure("gemm", "bf16"): one("gemm")}, fails=CudaError)
    assert [each.missing for each in found] == ["cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700)"]


def test_a_library_that_fails_costs_itself_alone_and_is_told_from_one_that_is_not_there() -> None:
    error = LibraryError("cudnnCreate: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED (1012)", "/opt/libcudnn.so.9")
    figure = Figure("cudnn-convolution", "fp16", variant="forward")
    found = sent({figure: failing(error), Figure("gemm", "bf16"): one("gemm")})
    assert [each.failed for each in found] == [True, False]
    assert (found[0].missing, found[0].library) == (str(error), "/opt/libcudnn.so.9")
    assert (found[0].precision, found[0].variant) == ("fp16", "forward")


@pytest.mark.parametrize(
    ("figure", "called", "facts"),
    [
        (Figure("device-memory-copy"), "device-memory-copy", {}),
        (Figure("fma", "fp64"), "fma fp64", {"precision": "fp64"}),
        (Figure("gemm", "bf16", burst=False), "gemm bf16 sustained", {"precision": "bf16", "burst": False}),
        (Figure("gemm", "tf32", (16384, 8192, 1024)), "gemm tf32 16384x8192x1024", {"precision": "tf32"}),
    ],
)
def test_what_is_missing_is_named_as_what_is_there(figure: Figure, called: str, facts: dict[str, Any]) -> None:
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


@pytest.mark.parametrize("probe", [bench_chip, bench_gemm, bench_links, bench_memory])
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
