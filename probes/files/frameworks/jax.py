"""JAX with jaxlib, and its CUDA plug-ins.

Contents of wheels (jax and jaxlib 0.4.35 and 0.12.0; plug-ins 0.4.23 to 0.12.0 for CUDA 12 and 13): ``version.py``
assigns ``_version`` and ``_release_version``. Since plug-ins exist, jaxlib has no GPU code; before, its version had a
label (``0.4.7+cuda11.cudnn86``). ``jax-cudaNN-plugin`` holds kernels and bindings, built for one jaxlib: JAX does
without a plug-in of another version. ``jax-cudaNN-pjrt`` holds the compiler,
``jax_plugins/xla_cudaNN/xla_cuda_plugin.so``. CUDA's major version is in the name; the extra ``with-cuda`` names
NVIDIA's wheels, and ``jax_plugins/xla_cudaNN/__init__.py`` loads theirs before any others: ``_load("cublas",
["libcublas.so.12", "libcublasLt.so.12"])``.
"""

from __future__ import annotations

import re
from typing import Any

from ...common.lazy import lazy_pattern
from ..installations.catalog import FrameworkEntry
from ..installations.package import TEXT_LIMIT, Installation, locate
from ..installations.parts import add_parts, unknown_flags
from ..loader.script import OpenByName, Preload
from ..python.distributions import libraries_of, relevant_lines
from ..python.site import Lack, Site

_OTHERS = lazy_pattern(r"jax-(?:rocm\d+-(?:plugin|pjrt)|oneapi-plugin|metal)|libtpu(?:-nightly)?")
_VERSION = ("version.py", "_release_version", "_version")
_COMPILER = "xla_cuda_plugin.so"


def read(site: Site, _entry: FrameworkEntry) -> list[dict[str, Any]]:
    """JAX, or jaxlib alone, and each CUDA plug-in."""
    plugins = [_read_plugin(site, major) for major in _majors(site)]
    jax, jaxlib = locate(site, "jax", ("jax",)), locate(site, "jaxlib", ("jaxlib",))
    here = jax or jaxlib
    if here is None:
        return plugins
    name = "jax" if jax else "jaxlib"
    facts = here.gather(name)
    stated = here.add_stated_version(facts, *_VERSION)
    here.add_declared(facts)
    if plugins:
        facts.add(plugins[0]["source"], cuda=plugins[0].get("cuda"), cpu_only=False)
    with_xla = jaxlib.files(r"[\w.-]+\.so") if jaxlib else []
    with_xla += [path for major in _majors(site) if (path := _compiler(site, major))]
    facts.add(f"file {here.path}", unknown_flags=unknown_flags(site.tree, with_xla))
    # A jaxlib from before plug-ins has CUDA itself; one without a local tag and without plug-ins has none.
    own = jaxlib.wheel if jaxlib else None
    match = re.search(r"\+cuda(\d{2})(?:\.cudnn(\d)(\d+))?", own["version"]) if own else None
    if own and match:
        cudnn = f"{match[2]}.{match[3]}" if match[2] else None
        facts.add(own["source"], cuda=match[1], cudnn=cudnn, cpu_only=False)
    elif jaxlib and jaxlib.conda and jaxlib.conda.cuda:
        facts.add(jaxlib.conda.source, cuda=jaxlib.conda.cuda, cpu_only=False)
    elif jaxlib and "cuda" not in jaxlib.names() and "version.py" in jaxlib.names():
        for_others = any(_OTHERS.fullmatch(item["name"]) for item in site.distributions)
        facts.add(f"file {jaxlib.path}", cpu_only=None if for_others else True)
    wrong = here.problems(stated, "version.py", ("version.py",))
    if jax and jaxlib is None:
        wrong.append(Lack("jaxlib, which it requires, is not installed"))
    return [facts.record(wrong), *plugins]


def _majors(site: Site) -> list[str]:
    """The CUDA major versions with a plug-in, or a part of one."""
    names = {item["name"] for item in site.distributions}
    found = {match[1] for name in names if (match := re.fullmatch(r"jax-cuda(\d{2})-plugin", name))}
    for folder in site.folders:
        listed = site.names(folder)
        found |= {match[1] for name in listed if (match := re.fullmatch(r"jax_cuda(\d{2})_plugin", name))}
        if "jax_plugins" in listed:
            inner = site.names(f"{folder}/jax_plugins")
            found |= {match[1] for name in inner if (match := re.fullmatch(r"xla_cuda(\d{2})", name))}
    return sorted(found)


def _read_plugin(site: Site, major: str) -> dict[str, Any]:
    name = f"jax-cuda{major}-plugin"
    here = locate(site, f"jax_cuda{major}_plugin", (name,)) or Installation(site, (), (), None)
    facts = here.gather(name, extends="jax")
    stated = here.add_stated_version(facts, *_VERSION)
    wheel = here.wheel
    here.add_declared(facts)
    source = wheel["source"] if wheel else f"file {here.path}"
    built = facts.known("version")
    facts.add(source, cuda=major, cpu_only=False, built_for={"jaxlib": built} if built else None)
    compiler = _compiler(site, major)
    lines = relevant_lines((wheel or {}).get("requires"))
    parts, by = here.files(r"[\w-]+\.so"), _COMPILER if compiler else None
    opened = [OpenByName(("libcuda.so.1",), by=by), *(OpenByName(names, by=by) for names in libraries_of(lines))]
    asks = [*([OpenByName((compiler,), optional=False)] if compiler else []), *opened]
    if compiler and parts:  # its own GPU code is that of the kernels beside it, and takes long to list
        facts.add(f"file {here.path}", binaries=[*parts, compiler])
    text = site.tree.read_text(f"{compiler.rpartition('/')[0]}/__init__.py", TEXT_LIMIT) or "" if compiler else ""
    preloads = [
        Preload((library,), (f"nvidia/{module}/lib",))
        for module, libraries in re.findall(r"""_load\(\s*["'](\w{2,30})["']\s*,\s*\[([^\]]{0,300})\]""", text)
        for library in re.findall(r"""["'](lib\w{2,40}\.so[.0-9]{0,10})["']""", libraries)
    ]
    add_parts(facts, here, parts, preloads=preloads, asks=asks)
    wrong = here.problems(stated, "version.py", ("version.py",))
    if compiler is None:
        wrong.append(f"jax_plugins/xla_cuda{major}/{_COMPILER}, which it requires, is missing")
    return facts.record(wrong)


def _compiler(site: Site, major: str) -> str | None:
    """XLA's compiler for CUDA, which the distribution ``jax-cudaNN-pjrt`` holds."""
    for folder in site.folders:
        path = f"{folder}/jax_plugins/xla_cuda{major}"
        if "jax_plugins" in site.names(folder) and _COMPILER in site.names(path):
            return f"{path}/{_COMPILER}"
    return None
