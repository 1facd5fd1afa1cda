"""Models of a few bytes for ONNX Runtime, written by hand: field numbers and types are those of onnx.proto.

A protocol buffer is a row of fields, each a key (number · 8 + wire type) and a value: 0 is an integer of variable
length, 2 a length and that many bytes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FLOAT = 1
_INT, _INTS = 2, 7  # Members of ``AttributeProto.AttributeType``
_IR_VERSION, _OPSET = 6, 11  # Old enough for every ONNX Runtime with a CUDA provider that is still met


def product_model(size: int) -> bytes:
    """``Y = X · X`` of a square matrix of floats."""
    return work_model("fp32", [node("MatMul", ("X", "X"), "Y")], {"X": (size, size)}, (size, size))


def convolution_model(channels: int, filters: int, image: int, kernel: int) -> bytes:
    """``Y = conv(X, W)`` with weights of one, no padding."""
    shape = (filters, channels, kernel, kernel)
    count = filters * channels * kernel * kernel
    weights = b"".join(_number(1, length) for length in shape) + _number(2, _FLOAT)
    weights += _bytes(8, b"W") + _bytes(9, struct.pack(f"<{count}f", *[1.0] * count))
    side = image - kernel + 1
    inputs = {"X": (1, channels, image, image)}
    return work_model("fp32", [node("Conv", ("X", "W"), "Y")], inputs, (1, filters, side, side), weights)


TYPES = {"fp32": _FLOAT, "tf32": _FLOAT, "fp16": 10}  # Members of ``TensorProto.DataType``


def work_model(
    precision: str,
    nodes: Sequence[bytes],
    inputs: Mapping[str, Sequence[int]],
    result: Sequence[int],
    weights: bytes = b"",
) -> bytes:
    """A graph of ``nodes`` from ``inputs`` (name to shape) to ``Y``; ``weights`` is a tensor that it holds itself."""
    kind = TYPES[precision]
    graph = b"".join(_bytes(1, each) for each in nodes) + _bytes(2, b"envcheck")
    graph += _bytes(5, weights) if weights else b""
    graph += b"".join(_bytes(11, _value(name, shape, kind)) for name, shape in inputs.items())
    graph += _bytes(12, _value("Y", result, kind))
    return _number(1, _IR_VERSION) + _bytes(7, graph) + _bytes(8, _number(2, _OPSET))


def node(kind: str, inputs: Sequence[str], output: str, **attributes: int | Sequence[int]) -> bytes:
    """An operation; attributes are whole numbers or lists of them."""
    operation = b"".join(_bytes(1, name.encode()) for name in inputs)
    operation += _bytes(2, output.encode()) + _bytes(4, kind.encode())
    for name, value in attributes.items():
        if isinstance(value, int):
            numbers = _number(3, value) + _number(20, _INT)
        else:
            numbers = b"".join(_number(8, each) for each in value) + _number(20, _INTS)
        operation += _bytes(5, _bytes(1, name.encode()) + numbers)
    return operation


def _value(name: str, shape: Sequence[int], kind: int) -> bytes:
    dimensions = b"".join(_bytes(1, _number(1, length)) for length in shape)
    tensor = _number(1, kind) + _bytes(2, dimensions)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, tensor))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
