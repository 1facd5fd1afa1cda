"""What people call components, and how each component numbers its releases."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from envcheck.compat.specifier import PLAIN, Bound, Scheme, Version, parse_specifier
from envcheck.compat.tables import ReleaseRow, Tables

_ALIASES = {
    "pytorch": "torch",
    "tf": "tensorflow",
    "trt": "tensorrt",
    "trt-engine": "tensorrt-engine",
    "cuda-toolkit": "cuda",
    "cudatoolkit": "cuda",
    "nvidia-driver": "driver",
    "compute-capability": "gpu",
    "cc": "gpu",
    "cuda-version": "cuda",
    "libcudnn": "cudnn",
    "libnccl": "nccl",
    "l4t-core": "l4t",
    "jetson-linux": "l4t",
    "g++": "gcc",
    "arch": "machine",
    "cpython": "python",
    "flash-attention": "flash-attn",
    "mxnet-gpu": "mxnet",
}

_BUILDS = Scheme(3, builds=True)
_MINORS = Scheme(2, builds=True)

_SCHEMES = {
    "cuda": _MINORS,
    "nvcc": _MINORS,
    "cuda-compat": _MINORS,
    "python": _MINORS,
    "glibc": _MINORS,
    "ubuntu": _MINORS._replace(digits=2),
    "jetpack": Scheme(2),
    "deepstream": Scheme(2),
    "l4t": Scheme(3),
    "cudnn": _BUILDS,
    "nccl": _BUILDS,
    "tensorrt": _BUILDS,
    "tensorrt-engine": _BUILDS,
    "driver": Scheme(2, builds=True),
    "gcc": Scheme(1, builds=True),
    "clang": Scheme(1, builds=True),
    "msvc": _MINORS,
}

COMPILERS = frozenset({"gcc", "clang", "msvc", "icc", "pgi", "nvhpc"})
"""Host compilers: they matter to the toolkit that compiles, so that a CUDA version beside one means the toolkit."""

SYSTEMS = frozenset({"jetpack", "l4t"})
"""System software of Jetsons: what comes with it is there, though nobody named it."""

HARDWARE = frozenset({"driver", "gpu", "cuda-compat"}) | SYSTEMS
"""Naming one of these says that a GPU is to be used."""

PLATFORM = frozenset({"os", "machine"})
"""Naming one of these says where; nothing need depend on it."""


@cache
def canonical(name: str) -> str:
    """The one name of a component; ``name`` as the grammar of components, or a row, writes it."""
    plain = re.sub(r"[._]+", "-", name.lower())
    return _ALIASES.get(plain, plain)


def scheme(name: str) -> Scheme:
    """How the component of this canonical name numbers its releases."""
    return _SCHEMES.get(name, PLAIN)


# The rows of a component, found by name; read once for the Tables that are asked.


class _Index(NamedTuple):
    tables: Tables
    rows: dict[str, list[ReleaseRow]]
    names: frozenset[str]


_NAMED_ELSEWHERE = ("torch", "python", "cudnn", "nccl", "triton", "tensorrt", "gcc")
"""What other tables, or relations, speak of."""

_ALIKE = 0.8
"""Least likeness of a name, of 1, to be offered for another one."""

_latest: list[_Index] = []
"""The index of the Tables that were asked last: rows do not change, and nearly every caller has the same Tables."""


def rows_of(tables: Tables, name: str) -> list[ReleaseRow]:
    """The rows of a component, by its canonical name."""
    return _index(tables).rows.get(name, [])


def is_known(tables: Tables, name: str) -> bool:
    """Whether any row speaks of a component, be it only as something that another one needs."""
    return name in _index(tables).names


def like(tables: Tables, name: str) -> str | None:
    """The known component whose name is written nearly so."""
    from difflib import get_close_matches  # noqa: PLC0415 - few questions need it

    return next(iter(get_close_matches(name, sorted(_index(tables).names), 1, _ALIKE)), None)


def known_versions(tables: Tables, name: str) -> list[Version]:
    """The versions that rows of a component name, ascending; those between them are covered by the same rows."""
    if name == "torch":
        texts = [f"=={row.version}" for row in tables.torch]
    else:
        texts = [row.versions for row in rows_of(tables, name)]
    return sorted(_released(name, texts), key=_age)


def named_versions(tables: Tables, name: str) -> list[Version]:
    """The known versions, and those that other rows need, ascending."""
    needed = (spec for row in tables.releases for key, spec in row.needs.items() if canonical(key) == name)
    return sorted({*known_versions(tables, name), *_released(name, needed)}, key=_age)


def _released(name: str, texts: Iterable[str]) -> set[Version]:
    """The versions that specifiers name and admit, with as many numbers as people write: JetPack 6.1 for 6.1.0."""
    numbering = scheme(name)
    bounds = {bound for text in texts for bound in parse_specifier(text).bounds if _is_release(bound)}
    return {
        Version(_shortened(bound.numbers, numbering.numbers), post=bound.post, scheme=numbering) for bound in bounds
    }


def _shortened(numbers: tuple[int, ...], least: int) -> tuple[int, ...]:
    while len(numbers) > least and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers


def _is_release(bound: Bound) -> bool:
    """Whether the version that a bound names is itself admitted by it."""
    return bound.operator in ("==", ">=", "<=")


def _age(version: Version) -> tuple[tuple[int, ...], int]:
    return version.numbers, -1 if version.post is None else version.post


def _index(tables: Tables) -> _Index:
    if not _latest or _latest[0].tables is not tables:
        _latest[:] = [_read(tables)]
    return _latest[0]


def _read(tables: Tables) -> _Index:
    rows: dict[str, list[ReleaseRow]] = defaultdict(list)
    names = set(_NAMED_ELSEWHERE)
    for row in tables.releases:
        name = canonical(row.name)
        rows[name].append(row)
        names.update((name, *map(canonical, row.needs), *map(canonical, row.bundles)))
    return _Index(tables, dict(rows), frozenset(names))
