"""Environment variables against the rows that describe them, and how CUDA reads CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from typing import Literal, TypeAlias

import msgspec

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.specifier import parse_specifier, parse_version
from envcheck.knowledge.tables import is_named
from envcheck.knowledge.tables.environment import VariableEffect, VariableRow
from envcheck.model.snapshot import Gpu
from envcheck.text.lazy import lazy_pattern

_LONGEST = 4096  # Characters of a value that are looked at
_SHOWN = 60


def reads(row: VariableRow, name: str) -> bool:
    return is_named(name, row.reader)


def holds_for(specifier: str, version: str | None) -> bool:
    """Whether a row or an option is about this release; it is where it names none, or the release is not known."""
    parsed = parse_version(version) if version else None
    return not specifier or parsed is None or parse_specifier(specifier).cover(parsed) != "none"


def wrong(row: VariableRow, value: str, version: str | None = None) -> str | None:
    """What is wrong with a value, as the rest of a sentence; None where nothing is known to be."""
    value = value[:_LONGEST]
    if row.pattern and not _matches(row.pattern, value):
        return f"{_quoted(value)} is not a valid value" + (f" ({row.valid})" if row.valid else "")
    if not row.options:
        return None
    found = (_wrong_setting(row, setting, version) for setting in _settings(row, value))
    return next((text for text in found if text), None)


def _wrong_setting(row: VariableRow, setting: str, version: str | None) -> str | None:
    name, sign, given = setting.partition(row.assign)
    if row.assign == ":" and not (sign and given):
        return f"{_quoted(setting)} is not a setting of the form name:value"
    option = next((each for each in row.options if each.name == name), None)
    if option is None:
        listed = row.known and version and parse_version(version) and holds_for(row.known, version)
        return f"the setting {_quoted(name)} does not exist" if listed else None
    if version and not holds_for(option.versions, version):
        return f"the setting {_quoted(name)} does not exist in {version}"
    if option.pattern and not (sign and _matches(option.pattern, given)):
        return f"{_quoted(setting)} is not a valid setting"
    return None


def _settings(row: VariableRow, value: str) -> Iterator[str]:
    """The settings in a value; commas within brackets part none, and blanks between them do not count."""
    parts = value.split() if row.assign == "=" else re.split(r",(?![^\[]*\])", re.sub(r"\s+", "", value))
    yield from (part for part in parts if part)


def leads_to(row: VariableRow, value: str) -> tuple[tuple[str, str], ...]:
    """The paths in a value, each with what it must lead to."""
    value = value[:_LONGEST]
    parts = re.split(r"[ :]+", value) if row.several else [value]
    return tuple((part, row.leads_to) for part in parts if row.leads_to and part.startswith(("/", "./", "../")))


def effects(row: VariableRow, value: str, kinds: Sequence[str]) -> tuple[VariableEffect, ...]:
    return tuple(each for each in row.effects if each.on in kinds and _matches(each.values, value[:_LONGEST]))


def said_by(row: VariableRow, text: str, *, is_set: bool = True) -> bool:
    """Whether the text is what the reader says of an invalid value."""
    return any(_compiled(pattern).search(text[:_LONGEST]) for pattern in (*row.said, *(row.hinted if is_set else ())))


def shown(value: str) -> str:
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"


def _quoted(text: str) -> str:
    return f"'{shown(text)}'"


def _matches(pattern: str, value: str) -> bool:
    return _compiled(pattern).fullmatch(value) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return lazy_pattern(pattern, needed=load_matrix().needed_words.get(pattern, ()))


NO_GPU = ("", "none", "void", "NoDevFiles")  # Values that people and schedulers set to hide every GPU

Kind: TypeAlias = Literal["gpu", "misread", "end", "blank", "absent", "word", "mixed", "ambiguous", "mig-off", "twice"]
"""``misread``: CUDA takes the number at its beginning and ignores the rest. ``end``: a negative index. From ``end`` on,
all end the list, but for ``twice``: for a GPU that is named again CUDA refuses the whole list.
"""
_VISIBLE: frozenset[Kind] = frozenset({"gpu", "misread"})
_NUMBER = lazy_pattern(r"\s*([+-]?[0-9]+)")
_GREATEST_INDEX = (1 << 63) - 1
_ENTRY_LIMIT = 256
_WHOLE = len("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6")  # What stands behind a whole UUID is ignored


class VisibleEntry(msgspec.Struct, frozen=True):
    text: str
    kind: Kind


class VisibleGpus(msgspec.Struct, frozen=True):
    """The entries up to the one that ends the list, and how many GPUs they leave visible."""

    entries: tuple[VisibleEntry, ...]
    visible: int

    @property
    def problem(self) -> VisibleEntry | None:
        """The first entry for which CUDA does not show what was named."""
        return next((entry for entry in self.entries if entry.kind not in ("gpu", "end")), None)

    @property
    def refused(self) -> bool:
        return any(entry.kind == "twice" for entry in self.entries)


def hides_all(value: str) -> bool:
    """Whether the list is empty on purpose, or begins with a negative index."""
    return value in NO_GPU or value.strip().startswith("-")


def read_visible(value: str, gpus: Sequence[Gpu] | None) -> VisibleGpus:
    """Read a list for a machine with these GPUs; None where they are not known, and then any may exist.

    By NVIDIA's documentation, and by what cuInit answered to some hundred lists on two H200 with driver 580.
    """
    texts = value.split(",")[:_ENTRY_LIMIT]
    while len(texts) > 1 and not texts[-1].strip():
        texts.pop()  # a comma at the end takes nothing away
    by_number: bool | None = None
    seen: set[Hashable] = set()
    entries: list[VisibleEntry] = []
    for text in texts:
        kind, gpu = _selects(text, gpus)
        is_number = bool(_NUMBER.match(text))
        if kind in _VISIBLE and by_number is not None and is_number != by_number:
            kind = "mixed"
        elif kind in _VISIBLE and gpu in seen:
            kind = "twice"
        by_number = is_number
        seen.add(gpu)
        entries.append(VisibleEntry(text.strip(), kind))
        if kind not in _VISIBLE and kind != "twice":
            break
    shown = sum(entry.kind in _VISIBLE for entry in entries)
    return VisibleGpus(tuple(entries), 0 if any(entry.kind == "twice" for entry in entries) else shown)


def _selects(text: str, gpus: Sequence[Gpu] | None) -> tuple[Kind, Hashable]:
    """What an entry is by itself, and the GPU that it selects."""
    if not text.strip():
        return "blank", None
    found = _NUMBER.match(text)
    if found:  # a number is read as C reads it, into 32 bits
        meant = int(found[1][:_ENTRY_LIMIT])
        number = max(-_GREATEST_INDEX - 1, min(meant, _GREATEST_INDEX)) & 0xFFFFFFFF
        if number >> 31:
            return ("end" if meant < 0 else "absent"), None
        if gpus is not None and number >= len(gpus):
            return "absent", number
        return ("gpu" if number == meant and found[1] == text.strip() else "misread"), number
    if text.startswith("GPU-"):
        return _by_uuid(text.rstrip().lower(), gpus)
    if text.startswith("MIG-"):
        return _mig(text.rstrip().lower(), gpus)
    return "word", None


def _by_uuid(name: str, gpus: Sequence[Gpu] | None) -> tuple[Kind, Hashable]:
    if name == "gpu-":
        return "ambiguous", name
    if gpus is None:
        return "gpu", name
    name = name[:_WHOLE]
    fitting = [gpu.uuid for gpu in gpus if (gpu.uuid or "").lower().startswith(name)]
    if len(fitting) > 1:
        return "ambiguous", name
    if not fitting and all(gpu.uuid for gpu in gpus):
        return "absent", name
    return "gpu", fitting[0] if fitting else name


def _mig(name: str, gpus: Sequence[Gpu] | None) -> tuple[Kind, Hashable]:
    """The older form, ``MIG-GPU-UUID/1/0``, is taken on trust where any GPU is in MIG mode."""
    whole = next((gpu.uuid for gpu in gpus or () if (gpu.uuid or "").lower()[4:] == name[4:]), None)
    if whole:
        return "gpu", whole
    modes = [gpu.mig.enabled if gpu.mig else None for gpu in gpus or ()]
    if modes and all(mode is False for mode in modes):
        return "mig-off", name
    listed = [gpu.mig.instances if gpu.mig else None for gpu in gpus or ()]
    if "/" in name or not listed or any(instances is None for instances in listed):
        return "gpu", name
    uuids = [instance.uuid for instances in listed for instance in instances or ()]
    known = any(uuid is None or uuid.lower().startswith(name) for uuid in uuids)
    return ("gpu" if known else "absent"), name
