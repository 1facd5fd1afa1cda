"""cuDNN's work: convolutions, layers, attention, handles."""

from __future__ import annotations

from functools import cache, partial
from itertools import product

from ..common.out import Out
from ..common.tree import Tree
from ..measuring.cudnn.attention import DIRECTIONS as ATTENTION_DIRECTIONS
from ..measuring.cudnn.attention import PRECISIONS as ATTENTION_PRECISIONS
from ..measuring.cudnn.attention import Attention
from ..measuring.cudnn.convolution import KINDS, Convolutions
from ..measuring.cudnn.layers import ACTIVATIONS, PRECISIONS, Layers
from ..measuring.cudnn.library import Cudnn
from ..measuring.measurement import Bench, Make, late, on_gpu, tasks, with_full
from ..measuring.runtime import FigureKey, Measures
from .cudnn_gpus import NAME as HANDLES
from .cudnn_gpus import handles

PROBE = {"title": "cuDNN", "seconds": 90.0, "deep": True}
LAYOUTS = ("NCHW", "NHWC")
SMALLEST = FigureKey("cudnn-convolution", "fp32", variant="forward, NCHW")  # What a deep check runs

COMPARED = {
    FigureKey("cudnn-convolution", kind, variant=f"forward, {layout}")
    for kind, layout in product(("fp32", "tf32", "fp16", "bf16"), LAYOUTS)
} | {FigureKey("cudnn-attention", "bf16", variant="forward")}
"""What frameworks are compared with."""


def collect(tree: Tree, out: Out) -> None:
    """Measure what ``--full`` comprises; a deep check runs one convolution."""
    if any(name.startswith("cudnn-") for name in tree.request["bench"].get("beside", ())):
        on_gpu(tree, out, compared)
    else:
        with_full(tree, out, measures)


def compared(bench: Bench) -> Measures:
    """Those that frameworks are compared with."""
    return {figure: measure for figure, measure in measures(bench).items() if figure in COMPARED}


def measures(bench: Bench) -> Measures:
    """The measures, by figure; a deep check makes the smallest."""
    library = cache(partial(Cudnn, bench))
    convolutions = cache(lambda: Convolutions(bench, library()))
    attention, layers = cache(lambda: Attention(bench, library())), cache(lambda: Layers(bench, library()))
    able = bench.device.capability
    makes: dict[FigureKey, Make] = {
        FigureKey("cudnn-convolution", name, variant=f"{direction}, {layout}"): late(
            convolutions, Convolutions.task, name, direction, layout
        )
        for (name, kind), direction, layout in product(PRECISIONS.items(), KINDS, LAYOUTS)
        if able >= kind.least
    }
    if not bench.timing:
        return tasks(bench, {SMALLEST: makes[SMALLEST]})
    layered = [("cudnn-pooling", "", Layers.pooling), ("cudnn-softmax", "", Layers.softmax)]
    layered += [("cudnn-activation", f"{kind}, ", partial(Layers.activation, name=kind)) for kind in ACTIVATIONS]
    layered += [("cudnn-batch-norm", "", Layers.batch_norm), ("cudnn-lrn", "", Layers.lrn)]
    layered += [("cudnn-divisive-norm", "", Layers.divisive)]
    for name, before, make in layered:
        for direction in ("forward", "backward"):
            figure = FigureKey(name, "fp32", variant=before + direction)
            makes[figure] = late(layers, partial(make, backward=direction == "backward"))
    makes[FigureKey("cudnn-transform", "fp32", variant="NCHW to NHWC")] = late(layers, Layers.transform)
    for name, least in ATTENTION_PRECISIONS.items():
        for direction in ATTENTION_DIRECTIONS if able >= least else ():
            makes[FigureKey("cudnn-attention", name, variant=direction)] = late(
                attention, Attention.task, name, direction
            )
    return {FigureKey(HANDLES): lambda: handles([bench], library()), **tasks(bench, makes)}
