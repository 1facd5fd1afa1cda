"""GPU models by the names that people and tools write; never a near miss. ``find_model`` reads the shipped rows of GPUs
alone, for a question that must not wait for all of the matrix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec

from envcheck.bundle import COMPILED
from envcheck.errors import MatrixError
from envcheck.knowledge.compiling import read_rows, row_files
from envcheck.knowledge.copies import rows_folder
from envcheck.knowledge.tables.hardware import GpuRow
from envcheck.text.lazy import lazy_pattern

_LAPTOP = lazy_pattern(r"\b(?:laptop|mobile|notebook)\b(?: gpu)?")
_OF_LAPTOPS = lazy_pattern(r"\b(?:laptop|maxq)\b")
"""lspci names laptop and desktop models alike; what shares a number is of one generation, with figures of its own."""
_ALONE = ("laptop", "embedded")  # Kinds of models whose names are written without them where there is no other
_TWISTED = (
    (lazy_pattern(r"\b(?:fe|founders edition)\b"), " "),
    (lazy_pattern(r"\brtx (\d{4}) pro\b"), r"rtx pro \1"),
    (lazy_pattern(r"\b(?:rtx )?a(\d{4}) ada\b"), r"rtx \1 ada"),
    (lazy_pattern(r"\b(\d{4})s\b"), r"\1 super"),
)
"""Names in an order that NVIDIA does not use, and Ada's models under the letter of Ampere's."""
_NOISE = lazy_pattern(
    r"\b(?:nvidia|corporation|geforce|tesla|generation|gpu|graphics|card|r|tm|"
    r"(?:engineering reference )?developer kit)\b"
)
_FORM = lazy_pattern(r"\b(?:(?P<size>\d{1,9}) ?gb?|sxm\d?|pcie?|hbm\d?e?|gddr\d\w?)\b")
_NO_FIGURES = {
    field.name: field.default
    for field in msgspec.structs.fields(GpuRow)
    if field.name in {"device_ids", "memory", "bandwidth", "sms", "clock", "tensor_clock", "peaks", "nvlink", "power"}
    or field.name.startswith(("pcie", "sheet"))
}


def find_by_name(rows: Mapping[str, GpuRow], name: str) -> GpuRow | None:
    """The model called ``name`` among ``rows`` by their keys; None when there is none, or the name says too little.

    A form factor or memory size that the matrix does not know apart is left out: what comes back then carries only
    what all variants of the model share, and no figures of another variant.
    """
    if len(name) > 120 or name.rstrip().endswith(("...", "\N{HORIZONTAL ELLIPSIS}")):
        return None
    words = _words(name.replace("\n", " "))
    exact = _lookup(rows, words)
    if exact is not None:
        return exact
    for wrong, right in _TWISTED:
        words = wrong.sub(right, words)
    family = _lookup(rows, _FORM.sub(" ", words))
    if family is None:
        bare = _OF_LAPTOPS.sub(" ", _FORM.sub(" ", words))
        other = _lookup(rows, bare) or next(filter(None, (_lookup(rows, f"{bare} {kind}") for kind in _ALONE)), None)
        return msgspec.structs.replace(other, **_NO_FIGURES) if other else None
    if family.memory is None:
        return msgspec.structs.replace(family, device_ids=())
    # Its figures hold where all that the name says of size and form is true of it: PCIe, where it has no other form.
    found = list(_FORM.finditer(words))
    sizes = {int(match["size"]) for match in found if match["size"]}
    forms = {match.group() for match in found if not match["size"]}
    if sizes <= {family.memory // 2**30} and (not forms or (forms <= {"pcie", "pci"} and family.nvlink is None)):
        return family
    return msgspec.structs.replace(family, **_NO_FIGURES)


def by_name(rows: Iterable[GpuRow]) -> dict[str, GpuRow]:
    """Models by the keys of their names and aliases."""
    named = [(name, row) for row in rows for name in (row.name, *row.aliases)]
    return {key: row for key, (_, row) in zip(name_keys(name for name, _ in named), named, strict=True)}


def name_keys(names: Iterable[str]) -> list[str]:
    """What is left of each name when everything that people write differently is taken away."""
    lines = "\n".join(name.replace("\n", " ") for name in names)
    return _words(lines).replace(" ", "").split("\n")


def _words(names: str) -> str:
    """Lower-case words of one name, or of the one on each line; the suffix that names a MIG slice is dropped."""
    text = re.sub(r"[^a-z0-9\n]+", " ", names.lower())
    text = re.sub(r"\bmig\b.*", "", text)
    text = re.sub(r"\b(?:with )?max ?q(?: design)?\b", " maxq ", _LAPTOP.sub(" laptop ", text))
    return _NOISE.sub(" ", text)


def _lookup(rows: Mapping[str, GpuRow], words: str) -> GpuRow | None:
    key = words.replace(" ", "")
    if key.startswith("quadrortxa"):
        key = key.removeprefix("quadro")
    return rows.get(key) if key else None


class _Models(msgspec.Struct, frozen=True):
    gpu: tuple[GpuRow, ...] = ()


@cache
def _by_key() -> dict[str, GpuRow]:
    place = Path(rows_folder())
    try:
        if (place / COMPILED).is_file():
            content = (place / COMPILED).read_bytes()
            try:
                return by_name(msgspec.json.decode(content, type=_Models).gpu)
            except msgspec.ValidationError:
                from envcheck.knowledge.matrix import decode_rows  # noqa: PLC0415 - newer rows alone need it

                return by_name(decode_rows(msgspec.json.decode(content, type=dict[str, msgspec.Raw])["gpu"], GpuRow))
        files = [path for path in row_files(place) if {b"[[gpu]]", b"gpu = ["} & {*path.read_bytes().splitlines()}]
        return by_name(row for path in files for row in msgspec.convert(read_rows(path, "gpu"), list[GpuRow]))
    except (OSError, msgspec.DecodeError) as error:
        raise MatrixError(f"{place}: the matrix cannot be read, install envcheck again: {error}") from error


def find_model(name: str) -> GpuRow | None:
    """The shipped model called ``name``, as ``Matrix.find_gpu`` finds it; raise MatrixError where it is damaged."""
    return find_by_name(_by_key(), name)
