"""cuDNN's work: convolutions, layers, attention, handles."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from ..common.figures import Fields, FigureKey
from ..common.out import Out
from ..common.tree import Tree
from ..measuring.cudnn.attention import DIRECTIONS as ATTENTION_DIRECTIONS
from ..measuring.cudnn.attention import PRECISIONS as ATTENTION_PRECISIONS
from ..measuring.cudnn.attention import Attention
from ..measuring.cudnn.convolution import KINDS, Convolutions
from ..measuring.cudnn.handles import NAME as HANDLES
from ..measuring.cudnn.handles import handles
from ..measuring.cudnn.layers import ACTIVATIONS, PRECISIONS, Layers, Task
from ..measuring.cudnn.library import Cudnn
from ..measuring.measurement import Bench, Measure, on_gpu, with_full

PROBE = {
    "title": "cuDNN",
    "kind": "bench",
    "seconds": 90.0,
    "uses": "gpu",
    "per": "gpu",
    "scopes": ["node", "env"],
    "deep": True,
    "fills": ["measurements"],
}
LAYOUTS = ("NCHW", "NHWC")
SMALLEST = FigureKey("cudnn-convolution", "fp32", variant="forward, NCHW")
"""What a deep check runs."""


COMPARED = (
    *(
        FigureKey("cudnn-convolution", kind, variant=f"forward, {layout}")
        for kind in ("fp32", "tf32", "fp16", "bf16")
        for layout in LAYOUTS
    ),
    FigureKey("cudnn-attention", "bf16", variant="forward"),
)
"""What frameworks are compared with."""


def collect(tree: Tree, out: Out) -> None:
    """Measure what ``--full`` comprises; a deep check runs one convolution."""
    if any(name.startswith("cudnn-") for name in tree.request["bench"].get("beside", ())):
        on_gpu(tree, out, _compared)
    else:
        with_full(tree, out, _measures)


def _compared(bench: Bench) -> dict[FigureKey, Measure]:
    return {figure: measure for figure, measure in _measures(bench).items() if figure in COMPARED}


def _measures(bench: Bench) -> dict[FigureKey, Measure]:
    library = cache(lambda: Cudnn(bench))
    convolutions = cache(lambda: Convolutions(bench, library()))
    if not bench.timing:
        return {SMALLEST: _convolution(convolutions, "fp32", "forward", "NCHW")}
    able = [name for name, kind in PRECISIONS.items() if bench.device.capability >= kind.least]
    measures: dict[FigureKey, Measure] = {FigureKey(HANDLES): lambda bench: handles([bench], library())}
    for name in able:
        for direction in KINDS:
            for layout in LAYOUTS:
                figure = FigureKey("cudnn-convolution", name, variant=f"{direction}, {layout}")
                measures[figure] = _convolution(convolutions, name, direction, layout)
    return measures | _layers(library, bench) | _attention(library, bench)


def _convolution(convolutions: Callable[[], Convolutions], name: str, direction: str, layout: str) -> Measure:
    return lambda _: convolutions().measured(name, direction, layout)


def _layers(library: Callable[[], Cudnn], bench: Bench) -> dict[FigureKey, Measure]:
    """The older functions, forward and backward."""

    def both(name: str, make: Callable[..., Task], before: str = "") -> dict[FigureKey, Measure]:
        return {
            FigureKey(name, "fp32", variant=before + ("backward" if backward else "forward")): partial(
                measure, name, before + ("backward" if backward else "forward"), partial(make, backward=backward)
            )
            for backward in (False, True)
        }

    layers = cache(lambda: Layers(bench, library()))

    def measure(name: str, variant: str, make: Callable[..., Task], _: Bench) -> Fields:
        return layers().measured(name, variant, make)

    measures = both("cudnn-pooling", Layers.pooling) | both("cudnn-softmax", Layers.softmax)
    for kind in ACTIVATIONS:
        measures |= both("cudnn-activation", partial(Layers.activation, name=kind), f"{kind}, ")
    measures |= both("cudnn-batch-norm", Layers.batch_norm) | both("cudnn-lrn", Layers.lrn)
    measures |= both("cudnn-divisive-norm", Layers.divisive)
    variant = "NCHW to NHWC"
    measures[FigureKey("cudnn-transform", "fp32", variant=variant)] = partial(
        measure, "cudnn-transform", variant, Layers.transform
    )
    return measures


def _attention(library: Callable[[], Cudnn], bench: Bench) -> dict[FigureKey, Measure]:
    attention = cache(lambda: Attention(bench, library()))
    able = [name for name, least in ATTENTION_PRECISIONS.items() if bench.device.capability >= least]
    return {
        FigureKey("cudnn-attention", name, variant=direction): _attend(attention, name, direction)
        for name in able
        for direction in ATTENTION_DIRECTIONS
    }


def _attend(attention: Callable[[], Attention], name: str, direction: str) -> Measure:
    return lambda _: attention().measured(name, direction)
