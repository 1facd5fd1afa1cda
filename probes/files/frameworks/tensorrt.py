"""TensorRT, and its lean and dispatch runtimes.

Contents of wheels (8.5.3.1, 8.6.1, 10.3 and 11.4): 8.5 keeps bindings and libraries in ``tensorrt/``; from 8.6 on
``tensorrt/`` only passes on to ``tensorrt_bindings/`` (``tensorrt.so``), and ``tensorrt_libs/`` holds
``libnvinfer.so.10`` and its kin, whose kernels for each GPU lie in ``libnvinfer_builder_resource_sm90.so.…``. The
names of the distributions end in the CUDA major: ``tensorrt-cu12-libs``. ``__init__.py`` of the bindings assigns
``__version__``; that of the libraries loads all of ``nvidia/cuda_runtime/lib`` and the like (``os.path.join("nvidia",
"cuda_runtime")``), then all of its own.
"""

from __future__ import annotations

import re
from typing import Any

from ...common.lazy import lazy_pattern
from ..installations.catalog import FrameworkEntry
from ..installations.package import TEXT_LIMIT, locate
from ..installations.parts import add_parts
from ..loader.script import Preload
from ..python.distributions import cuda_major
from ..python.site import Site

_SUFFIX = lazy_pattern(r"-cu(\d{2})(?:-|$)")
_LIBRARY = {"tensorrt": "nvinfer", "tensorrt_lean": "nvinfer_lean", "tensorrt_dispatch": "nvinfer_dispatch"}
_RESOURCE = lazy_pattern(r"libnvinfer_builder_resource_sm(\d{2,3}[af]?)\.so[.0-9]*")
_PTX = "libnvinfer_builder_resource_ptx"  # The resource with PTX, for more GPUs than the others list
_NEEDED = lazy_pattern(r"""os\.path\.join\(\s*["']nvidia["']\s*,\s*["'](\w{2,30})["']""")


def read(site: Site, entry: FrameworkEntry) -> list[dict[str, Any]]:
    """The installed ones of the three."""
    found = []
    for kind in ("tensorrt", "tensorrt_lean", "tensorrt_dispatch"):
        own = re.compile(r"(?:nvidia-)?{0}|{0}-cu\d{{2}}".format(kind.replace("_", "-")))
        here = locate(site, kind, [name for name in entry.distributions.split() if own.fullmatch(name)])
        if here is None:
            continue
        base = kind.replace("_", "-")
        name = here.wheel["name"] if here.wheel else base
        facts = here.gather(name)
        bindings = locate(site, f"{kind}_bindings", (f"{name}-bindings",)) or here
        bindings.add_stated_version(facts, "__init__.py")
        here.add_declared(facts)
        # The CUDA major version: from the names of its distributions, else from the wheels that they require.
        family = [item for item in site.distributions if item["name"] == base or item["name"].startswith(f"{base}-")]
        suffixes = {match[1]: item for item in family if (match := _SUFFIX.search(item["name"]))}
        if len(suffixes) == 1:
            major, item = suffixes.popitem()
            facts.add(item["source"], cuda=major)
        elif here.wheel and not suffixes:
            facts.add(here.wheel["source"], cuda=cuda_major(here.wheel.get("requires") or ()))
        libraries = locate(site, f"{kind}_libs", (f"{name}-libs",)) or bindings
        targets = {match[1] for each in libraries.names() if (match := _RESOURCE.fullmatch(each))}
        if targets and not any(each.startswith(_PTX) for each in libraries.names()):
            in_order = sorted(targets, key=lambda target: (int(target.rstrip("af")), target))
            facts.add(f"file {libraries.path}", gpu_code=[f"sm_{each}" for each in in_order])
        parts = [*libraries.files(rf"lib{_LIBRARY[kind]}\.so\.\d+"), *bindings.files(rf"{kind}\b.*\.so")]
        facts.add(f"file {libraries.path}", cpu_only=False)
        add_parts(facts, bindings, parts, preloads=tensorrt_preloads(site, kind))
        found.append(facts.record(here.problems()))
    return found


def tensorrt_preloads(site: Site, kind: str = "tensorrt") -> list[Preload]:
    """The libraries loaded before its bindings: all in some wheels' folders, then all of its own."""
    for folder in site.folders:
        own = next((name for name in (f"{kind}_libs", kind) if name in site.names(folder)), None)
        text = site.tree.read_text(f"{folder}/{own}/__init__.py", TEXT_LIMIT) if own else None
        if text is not None:
            places = [f"nvidia/{module}/lib" for module in dict.fromkeys(_NEEDED.findall(text))]
            return [Preload(("*.so*",), (place,), every=True) for place in [*places, own or ""]]
    return []
