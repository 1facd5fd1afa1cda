"""JAX at work: a matrix product, a convolution, and the devices that it lists."""

from __future__ import annotations

import os
from typing import Any

from ..common.out import Out
from ..common.tree import Tree
from ..trials.trial import OnCpuError, Step, TrialSubject, Where, attempt, close, equal, module, on_gpu, whole_numbers

PROBE = {
    "title": "JAX, imported and run",
    "seconds": 180.0,
    "tries": ["jax", "jaxlib"],
    "fills": ["environments.frameworks.trial", "environments.frameworks.gpu_available"],
}


def collect(tree: Tree, out: Out) -> None:
    """Send how it went, as the trial of ``jax``."""
    module = "jaxlib" if tree.request["framework"]["name"] == "jaxlib" else "jax"
    attempt(tree, out, SUBJECT if module == "jax" else TrialSubject(module, why_none="jaxlib alone computes nothing"))


def _device(jax: Any) -> Any:
    """The GPU that JAX computes on unless told otherwise; when that is the CPU, ask why there is no GPU."""
    default = jax.devices()[0]
    if default.platform in ("gpu", "cuda"):
        return default
    chosen = os.environ.get("JAX_PLATFORMS") or os.environ.get("JAX_PLATFORM_NAME")
    if chosen:
        raise OnCpuError(f"JAX_PLATFORMS={chosen} has JAX compute on {default}")
    jax.devices("cuda")  # raises what went wrong when its GPU part was started
    raise OnCpuError(f"JAX computes on {default} by default")


def matrix_product(jax: Any, device: Any = None) -> Where:
    """By cuBLAS on a GPU."""
    numpy, matrix = module("numpy"), whole_numbers()
    place = _device(jax) if device is None else device
    result = jax.jit(lambda a: a @ a)(jax.device_put(matrix, place)).block_until_ready()
    equal(numpy.asarray(result).ravel().tolist(), (matrix @ matrix).ravel().tolist())
    buffer = result if hasattr(result, "unsafe_buffer_pointer") else result.device_buffer
    return on_gpu(int(buffer.unsafe_buffer_pointer()), str(place))


def convolution(jax: Any, device: Any = None) -> None:
    """By cuDNN on a GPU: a box filter over ones, so that every result is the number of weights."""
    numpy = module("numpy")
    place = _device(jax) if device is None else device
    image = jax.device_put(numpy.ones((1, 4, 16, 16), "float32"), place)
    weights = jax.device_put(numpy.ones((8, 4, 3, 3), "float32"), place)
    result = jax.jit(lambda a, b: jax.lax.conv(a, b, (1, 1), "VALID"))(image, weights)
    close(numpy.asarray(result).ravel().tolist(), [36.0] * (8 * 14 * 14), tolerance=0.5)


def _jaxlib(_jax: Any) -> Any:
    jaxlib = module("jaxlib")
    return getattr(jaxlib, "__version__", None) or jaxlib.version.__version__


SUBJECT = TrialSubject(
    module="jax",
    steps=(Step("a matrix product", matrix_product), Step("a convolution", convolution)),
    build={"version": lambda jax: jax.__version__, "jaxlib": _jaxlib},
    answers={
        "devices": lambda jax: ", ".join(map(str, jax.devices())),
        "platform": lambda jax: jax.devices()[0].client.platform_version.splitlines()[0],
        "matmul precision": lambda jax: jax.config.jax_default_matmul_precision,
        "jit": lambda jax: "off" if jax.config.jax_disable_jit else None,
        "NaN checks": lambda jax: "on" if jax.config.jax_debug_nans else None,
        "JAX_PLATFORMS": lambda _: os.environ.get("JAX_PLATFORMS"),
    },
    available=lambda jax: any(device.platform in ("gpu", "cuda") for device in jax.devices()),
)
