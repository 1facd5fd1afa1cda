"""ONNX Runtime: several distributions that all fill the package ``onnxruntime``, one over the other.

Contents of Linux wheels (onnxruntime, -gpu and -openvino, 1.11 to 1.31): ``capi/onnxruntime_pybind11_state*.so``
decides which execution providers there are; a provider for a GPU is a library of its own,
``libonnxruntime_providers_cuda.so`` (from 1.31 on the CUDA one may also be a plug-in), which needs
``libonnxruntime_providers_shared.so`` and CUDA's libraries. ``capi/build_and_package_info.py`` (not in every release:
absent from 1.18.0, say) assigns ``package_name``, ``__version__`` and ``cuda_version``. Where a CPU and a GPU
distribution were installed over each other, both their names stand in the metadata, and which of them the files are
of, their sizes tell. Before 1.14 ``capi/_ld_preload.py`` loads CUDA's libraries by name. Later releases load nothing
themselves: without ``preload_dlls()`` or an imported PyTorch, NVIDIA's wheels are not found.
"""

from __future__ import annotations

import re
from typing import Any

from ...common.lazy import lazy_pattern
from ..installations.catalog import FrameworkEntry
from ..installations.package import assigned, cuda_version, locate, version
from ..installations.parts import add_parts, cuda_by_loads
from ..loader.script import OpenByName, Preload
from ..python.site import Site

_INFO = "capi/build_and_package_info.py"
_PROVIDER = lazy_pattern(r"libonnxruntime_providers_([a-z0-9_]{2,30})\.so")
_PROVIDERS = {
    "cuda": "CUDA", "tensorrt": "TensorRT", "nv_tensorrt_rtx": "NvTensorRTRTX", "openvino": "OpenVINO", "rocm": "ROCM",
    "migraphx": "MIGraphX", "cann": "CANN", "qnn": "QNN", "vitisai": "VitisAI", "dnnl": "Dnnl",
}  # fmt: skip
_ON_NVIDIA = frozenset({"CUDA", "TensorRT", "NvTensorRTRTX"})
_ON_OTHERS = frozenset({"ROCM", "MIGraphX"})
_NAMED = lazy_pattern(r"""CDLL\(\s*["'](lib[\w.+-]{2,60}\.so[.0-9]{0,12})["']""")
_GPU_BUILD = lazy_pattern(r"onnxruntime-gpu|ort-(?:nightly-)?gpu|onnxruntime-training")


def read(site: Site, entry: FrameworkEntry) -> list[dict[str, Any]]:
    """The ONNX Runtime that ``import onnxruntime`` would take."""
    here = locate(site, "onnxruntime", entry.distributions.split())
    if here is None:
        return []
    info = here.text(_INFO) or ""
    named = assigned(info, "package_name")
    name = named if isinstance(named, str) and re.fullmatch(r"[a-z0-9-]{2,60}", named) else None
    state = here.files(r"onnxruntime_pybind11_state\b.*\.so", "capi")
    wheel = here.brought_by(next(iter(state), None), name)
    facts = here.gather(wheel["name"] if wheel else name or "onnxruntime")
    stated = version(assigned(info, "__version__"))
    facts.add(f"file {here.path}/{_INFO}", version=stated, cuda=cuda_version(assigned(info, "cuda_version")))
    if wheel:
        facts.add(wheel["source"], version=wheel["version"])
    here.add_declared(facts)
    if "capi" in here.names():
        found = (_PROVIDER.fullmatch(name) for name in sorted(here.names("capi")))
        providers = [_PROVIDERS.get(match[1], match[1]) for match in found if match and match[1] != "shared"]
        left_over = facts.known("name") == "onnxruntime" and len(here.wheels) > 1
        on_gpu = bool(set(providers) & (_ON_NVIDIA | _ON_OTHERS)) and not left_over
        facts.add(f"file {here.path}/capi", providers=[*providers, "CPU"], cpu_only=not on_gpu)
    elif here.wheel and _GPU_BUILD.match(here.wheel["name"]):  # the name counts only if no file is visible
        facts.add(here.wheel["source"], cpu_only=False)
    if re.search(r"^def preload_dlls\(", here.text("__init__.py") or "", re.MULTILINE):  # from 1.21 on
        facts.add(f"file {here.path}/__init__.py", preload_call="onnxruntime.preload_dlls()")
    shared = here.files(r"libonnxruntime_providers_shared\.so", "capi")
    libraries = here.files(r"libonnxruntime_providers_(?:cuda|tensorrt|nv_tensorrt_rtx)\.so", "capi")
    if facts.known("cpu_only"):
        libraries = []
    preloads = [Preload((each,)) for each in dict.fromkeys(_NAMED.findall(here.text("capi/_ld_preload.py") or ""))]
    required = [path for path in libraries if "tensorrt" not in path]
    asks = [OpenByName((path,), by=None) for path in libraries if path not in required]
    add_parts(facts, here, [*state, *(shared if libraries else []), *required], preloads=preloads, asks=asks)
    cuda_by_loads(facts)
    wheels = tuple(sorted(here.wheels, key=lambda each: each is not wheel))  # its own first
    wrong = here._replace(wheels=wheels).problems(stated, _INFO, ("capi",))
    if wheel and len({each["name"] for each in wheels}) > 1:
        others = ", ".join(f"{each['name']} {each['version']}" for each in here.wheels if each is not wheel)
        own = f"{wheel['name']} {wheel['version']}"
        wrong.append(f"{others} was installed into the same package; the files there are of {own}")
    return [facts.record(wrong)]
