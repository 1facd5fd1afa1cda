"""Copies between host and GPUs, and between GPUs, one link at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..common.out import Out
from ..common.tree import Tree
from ..measuring.device import Device, call, capability, ordinals
from ..measuring.host_copies import WAYS, CopyPlace, HostCopies, HostMemory, on_node, places
from ..measuring.kernels import Compiler
from ..measuring.measurement import Bench, bench_of, missing, visible
from ..measuring.peer_copies import PeerCopies
from ..measuring.runtime import CudaError, Fields, Unavailable
from ..measuring.verify import pattern_code

PROBE = {
    "title": "Host and peer links",
    "seconds": 60.0,
    "per": "machine",
    "seconds_per_gpu": 15.0,
    "uses": "link",
    "scopes": ["node"],
}

_NAMES = (*WAYS, "both-directions", "copy-latency", "peer-to-peer")
Measure = Callable[[], Fields]
Memory = dict[CopyPlace, HostMemory]  # Page-locked memory of each NUMA node: to lock it takes long, all GPUs can use it


def prepare(tree: Tree) -> None:
    """Start CUDA and compile, which needs no context on a GPU and disturbs nobody who measures there."""
    nvrtc = tree.request["bench"]["libraries"].get("nvrtc", ())
    for ordinal in ordinals().values():
        pattern_code(Compiler(nvrtc, capability(call("cuDeviceGet", ordinal))))


def collect(tree: Tree, out: Out) -> None:
    """Measure every GPU's link to the host, then every pair of GPUs.

    A GPU that takes no context costs its own links only; its error is raised at the end.
    """
    asked = tree.request["bench"]
    only = asked.get("only", ())
    if only and not any(name.startswith(_NAMES) for name in only):
        out.absent("not asked for")
        return
    known = visible(out)
    if known is None:
        return
    benches, refused = [], []
    for gpu in asked["gpus"]:
        try:
            benches += [bench_of(asked, gpu["uuid"], Device(known[gpu["uuid"]]))] if gpu["uuid"] in known else []
        except CudaError as error:
            refused.append(error)
    memory: Memory = {}
    for bench in benches:
        _host_links(tree, bench, memory, out)
    for i, first in enumerate(benches):
        for second in benches[i + 1 :]:
            _pair(first, second, asked, out)
    if refused:
        raise refused[0]


def _host_links(tree: Tree, bench: Bench, memory: Memory, out: Out) -> None:
    bench.device.enter()
    own = next((gpu.get("numa_node") for gpu in tree.request["bench"]["gpus"] if gpu["uuid"] == bench.uuid), None)
    found = places(tree, own)
    _pinned(tree, bench, found.near, memory, out)
    if not bench.full:
        return
    with on_node(tree, found.near):
        _host_copies(bench, HostMemory(bench.device, pageable=True), WAYS, _facts("pageable", found.near), out)
    if found.far:
        _pinned(tree, bench, found.far, memory, out)
        return
    why = f"not measured: {found.why_not_far}"
    rows = [missing(name, bench.uuid, why, variant="pinned, far") for name in WAYS if bench.wants(name)]
    out.fact({"measurements": rows})


def _pinned(tree: Tree, bench: Bench, place: CopyPlace, memory: Memory, out: Out) -> None:
    names = (*WAYS, "both-directions", "copy-latency") if bench.full else WAYS
    with on_node(tree, place):
        host = memory.setdefault(place, HostMemory(bench.device))
        _host_copies(bench, host, names, _facts("pinned", place), out)


def _facts(kind: str, place: CopyPlace) -> Fields:
    if not place.words:
        return {"variant": kind}
    return {"variant": f"{kind}, {place.words}", "detail": f"cuMemcpyAsync, host memory of NUMA node {place.node}"}


def _host_copies(bench: Bench, host: HostMemory, names: Sequence[str], facts: Fields, out: Out) -> None:
    wanted = [name for name in names if bench.wants(name)]
    if not wanted:
        return
    try:
        copies = HostCopies(bench, host)
    except Unavailable as error:
        rows = [missing(name, bench.uuid, str(error), variant=facts["variant"]) for name in wanted]
        out.fact({"measurements": rows})
        return
    measures: dict[str, Measure] = {name: partial(copies.one_way, name, **facts) for name in WAYS}
    measures |= {"both-directions": partial(copies.both_ways, **facts)}
    measures |= {"copy-latency": partial(copies.latency, **facts)}
    _send(bench, out, {name: measures[name] for name in wanted}, variant=facts["variant"])
    copies.close()


def _pair(first: Bench, second: Bench, asked: dict[str, Any], out: Out) -> None:
    if not first.wants("peer-to-peer"):
        return
    link = asked.get("links", {}).get(f"{first.uuid} {second.uuid}", "PCIe")
    try:
        copies = PeerCopies(first, second, link, both=first.full)
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


def _send(bench: Bench, out: Out, measures: dict[str, Measure], **facts: str) -> None:
    """Make the measurements; ``facts`` tell one that could not be made from others of its name."""
    for name, measure in measures.items():
        out.progress(name)
        try:
            found = measure()
        except Unavailable as error:
            found = missing(name, bench.uuid, str(error), **facts)
        out.fact({"measurements": [found]})
