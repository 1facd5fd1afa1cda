"""Handles of cuDNN on several GPUs: each on its own, all verified, and what goes wrong on one of them seen."""

import ctypes
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_void_p
from typing import Any

import pytest

from probes.bench import cudnn_gpus
from probes.bench.cudnn_gpus import THREADS, handles
from probes.common.out import Out
from probes.common.tree import Tree
from probes.measuring.library import CudaLibrary
from probes.measuring.runtime import LibraryError
from tests.every import cases

from .host_gpu import HostDevice, bench_on

COUNT = 16
CURRENT = threading.local()


class Gpu(HostDevice):
    """A GPU whose context each thread has to enter before it uses it."""

    def enter(self) -> None:
        CURRENT.gpu = self

    def read(self, address: int, size: int) -> bytearray:
        assert CURRENT.gpu is self
        return super().read(address, size)

    def fill(self, address: int, size: int, byte: int) -> None:
        assert CURRENT.gpu is self
        super().fill(address, size, byte)


class StandIn:
    """A cuDNN whose handles belong to the GPU that was current when they were made."""

    family, title, version, path = "cudnn", "cuDNN", "9.19.0", "/nowhere/libcudnn.so.9"
    facts = CudaLibrary.facts

    def __init__(self, idle: Gpu | None = None, refuses: Gpu | None = None) -> None:
        self.idle, self.refuses = idle, refuses
        self.made: dict[int, Gpu] = {}
        self.destroyed: list[int] = []
        self._lock = threading.Lock()

    def new_handle(self, stream: int) -> c_void_p:
        assert stream == 7
        if CURRENT.gpu is self.refuses:
            raise LibraryError("cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED (1001)", self.path)
        with self._lock:
            handle = len(self.made) + 1
            self.made[handle] = CURRENT.gpu
        return c_void_p(handle)

    def ask(self, name: str, *arguments: Any) -> None:
        if name == "cudnnSetTensor":
            handle, _, address, value = arguments
            assert self.made[handle.value] is CURRENT.gpu
            if CURRENT.gpu is not self.idle:
                (ctypes.c_float * COUNT).from_address(address.value)[:] = [value._obj.value] * COUNT
        elif name == "cudnnDestroy":
            self.destroyed.append(arguments[0].value)


class Sampler:
    @contextmanager
    def watch(self) -> Iterator[dict[str, Any]]:
        yield {}


def bench(gpu: Gpu, uuid: str = "GPU-1") -> Any:
    made: Any = bench_on(gpu, {})
    return type(made)(**{**vars(made), "uuid": uuid, "sampler": Sampler()})


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cudnn_gpus, "COUNT", COUNT)
    monkeypatch.setattr(cudnn_gpus, "call", lambda *_: 7)


@cases("count", 1, 2, 3)
def test_each_gpu_has_handles_of_its_own(count: int) -> None:
    gpus = [Gpu() for _ in range(count)]
    library: Any = StandIn()
    found = handles([bench(gpu) for gpu in gpus], library)
    assert found["verification"]["right"]
    assert found["verification"]["checked"] == count * THREADS * COUNT
    assert [list(library.made.values()).count(gpu) for gpu in gpus] == [THREADS * cudnn_gpus.ROUNDS] * count
    assert sorted(library.destroyed) == sorted(library.made)
    assert ("GPUs" in found["detail"]) == (count > 1)
    assert CURRENT.gpu is gpus[0]


def test_a_gpu_that_computes_nothing_is_seen() -> None:
    gpus = [Gpu(), Gpu()]
    library: Any = StandIn(idle=gpus[1])
    found = handles([bench(gpu) for gpu in gpus], library)
    assert (found["verification"]["right"], found["verification"]["wrong"]) == (False, THREADS * COUNT)


def test_a_gpu_on_which_no_handle_can_be_made_is_an_error() -> None:
    gpus = [Gpu(), Gpu()]
    library: Any = StandIn(refuses=gpus[1])
    with pytest.raises(LibraryError, match="NOT_INITIALIZED"):
        handles([bench(gpu) for gpu in gpus], library)


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Any], dict[str, Any]]]:
    """What the probe sends on a machine with GPUs: measurements, and how it ended."""

    def collect(uuids: list[str], **asked: Any) -> tuple[list[Any], dict[str, Any]]:
        lines: list[bytes] = []
        monkeypatch.setattr(cudnn_gpus, "visible", lambda _: {uuid: place for place, uuid in enumerate(uuids)})
        monkeypatch.setattr(cudnn_gpus, "Device", lambda _: Gpu())
        monkeypatch.setattr(cudnn_gpus, "bench_of", lambda _, uuid, gpu: bench(gpu, uuid))
        monkeypatch.setattr(cudnn_gpus, "Cudnn", lambda _: StandIn())
        out = Out("bench.cudnn_gpus", lines.append)
        cudnn_gpus.collect(Tree({"bench": {"gpus": [{"uuid": uuid} for uuid in uuids], "libraries": {}, **asked}}), out)
        out.done()
        sent = [json.loads(line) for line in lines]
        return [each for line in sent for each in line.get("fact", {}).get("measurements", ())], sent[-1]["done"]

    return collect


@cases("asked", {"full": True}, {"only": ["cudnn-handles"]})
def test_two_gpus_are_measured_together(asked: dict[str, Any], collected: Any) -> None:
    (found,), done = collected(["GPU-1", "GPU-2"], **asked)
    assert (found["name"], found["variant"], found["gpu"]) == ("cudnn-handles", "2 GPUs", "GPU-1")
    assert found["verification"]["right"]
    assert done["status"] == "ok"


@cases("uuids, asked, why",
    (["GPU-1"], {"full": True}, "one GPU is measured"), (["GPU-1", "GPU-2"], {}, "measured with --full"),
    (["GPU-1", "GPU-2"], {"full": True, "only": ["cufft"]}, "not asked for"),
)  # fmt: skip
def test_nothing_is_measured_otherwise(uuids: list[str], asked: dict[str, Any], why: str, collected: Any) -> None:
    found, done = collected(uuids, **asked)
    assert (found, done["status"], done["detail"]) == ([], "absent", why)
