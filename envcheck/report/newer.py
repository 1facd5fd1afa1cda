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
    ("DamagedFile", "kind"): "content",
    ("VariablePath", "leads_to"): "unknown",
}
"""What stands for a word that is not known, in fields that need one; all others have a value for that."""


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
        read = (_read(item, kind.item_type) for item in value)
        return [item for item in read if not _is_strange(item, kind.item_type)]
    if isinstance(kind, inspect.DictType) and isinstance(value, dict):
        return {key: _read(item, kind.value_type) for key, item in value.items()}
    return value


def _struct(value: dict[str, Any], kind: inspect.StructType) -> dict[str, Any]:
    fields = {field.encode_name: field for field in kind.fields}
    read: dict[str, Any] = {}
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            continue
        if not _is_strange(item, field.type):
            read[key] = _read(item, field.type)
        elif field.required:
            read[key] = NOT_KNOWN[kind.cls.__name__, field.name]
    return read


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
