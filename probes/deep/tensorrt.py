"""TensorRT at work: a matrix product, and a convolution with bias and ReLU, built and run."""

from __future__ import annotations

import array
from typing import Any

from ..common.out import Out
from ..common.tree import Tree
from ..framework_bench.convolution import ConvolutionShape
from ..framework_bench.engine import Convolver, Log, Way
from ..measuring.runtime import Unavailable
from ..trials.driver import RuntimeGpu
from ..trials.trial import NotTriedError, Step, TrialSubject, Where, attempt, equal, on_gpu

PROBE = {
    "title": "TensorRT, imported and run",
    "seconds": 180.0,
    "tries": ["tensorrt", "tensorrt-*", "nvidia-tensorrt"],
}

_SIZE = 64
_IMAGE = ConvolutionShape(1, 32, 16, 16, 32)
_WORKSPACE = 64 << 20
_NO_BUILDER = "it only runs engines that were built elsewhere"


def collect(tree: Tree, out: Out) -> None:
    """Send how it went, as the trial of TensorRT or of one of its parts without a builder."""
    name = tree.request["framework"]["name"]
    parts = {"tensorrt-lean": "tensorrt_lean", "tensorrt-dispatch": "tensorrt_dispatch"}
    module = next((module for start, module in parts.items() if name.startswith(start)), None)
    subject = SUBJECT if module is None else TrialSubject(module, build=SUBJECT.build, why_none=_NO_BUILDER)
    attempt(tree, out, subject)


def matrix_product(tensorrt: Any) -> Where:
    """Built, serialised, read again and run; TensorRT chooses the kernel."""
    log = Log(tensorrt)
    builder = log.made(tensorrt.Builder, "no builder")
    explicit = getattr(tensorrt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH", None)
    network = builder.create_network(0 if explicit is None else 1 << int(explicit))
    matrix = network.add_input("X", tensorrt.float32, (_SIZE, _SIZE))
    plain = tensorrt.MatrixOperation.NONE
    output = network.add_matrix_multiply(matrix, plain, matrix, plain).get_output(0)
    output.name = "Y"
    network.mark_output(output)
    config = builder.create_builder_config()
    if hasattr(config, "set_memory_pool_limit"):
        config.set_memory_pool_limit(tensorrt.MemoryPoolType.WORKSPACE, _WORKSPACE)
    plan = log.given(builder.build_serialized_network(network, config), "the network could not be built")
    runtime = log.made(tensorrt.Runtime, "no runtime")
    engine = log.given(runtime.deserialize_cuda_engine(plan), "no engine from the serialised network")
    context = log.given(engine.create_execution_context(), "no execution context")
    numbers = [float(place % 7) for place in range(_SIZE * _SIZE)]
    data, gpu = array.array("f", numbers).tobytes(), RuntimeGpu()
    given, result = gpu.memory(len(data)), gpu.memory(len(data))
    given.write(data)
    if hasattr(context, "set_tensor_address"):
        context.set_tensor_address("X", given.address)
        context.set_tensor_address("Y", result.address)
        executed = context.execute_async_v3(0)
    else:
        executed = context.execute_v2([given.address, result.address])
    log.given(bool(executed), "the engine could not be run")
    rows = [numbers[start : start + _SIZE] for start in range(0, len(numbers), _SIZE)]
    columns = list(zip(*rows))
    found = array.array("f", result.read(0, len(data))).tolist()
    equal(found, [sum(a * b for a, b in zip(row, column)) for row in rows for column in columns])
    return on_gpu(result.address, "cuda:0")


def convolution(tensorrt: Any) -> Where:
    """In FP32, saved and loaded, at random places compared with FP64."""
    try:
        with Convolver(tensorrt, _IMAGE).made(Way("fp32")) as made:
            found = made.verification
            if not found["right"]:
                raise ArithmeticError(f"{found['wrong']} of {found['checked']} elements are wrong")
            return on_gpu(made.result.address, "cuda:0")
    except Unavailable as reason:
        raise NotTriedError(str(reason)) from reason


SUBJECT = TrialSubject(
    module="tensorrt",
    steps=(Step("a matrix product", matrix_product), Step("a convolution with bias and ReLU", convolution)),
    build={"version": lambda tensorrt: tensorrt.__version__},
)
