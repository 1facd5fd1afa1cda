"""What is measured, on which GPUs, with which libraries; pure, on facts put together by hand."""

from __future__ import annotations

from typing import Any

from envcheck.collect.bench_plan import Bench, choose, request_of
from envcheck.snapshot import Gpu, Library, Listing, Snapshot
from envcheck.snapshot.gpus import GpuLink
from envcheck.snapshot.software import Load
from tests.every import cases
from tests.rules.machines import but, h200, links, machine, torch, venv, with_venv

SITE = "/home/ada/p/.venv/lib/python3.12/site-packages"
GIB = 1 << 30


def uuids(found: tuple[Gpu, ...]) -> list[int | None]:
    return [gpu.index for gpu in found]


# --- GPUs ---------------------------------------------------------------------------------------------------------


def test_all_that_cuda_shows_in_cudas_order() -> None:
    turned = machine(h200(0, cuda_ordinal=1), h200(1, cuda_ordinal=0), h200(2, cuda_ordinal=None))
    assert uuids(choose(turned, Bench()).gpus) == [1, 0]


def test_only_those_that_were_asked_for() -> None:
    four = machine(*map(h200, range(4)))
    assert uuids(choose(four, Bench(gpus=(3, 1))).gpus) == [1, 3]
    assert choose(four, Bench(gpus=(7,))).gpus == ()


@cases(
    "changes, words",
    ({"utilisation": 0.97}, "GPU 1 is busy (a kernel ran 97% of the time)"),
    ({"memory__used": 100 * GIB}, "GPU 1 is busy (100.0 of 140 GiB of its memory are in use)"),
)
def test_a_busy_gpu_is_left_out_unless_forced(changes: dict[str, Any], words: str) -> None:
    busy = but(h200(1), **changes)
    chosen = choose(machine(h200(0), busy), Bench())
    assert uuids(chosen.gpus) == [0]
    assert dict(chosen.refused) == {busy.uuid: words}
    assert uuids(choose(machine(h200(0), busy), Bench(force=True)).gpus) == [0, 1]


def test_nothing_is_chosen_where_nothing_is_known() -> None:
    assert choose(Snapshot(), Bench()).gpus == ()
    assert choose(machine(h200(uuid=None)), Bench()).gpus == ()


# --- the request --------------------------------------------------------------------------------------------------


def asked(snapshot: Snapshot, **wish: Any) -> dict[str, Any]:
    bench = Bench(**wish)
    return request_of(bench, choose(snapshot, bench), snapshot)


def test_what_was_seen_before_goes_along() -> None:
    gpu = h200(0, utilisation=0.05, numa_node=1)
    (told,) = asked(machine(gpu), full=True, only=("gemm",))["gpus"]
    assert (told["uuid"], told["numa_node"]) == (gpu.uuid, 1)
    assert told["before"] == {"utilisation_before": 5.0, "memory_before": 0, "temperature_before": 30.0, "ecc": True}


def test_the_wish_goes_along() -> None:
    found = asked(machine(), full=True, only=("gemm", "fma"))
    assert (found["full"], found["only"]) == (True, ["gemm", "fma"])


def loaded(name: str, path: str) -> Load:
    return Load(source="elf", name=name, needed_by=SITE, path=path)


def library(path: str, **more: Any) -> Library:
    return Library(source="file", path=path, family="x", **more)


def test_libraries_are_those_that_the_environment_would_load() -> None:
    """First what a framework loads, then others of the environment, then any; stubs never."""
    own = [
        loaded("libcublasLt.so.13", f"{SITE}/nvidia/cu13/lib/libcublasLt.so.13"),
        loaded("libcudnn.so.9", f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"),
    ]
    environment = venv(torch(loads=tuple(own)))
    found = [
        library("/usr/local/cuda/lib64/libcublasLt.so.12"),
        library(f"{SITE}/nvidia/cu13/lib/libnvrtc.so.13", environment=environment.key),
        library("/usr/local/cuda/lib64/libnvrtc.so.12"),
        library("/usr/local/cuda/lib64/stubs/libnvrtc.so", stub=True),
        library(f"{SITE}/nvidia/cu13/lib/libnvrtc-builtins.so.13.0", environment=environment.key),
    ]
    snapshot = but(with_venv(machine(), environment), libraries=Listing(items=tuple(found), complete=True))
    libraries = asked(snapshot)["libraries"]
    assert libraries["cublasLt"] == [
        f"{SITE}/nvidia/cu13/lib/libcublasLt.so.13",
        "/usr/local/cuda/lib64/libcublasLt.so.12",
    ]
    assert libraries["nvrtc"] == [f"{SITE}/nvidia/cu13/lib/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.12"]


def test_without_libraries_there_are_none() -> None:
    assert asked(machine())["libraries"] == {}


def test_links_by_switch_and_by_topology() -> None:
    first, second, third = h200(0), h200(1), h200(2, nvlinks=())
    by_switch = asked(machine(first, second, third))["links"]
    assert set(by_switch) == {f"{first.uuid} {second.uuid}", f"{second.uuid} {first.uuid}"}
    assert asked(machine(*[h200(number, nvlinks=links(inactive=range(18))) for number in range(2)]))["links"] == {}
    joined = GpuLink(source="nvml", first=third.pci_bus_id or "", second=first.pci_bus_id or "", nvlinks=4)
    bridged = machine(but(first, nvlinks=()), third, fabric__links=(joined,))
    assert asked(bridged)["links"] == {f"{a.uuid} {b.uuid}": "NVLink" for a, b in ((first, third), (third, first))}


def test_a_gpu_that_was_left_out_has_no_links() -> None:
    assert asked(machine(h200(0), h200(1, utilisation=0.9)))["links"] == {}
