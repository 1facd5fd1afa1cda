"""Every CUDA toolkit on disk, with or without a compiler."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from .kit.links import expand, folder_names, is_file, resolve
from .kit.reading import Out, Request, below, clean, read_bytes, tell_unreadable
from .kit.record import Found, record
from .owners.toolkit import header_places, version

PROBE = {
    "title": "CUDA toolkits on disk",
    "kind": "file",
    "early": False,
    "seconds": 10.0,
    "uses": "files",
    "scopes": ["node", "container", "env"],
    "fills": ["toolkits"],
}

_PLACES = ("/usr/local/cuda*", "/opt/cuda*", "/opt/nvidia/hpc_sdk/*/*/cuda/*")
_HOMES = ("CUDA_HOME", "CUDA_PATH")

_DEBIAN = "/usr/lib/nvidia-cuda-toolkit"
_DEBIAN_FACES = frozenset({"/usr", "/usr/lib/cuda"})
"""Other folders through which Debian's package looks like a toolkit of the usual layout."""

_SCRIPT_LIMIT = 4096
_NVCC_IN_SCRIPT = re.compile(r"(?<![\w./$}])(/[\w./+-]+/bin/nvcc)\b")

_SIGNS = ("version.json", "version.txt", "lib64/libcudart.so.*", "lib/libcudart.so.*", "targets/*/lib/libcudart.so.*")
"""Any of these, a compiler or a header makes a folder a toolkit."""


def collect(request: Request, out: Out) -> None:
    """Send the ``toolkits`` found in the usual places, through the variables and through PATH."""
    variables = request.get("variables") or {}
    compiler = _compiler_on_path(request)
    homes = {_toolkit_of(request, value) for name in _HOMES if (value := variables.get(name, "")).startswith("/")}
    found: dict[str, list[str]] = {}
    for place in _candidates(request, compiler):
        folder = _toolkit_of(request, place)
        if folder and _is_toolkit(request, folder):
            aliases = found.setdefault(folder, [])
            if place not in (folder, *aliases, *_DEBIAN_FACES):
                aliases.append(place)
    on_path = _folder_of(request, compiler) if compiler else None
    known = bool(variables)
    items = [
        _toolkit(
            request,
            folder,
            aliases,
            on_path=folder == on_path if known else None,
            cuda_home=folder in homes if known else None,
        )
        for folder, aliases in found.items()
    ]
    certain = all(folder_names(request, place)[1] for place in ("/usr/local", "/opt"))
    out.fact({"toolkits": {"items": items, "complete": certain}})
    tell_unreadable(request, out)
    if not items:
        out.absent("no CUDA toolkit on disk")


def _candidates(request: Request, compiler: str | None) -> Iterator[str]:
    variables = request.get("variables") or {}
    for pattern in _PLACES:
        yield from expand(request, pattern)
    yield from (_DEBIAN, "/usr/lib/cuda")
    yield from (value for name in (*_HOMES, "CONDA_PREFIX") if (value := variables.get(name, "")).startswith("/"))
    folder = _folder_of(request, compiler) if compiler else None
    if folder:
        yield folder


def _toolkit_of(request: Request, place: str) -> str | None:
    """The real folder of the toolkit that ``place`` shows, or None when there is no such folder."""
    real = resolve(request, place)
    if real is None or not os.path.isdir(below(request, real)):
        return None
    return _DEBIAN if real in _DEBIAN_FACES and resolve(request, _DEBIAN) else real


def _is_toolkit(request: Request, folder: str) -> bool:
    if is_file(request, f"{folder}/bin/nvcc") or any(expand(request, place) for place in header_places(folder)):
        return True
    return not _is_conda(request, folder) and any(expand(request, f"{folder}/{sign}") for sign in _SIGNS)


def _is_conda(request: Request, folder: str) -> bool:
    """A conda environment: it is a toolkit when it can compile, not by the run-time libraries of its packages."""
    return resolve(request, f"{folder}/conda-meta") is not None


def _toolkit(
    request: Request, folder: str, aliases: list[str], *, on_path: bool | None, cuda_home: bool | None
) -> dict[str, Any]:
    told = version(request, folder)
    compiler = f"{folder}/bin/nvcc"
    here = f"file {clean(folder)}"
    return record(
        path=Found(clean(folder), here),
        version=Found(told.value, clean(told.source)) if told else None,
        nvcc=Found(clean(compiler), here) if is_file(request, compiler) else None,
        on_path=Found(on_path, "variables"),
        cuda_home=Found(cuda_home, "variables"),
        origin=Found(_origin(request, folder), here),
        aliases=Found([clean(alias) for alias in aliases], here) if aliases else None,
    )


def _origin(request: Request, folder: str) -> str:
    if _is_conda(request, folder):
        return "conda"
    return "wheel" if {"site-packages", "dist-packages"} & set(folder.split("/")) else "system"


def _compiler_on_path(request: Request) -> str | None:
    """Real path of the first nvcc on PATH, or of the one that a script of that name starts."""
    for folder in (request.get("variables") or {}).get("PATH", "").split(":"):
        real = resolve(request, f"{folder}/nvcc") if folder.startswith("/") else None
        if real is None or os.path.basename(real) != "nvcc":  # a compiler cache puts a link to itself there
            continue
        start = read_bytes(request, real, _SCRIPT_LIMIT) or b""
        if start.startswith(b"\x7fELF"):
            return real
        named = _NVCC_IN_SCRIPT.search(start.decode("utf-8", "replace"))
        started = resolve(request, named.group(1)) if start.startswith(b"#!") and named else None
        if started:
            return started
    return None


def _folder_of(request: Request, compiler: str) -> str | None:
    folder, inner = os.path.split(os.path.dirname(compiler))
    return _toolkit_of(request, folder or "/") if inner == "bin" else None
