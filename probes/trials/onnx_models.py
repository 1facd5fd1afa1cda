"""Models of a few bytes for ONNX Runtime, written by hand: field numbers and types are those of onnx.proto.

A protocol buffer is a row of fields, each a key (number · 8 + wire type) and a value: 0 is an integer of variable
length, 2 a length and that many bytes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_FLOAT = 1
_INT, _INTS = 2, 7
"""Members of ``AttributeProto.AttributeType``."""
_IR_VERSION, _OPSET = 6, 11
"""Old enough for every ONNX Runtime with a CUDA provider that is still met."""


def product_model(size: int) -> bytes:
    """``Y = X · X`` of a square matrix of floats."""
    node = _node("MatMul", ("X", "X"), "Y")
    return _model(node, _value("X", (size, size)), _value("Y", (size, size)))


def convolution_model(channels: int, filters: int, image: int, kernel: int) -> bytes:
    """``Y = conv(X, W)`` with weights of one, no padding."""
    shape = (filters, channels, kernel, kernel)
    count = filters * channels * kernel * kernel
    weights = b"".join(_number(1, length) for length in shape) + _number(2, _FLOAT)
    weights += _bytes(8, b"W") + _bytes(9, struct.pack(f"<{count}f", *[1.0] * count))
    side = image - kernel + 1
    given, result = _value("X", (1, channels, image, image)), _value("Y", (1, filters, side, side))
    return _model(_node("Conv", ("X", "W"), "Y"), given, result, weights)


TYPES = {"fp32": _FLOAT, "tf32": _FLOAT, "fp16": 10}
"""Members of ``TensorProto.DataType``."""


def work_model(
    precision: str, nodes: Sequence[bytes], inputs: dict[str, Sequence[int]], result: Sequence[int]
) -> bytes:
    """A graph of ``nodes`` from ``inputs`` (name to shape) to ``Y``."""
    kind = TYPES[precision]
    graph = b"".join(_bytes(1, each) for each in nodes) + _bytes(2, b"envcheck")
    graph += b"".join(_bytes(11, _value(name, shape, kind)) for name, shape in inputs.items())
    return _framed(graph + _bytes(12, _value("Y", result, kind)))


def node(kind: str, inputs: Sequence[str], output: str, **attributes: int | Sequence[int]) -> bytes:
    """An operation; attributes are whole numbers or lists of them."""
    return _node(kind, inputs, output) + b"".join(_bytes(5, _attribute(*each)) for each in attributes.items())


def _attribute(name: str, value: int | Sequence[int]) -> bytes:
    if isinstance(value, int):
        return _bytes(1, name.encode()) + _number(3, value) + _number(20, _INT)
    return _bytes(1, name.encode()) + b"".join(_number(8, each) for each in value) + _number(20, _INTS)


def _model(node: bytes, given: bytes, result: bytes, weights: bytes = b"") -> bytes:
    graph = _bytes(1, node) + _bytes(2, b"envcheck") + (_bytes(5, weights) if weights else b"")
    graph += _bytes(11, given) + _bytes(12, result)
    return _framed(graph)


def _framed(graph: bytes) -> bytes:
    return _number(1, _IR_VERSION) + _bytes(7, graph) + _bytes(8, _number(2, _OPSET))


def _node(kind: str, inputs: Sequence[str], output: str) -> bytes:
    given = b"".join(_bytes(1, name.encode()) for name in inputs)
    return given + _bytes(2, output.encode()) + _bytes(4, kind.encode())


def _value(name: str, shape: Sequence[int], kind: int = _FLOAT) -> bytes:
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
