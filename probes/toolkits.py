"""Every CUDA toolkit on disk, with or without a compiler."""

from __future__ import annotations

import os
import re

from .common.out import Out, clean
from .common.record import Found, record
from .common.tree import Tree
from .files.owners.claims import DEBIAN, header_places, version

PROBE = {"title": "CUDA toolkits on disk", "seconds": 10.0, "fills": ["toolkits"]}

_PLACES = ("/usr/local/cuda*", "/opt/cuda*", "/opt/nvidia/hpc_sdk/*/*/cuda/*")
_HOMES = ("CUDA_HOME", "CUDA_PATH")

_DEBIAN_FACES = frozenset({"/usr", "/usr/lib/cuda"})
"""Other folders through which Debian's package looks like a toolkit of the usual layout."""

_SIGNS = ("version.json", "version.txt", "lib64/libcudart.so.*", "lib/libcudart.so.*", "targets/*/lib/libcudart.so.*")
"""Any of these, a compiler or a header makes a folder a toolkit."""


def collect(tree: Tree, out: Out) -> None:
    """Send the ``toolkits`` found in the usual places, through the variables and through PATH."""
    variables = tree.variables
    compiler = _compiler_on_path(tree)
    homes = {_toolkit_of(tree, value) for name in _HOMES if (value := variables.get(name, "")).startswith("/")}
    found: dict[str, list[str]] = {}
    folder, inner = os.path.split(os.path.dirname(compiler or ""))
    on_path = _toolkit_of(tree, folder or "/") if inner == "bin" else None
    named = [value for name in (*_HOMES, "CONDA_PREFIX") if (value := variables.get(name, "")).startswith("/")]
    usual = [place for pattern in _PLACES for place in tree.expand(pattern)]
    for place in (*usual, DEBIAN, "/usr/lib/cuda", *named, *([on_path] if on_path else [])):
        top = _toolkit_of(tree, place)
        if top is None:
            continue
        compiles = tree.is_file(f"{top}/bin/nvcc") or any(tree.expand(header) for header in header_places(top))
        if compiles or (not _is_conda(tree, top) and any(tree.expand(f"{top}/{sign}") for sign in _SIGNS)):
            aliases = found.setdefault(top, [])
            if place not in (top, *aliases, *_DEBIAN_FACES):
                aliases.append(place)
    items = []
    for top, aliases in found.items():
        stated = version(tree, top)
        compiler = f"{top}/bin/nvcc"
        here = f"file {clean(top)}"
        origin = "wheel" if {"site-packages", "dist-packages"} & set(top.split("/")) else "system"
        item = record(
            path=Found(clean(top), here),
            version=Found(stated.value, clean(stated.source)) if stated else None,
            nvcc=Found(clean(compiler), here) if tree.is_file(compiler) else None,
            on_path=Found(top == on_path if variables else None, "variables"),
            cuda_home=Found(top in homes if variables else None, "variables"),
            origin=Found("conda" if _is_conda(tree, top) else origin, here),
            aliases=Found([clean(alias) for alias in aliases], here) if aliases else None,
        )
        items.append(item)
    certain = all(tree.folder_names(place)[1] for place in ("/usr/local", "/opt"))
    out.fact({"toolkits": {"items": items, "complete": certain}})
    tree.report_unreadable(out)
    if not items:
        out.absent("no CUDA toolkit on disk")


def _toolkit_of(tree: Tree, place: str) -> str | None:
    """The real folder of the toolkit that ``place`` shows, or None when there is no such folder."""
    real = tree.resolve(place)
    if real is None or not tree.is_folder(real):
        return None
    return DEBIAN if real in _DEBIAN_FACES and tree.resolve(DEBIAN) else real


def _is_conda(tree: Tree, folder: str) -> bool:
    """A conda environment: it is a toolkit when it can compile, not by the run-time libraries of its packages."""
    return tree.resolve(f"{folder}/conda-meta") is not None


def _compiler_on_path(tree: Tree) -> str | None:
    """Real path of the first nvcc on PATH, or of the one that a script of that name starts."""
    for folder in tree.variables.get("PATH", "").split(":"):
        real = tree.resolve(f"{folder}/nvcc") if folder.startswith("/") else None
        if real is None or os.path.basename(real) != "nvcc":  # a compiler cache puts a link to itself there
            continue
        start = tree.read_bytes(real, 4096) or b""
        if start.startswith(b"\x7fELF"):
            return real
        named = re.search(r"(?<![\w./$}])(/[\w./+-]+/bin/nvcc)\b", start.decode("utf-8", "replace"))
        started = tree.resolve(named.group(1)) if start.startswith(b"#!") and named else None
        if started:
            return started
    return None
