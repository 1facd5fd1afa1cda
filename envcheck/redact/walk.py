"""Rewrite the texts of a record and of all that it holds, and make pseudonyms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from envcheck.model.checks import Evidence

HOST = "host"
HOME = "/home/user"  # The home folder of the report's first user
HIDDEN_GPU = "redacted-"  # What the pseudonym of a GPU has after ``GPU-``
IP = "ip-"
SERIAL = "serial-"

T = TypeVar("T", bound=msgspec.Struct)


class Rewriting(msgspec.Struct, frozen=True):
    """What is done to texts."""

    change: Callable[[str], str]
    change_named: Callable[[str, str], str]  # From the name and value of an entry of a mapping to its new value
    leaves: Callable[[str], bool] | None = None
    """Whether it surely changes nothing in records of which this is the JSON, nor any enumerated word; None where that
    cannot be told.
    """
    everywhere: bool = False  # Whether it also changes the keys of mappings, and fields in which no name is sought


_AT_ONCE, _FEW = 64, 8  # Records that are asked about together, and the number from which each is looked at by itself
_OURS = frozenset({"rule", "primary", "schema_version", "version", "unit", "precision"})
"""Fields that hold envcheck's own words or versions: what looks like a name or an address in them is none."""


def whole_words(names: Iterable[str], before: str, after: str) -> re.Pattern[str]:
    """A pattern of each of ``names``, the longest first, within what may stand around; without any, of nothing."""
    ordered = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(rf"{before}(?:{'|'.join(map(re.escape, ordered))}){after}" if ordered else r"(?!)")


def texts_in(record: msgspec.Struct) -> list[str]:
    """Every text in a record that may hold a name, each once."""
    found: dict[str, str] = {}

    def keep(text: str) -> str:
        return found.setdefault(text, text)

    rewritten(record, Rewriting(keep, lambda _, text: keep(text)))
    return list(found)


def rewritten(record: T, how: Rewriting) -> T:
    """``record`` with every text changed; the same object where nothing changed. Enumerated words stay."""
    found: T = _record(record, how)
    return found


def _record(record: Any, how: Rewriting) -> Any:
    changed = {}
    kind: Any = type(record)
    for name in _fields(kind) if how.leaves is None else kind.__struct_fields__:
        value = getattr(record, name)
        if value is None or (name in _OURS and not how.everywhere):
            continue
        if kind is Evidence and name == "value":
            hidden = how.change_named(record.what, value)  # `what` may be a variable, as a key is
            new = value if hidden == value else hidden
        else:
            new = _value(value, how)
        if new is not value:
            changed[name] = new
    return msgspec.structs.replace(record, **changed) if changed else record


def _value(value: Any, how: Rewriting) -> Any:
    if isinstance(value, str):
        new = how.change(value)
        return value if new == value else new
    if isinstance(value, msgspec.Struct):
        return _record(value, how)
    if isinstance(value, tuple):
        items = tuple(_items(value, how))
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        entries = []
        for key, inner in value.items():
            if isinstance(inner, str):
                hidden = how.change_named(key, inner)
                new = inner if hidden == inner else hidden
            else:
                new = _value(inner, how)
            entries.append((how.change(key) if how.everywhere and isinstance(key, str) else key, new))
        same = all(key == old and new is inner for (key, new), (old, inner) in zip(entries, value.items(), strict=True))
        return value if same else dict(entries)
    return value


def _items(items: tuple[Any, ...], how: Rewriting) -> list[Any]:
    if how.leaves is None or len(items) <= _FEW:
        return [_value(item, how) for item in items]
    if len(items) <= _AT_ONCE and (encoded := as_json(items)) is not None and how.leaves(encoded):
        return list(items)
    middle = len(items) // 2
    return [*_items(items[:middle], how), *_items(items[middle:], how)]


def as_json(record: Any) -> str | None:
    """``record`` as JSON; None where it holds what is not text, as a file name may."""
    try:
        return msgspec.json.encode(record).decode()
    except UnicodeEncodeError:
        return None


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    """The fields of ``kind`` that may hold text other than enumerated words; reading the hints takes a while."""
    return tuple(name for name, hint in get_type_hints(kind).items() if _may_hold_text(hint))


def _may_hold_text(hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return False
    arguments = [argument for argument in get_args(hint) if argument is not Ellipsis]
    if arguments:
        return any(_may_hold_text(argument) for argument in arguments)
    return hint not in (int, float, bool, type(None))
