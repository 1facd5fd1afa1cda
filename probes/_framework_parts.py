"""The compiled parts of a framework: what they hold and ask for, told by the files themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._elf_constants import constants
from ._loading_steps import Ask
from ._torch_loading import torch_of

if TYPE_CHECKING:
    from ._env_site import Gathered
    from ._framework_here import Here
    from ._loading_steps import Preload

_FIELDS = {"cudart": "cuda", "cublas": "cuda", "cudnn": "cudnn", "nvinfer": "tensorrt"}
_NUMBERED = re.compile(rf"lib({'|'.join(_FIELDS)})(?:[-.][0-9a-f]{{8}})?\.so\.(\d{{1,2}})(?:\.\d+)*")
_CUDA = re.compile(r"lib(?:cuda|cudart|cublas|cudnn|cufft|curand|cusolver|cusparse|nccl|nvrtc|nvinfer)\b")
_OPENED = re.compile(rb"lib(?:cuda|cublas|cublasLt|cudnn|nccl|nvrtc|curand|cufft)\.so\.\d{1,2}(?:\.\d)?")
_NAME_LIMIT = 64


def add_parts(
    facts: Gathered,
    here: Here,
    parts: Sequence[str],
    *,
    preloads: Sequence[Preload] = (),
    asks: Sequence[Ask] = (),
    extends: Sequence[str] = (),
) -> None:
    """What ``parts`` (in the order in which they are loaded) hold and need; an empty list where there are none."""
    if here.path is None:
        return
    if not parts:
        facts.add(f"file {here.path}", binaries=[])
        return
    from ._framework_binary import examined

    said = examined(here.site, list(parts), preloads=preloads, asks=asks, extends=extends)
    facts.add(f"elf {here.path}", **said)


def add_torch_extension(
    facts: Gathered, here: Here, parts: Sequence[str], *, preloads: Sequence[Preload] = (), asks: Sequence[Ask] = ()
) -> None:
    """The same of an extension of PyTorch, which is loaded into a process that has imported torch."""
    torch = torch_of(here.site)
    add_parts(facts, here, parts, preloads=(*torch.preloads, *preloads), asks=asks, extends=torch.parts)


def cuda_by_loads(facts: Gathered) -> None:
    """The major versions of CUDA and of what belongs to it, by the libraries that the parts ask for."""
    for load in facts.known("loads") or ():
        match = _NUMBERED.fullmatch(load["name"])
        if match:
            facts.add(load["source"], **{_FIELDS[match[1]]: match[2]})


def asks_for_cuda(facts: Gathered) -> bool | None:
    """Whether the parts ask for CUDA or hold code for it; None where they could not be looked at."""
    if facts.known("loads") is None and facts.known("gpu_code") is None:
        return None
    named = any(_CUDA.match(load["name"]) for load in facts.known("loads") or ())
    return named or bool(facts.known("gpu_code"))


def asked_by_name(here: Here, path: str) -> list[Ask]:
    """The libraries of CUDA whose whole file names stand among the constants of a part: its code opens them."""
    data, names = constants(here.site.request, path) or b"", dict[str, None]()
    at = data.find(b".so.")  # a search for what is rare: the constants of a library are many megabytes
    while at >= 0:
        start, end = data.rfind(b"\0", max(0, at - _NAME_LIMIT), at) + 1, data.find(b"\0", at, at + _NAME_LIMIT)
        if _OPENED.fullmatch(data, start, max(start, end)):
            names[data[start:end].decode()] = None
        at = data.find(b".so.", at + 1)
    return [Ask((name,), by=path.rpartition("/")[2]) for name in names]
