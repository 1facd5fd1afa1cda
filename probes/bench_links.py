"""Copies between host and GPUs, and between GPUs, one link at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ._gpu_call import CudaError, Unavailable
from ._gpu_device import Device, ordinals
from ._gpu_kernels import Compiler
from ._gpu_measurement import Bench, Fields, before, missing
from ._gpu_sampler import Sampler
from ._kit import Out, Request, list_names, read_line
from ._links_host import WAYS, HostCopies
from ._links_peer import PeerCopies

PROBE = {
    "title": "Host and peer links",
    "kind": "bench",
    "seconds": 60.0,
    "seconds_per_gpu": 15.0,
    "uses": "link",
    "per": "machine",
    "scopes": ["node"],
    "fills": ["measurements"],
}

Measure = Callable[[], Fields]


def collect(request: Request, out: Out) -> None:
    """Measure every GPU's link to the host, then every pair of GPUs."""
    asked = request["bench"]
    known = ordinals()
    benches = [_bench(asked, gpu["uuid"], known) for gpu in asked["gpus"] if gpu["uuid"] in known]
    for bench in benches:
        _host_links(request, bench, out)
    for i, first in enumerate(benches):
        for second in benches[i + 1 :]:
            _pair(first, second, asked, out)


def _bench(asked: dict[str, Any], uuid: str, known: dict[str, int]) -> Bench:
    sampler = Sampler(uuid, before(asked, uuid))
    device = Device(known[uuid])
    compiler = Compiler(asked["libraries"].get("nvrtc", ()), device.capability)
    return Bench(
        uuid, device, sampler, compiler, bool(asked.get("full")), frozenset(asked.get("only", ())), asked["libraries"]
    )


def _host_links(request: Request, bench: Bench, out: Out) -> None:
    bench.device.enter()
    nodes = _nodes(request, bench)
    with _on_node(nodes[0] if nodes else None):
        _host_copies(bench, out, pageable=False, variant=_words("pinned", "near" if len(nodes) > 1 else ""))
        if bench.full:
            _host_copies(bench, out, pageable=True, variant=_words("pageable", "near" if len(nodes) > 1 else ""))
    for node in nodes[1:] if bench.full else ():
        with _on_node(node):
            _host_copies(bench, out, pageable=False, variant=_words("pinned", f"NUMA node {node}"))


def _words(kind: str, place: str) -> str:
    return f"{kind}, {place}" if place else kind


def _host_copies(bench: Bench, out: Out, *, pageable: bool, variant: str) -> None:
    try:
        copies = HostCopies(bench, pageable=pageable)
    except (Unavailable, CudaError) as error:
        out.fact({"measurements": [missing(name, bench.uuid, str(error), variant=variant) for name in WAYS]})
        return
    measures: dict[str, Measure] = {name: partial(copies.one_way, name, variant=variant) for name in WAYS}
    if bench.full and not pageable:
        measures["both-directions"] = partial(copies.both_ways, variant=variant)
        measures["copy-latency"] = partial(copies.latency, variant=variant)
    _send(bench, out, measures)
    copies.close()


def _pair(first: Bench, second: Bench, asked: dict[str, Any], out: Out) -> None:
    if not first.wants("peer-to-peer"):
        return
    link = asked.get("links", {}).get(f"{first.uuid} {second.uuid}", "PCIe")
    try:
        copies = PeerCopies(first, second, link)
    except Unavailable as error:
        out.fact({"measurements": [missing("peer-to-peer", first.uuid, str(error), peer=second.uuid)]})
        return
    measures: dict[str, Measure] = {"peer-to-peer": copies.one_way}
    if first.full:
        measures["peer-to-peer both"] = copies.both_ways
    _send(first, out, measures)
    copies.close()
    if first.full:
        back = PeerCopies(second, first, link)
        _send(second, out, {"peer-to-peer": back.one_way})
        back.close()


def _send(bench: Bench, out: Out, measures: dict[str, Measure]) -> None:
    for name, measure in measures.items():
        if bench.wants(name):
            out.progress(name)
            out.fact({"measurements": [measure()]})


def _nodes(request: Request, bench: Bench) -> list[int]:
    """The NUMA nodes that have CPUs which this process may use, the GPU's own first."""
    own = next((gpu.get("numa_node") for gpu in request["bench"]["gpus"] if gpu["uuid"] == bench.uuid), None)
    numbers = [
        int(name[4:])
        for name in list_names(request, "/sys/devices/system/node") or ()
        if name.startswith("node") and name[4:].isdecimal()
    ]
    usable = [number for number in numbers if _cpus(number) & os.sched_getaffinity(0)]
    return sorted(usable, key=lambda number: (number != own, number))


def _cpus(node: int) -> set[int]:
    """The CPUs of a NUMA node: ``0-7,16-23``."""
    text = read_line({"root": "/"}, f"/sys/devices/system/node/node{node}/cpulist") or ""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            found |= set(range(int(first), int(last or first) + 1))
    return found


@contextmanager
def _on_node(node: int | None) -> Iterator[None]:
    """Run this thread on the CPUs of ``node``, so that host memory is taken from it."""
    before = os.sched_getaffinity(0)
    if node is not None:
        os.sched_setaffinity(0, _cpus(node) & before)
    yield
    os.sched_setaffinity(0, before)
