"""cuDNN on several GPUs of one process: handles made and destroyed on all of them at the same time."""

from __future__ import annotations

from ..common.figures import FigureKey
from ..common.out import Out
from ..common.tree import Tree
from ..measuring.cudnn.handles import NAME, handles
from ..measuring.cudnn.library import Cudnn
from ..measuring.device import Device
from ..measuring.measurement import bench_of, run_all, visible

PROBE = {
    "title": "cuDNN on several GPUs",
    "kind": "bench",
    "seconds": 30.0,
    "seconds_per_gpu": 5.0,
    "uses": "gpu",
    "per": "machine",
    "scopes": ["node"],
    "fills": ["measurements"],
}


def collect(tree: Tree, out: Out) -> None:
    """Make handles on every GPU that is measured, where these are two or more."""
    asked = tree.request["bench"]
    only = asked.get("only", ())
    if NAME not in only if only else not asked.get("full"):
        out.absent("measured with --full" if not only else "not asked for")
        return
    known = visible(out)
    if known is None:
        return
    uuids = [gpu["uuid"] for gpu in asked["gpus"] if gpu["uuid"] in known]
    if len(uuids) < 2:
        out.absent("one GPU is measured")
        return
    benches = [bench_of(asked, uuid, Device(known[uuid])) for uuid in uuids]
    first = benches[0]
    first.device.enter()
    figure = FigureKey(NAME, variant=f"{len(benches)} GPUs")
    run_all(first, out, {figure: lambda bench: {**handles(benches, Cudnn(bench)), **figure.facts}})
