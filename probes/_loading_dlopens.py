"""What NVIDIA's libraries load by name once they are called, which nothing in their dynamic section tells.

Seen with LD_DEBUG and in the libraries' own texts (CUDA 12.8 and 13.0, cuDNN 9.10). cuDNN tries the full version of a
sub-library first, then shorter ones.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ._links import folder_names
from ._loading_steps import Ask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._env_site import Site
    from ._loading import Image, Process

_CUDNN_PARTS = {
    "cudnn": ("graph", "ops", "cnn", "adv"),
    "cudnn_graph": ("heuristic", "engines_precompiled", "engines_runtime_compiled"),
}
_CUDNN_8_PARTS = ("ops_infer", "ops_train", "cnn_infer", "cnn_train", "adv_infer", "adv_train")
_DRIVER = {"cudart": ("libcuda.so.1",), "nccl": ("libcuda.so.1", "libnvidia-ml.so.1")}
_NUMBERED = re.compile(r"\.so\.(\d+(?:\.\d+)*)$")
_SONAME = re.compile(r"lib(\w+)(?:[-.][0-9a-f]{8})?\.so\.(\d+)")
"""With the mark that those who copy a library into a wheel put into its name."""


def asks_of(process: Process, image: Image, site: Site) -> Iterator[Ask]:
    """What a loaded library will ask for itself."""
    soname = image.head.soname or os.path.basename(image.path)
    match = _SONAME.match(soname)
    if match is None:
        return
    family, major = match[1], match[2]
    for name in _DRIVER.get(family, ()):
        yield Ask((name,), by=image.path, optional=True)
    if family == "nvrtc":
        yield from _builtins(process, image, site)
    parts = _CUDNN_PARTS.get(family, ())
    if family == "cudnn" and major == "8":
        parts = _CUDNN_8_PARTS
    for part in parts:
        names = [f"libcudnn_{part}.so.{version}" for version in _shorter(_version(process, image, site), major)]
        yield Ask(tuple(names), by=image.path, optional=False)


def _shorter(version: str | None, major: str) -> list[str]:
    """``9.10.2``, ``9.10``, ``9``."""
    numbers = version.split(".")[:3] if version else [major]
    return [".".join(numbers[:count]) for count in range(len(numbers), 0, -1)] if numbers[0] == major else [major]


def _version(process: Process, image: Image, site: Site) -> str | None:
    """The version by the file's own name, else by the wheel that keeps its libraries in this folder."""
    real = process.search.real(image.path)
    match = _NUMBERED.search(real)
    if match and "." in match[1]:
        return match[1]
    if not any(real.startswith(f"{process.search.real(folder)}/") for folder in site.folders):
        return None
    wheels = [item["version"] for item in site.distributions if item["name"].startswith("nvidia-cudnn-cu")]
    return str(wheels[0]) if len(wheels) == 1 else None


def _builtins(process: Process, image: Image, site: Site) -> Iterator[Ask]:
    """NVRTC asks for the builtins of its own release, of which its file name or its folder tells."""
    folder, name = os.path.split(process.search.real(image.path))
    match = re.search(r"\.so\.(\d+\.\d+)\.", name)
    found = [
        name for name in folder_names(site.request, folder)[0] if re.fullmatch(r"libnvrtc-builtins\.so\.\d+\.\d+", name)
    ]
    if match:
        yield Ask((f"libnvrtc-builtins.so.{match[1]}",), by=image.path, optional=False)
    elif len(found) == 1:
        yield Ask((found[0],), by=image.path, optional=False)
