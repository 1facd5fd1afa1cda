"""Words of a newer minor of the schema: a reader takes what it does not know as not known."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")

NOT_KNOWN = {
    ("Report", "verdict"): "unknown",
    ("Check", "scope"): "node",
    ("Check", "layer"): "request",
    ("Check", "status"): "unknown",
    ("ProbeRun", "status"): "failed",
}
"""What stands for a word that is not known, in fields that need one. A record of another kind that needs one is left
out; fields that need none have a value for that.
"""


class _StrangeError(Exception):
    """A record cannot be told without a word that is not known."""


def without_unknown_words(content: Any, kind: Any) -> Any:
    """``content``, plain JSON of a ``kind``, without the words that its enumerations do not have."""
    return _read(content, inspect.type_info(kind))


def _read(value: Any, kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.UnionType):
        fitting = [each for each in kind.types if _may_hold(each, value)]
        return _read(value, fitting[0]) if len(fitting) == 1 else value
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        return _struct(value, kind)
    if isinstance(kind, inspect.VarTupleType) and isinstance(value, list):
        return [read for item in value for read in _item(item, kind.item_type)]
    if isinstance(kind, inspect.DictType) and isinstance(value, dict):
        return {key: _read(item, kind.value_type) for key, item in value.items()}
    return value


def _item(value: Any, kind: inspect.Type) -> list[Any]:
    """The item as it is read, or nothing."""
    try:
        return [] if _is_strange(value, kind) else [_read(value, kind)]
    except _StrangeError:
        return []


def _struct(value: dict[str, Any], kind: inspect.StructType) -> dict[str, Any]:
    fields = {field.encode_name: field for field in kind.fields}
    read: dict[str, Any] = {}
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            continue
        found = _item(item, field.type)
        if found:
            read[key] = found[0]
        elif field.required:
            read[key] = _in_its_place(kind.cls.__name__, field.name)
    return read


def _in_its_place(record: str, field: str) -> str:
    if (record, field) not in NOT_KNOWN:
        raise _StrangeError
    return NOT_KNOWN[record, field]


def _may_hold(kind: inspect.Type, value: Any) -> bool:
    containers = {inspect.StructType: dict, inspect.DictType: dict, inspect.VarTupleType: list}
    return isinstance(value, containers.get(type(kind), ()))


def _is_strange(value: Any, kind: inspect.Type) -> bool:
    """Whether ``value`` is a word in the place of a known one."""
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    words = {word for each in kinds if isinstance(each, inspect.LiteralType) for word in each.values}
    return bool(words) and isinstance(value, str) and value not in words


def read_newer(content: bytes, kind: type[T]) -> T:
    """Decode ``content`` of a newer minor; raise msgspec.ValidationError for what is no ``kind`` all the same."""
    return msgspec.convert(without_unknown_words(msgspec.json.decode(content), kind), kind)
