"""Facts in warnings and errors of PyTorch and of libraries that are built on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from envcheck.importers.kit.assemble import NAMED
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, joined, with_environment
from envcheck.snapshot import Driver, Framework, Gpu, Listing, Snapshot
from envcheck.versions import CudaVersion

NAME = "PyTorch's messages"
RANK = Rank.MESSAGE

_TARGET = r"(?:sm|compute)_[0-9]{2,3}[af]?"
_VERSION = r"[0-9]{1,2}\.[0-9]{1,3}[0-9A-Za-z.+_-]{0,60}"

_CAPABILITY = " with CUDA capability sm_"
_INCOMPATIBLE = re.compile(r"([0-9]{1,2})([0-9]) is not compatible")
_LONGEST_NAME, _MOST_CODE = 80, 40
_SUPPORTS = re.compile(rf"install supports CUDA capabilities ({_TARGET}(?: {_TARGET}){{0,40}})")
_FOUND_GPU = re.compile(
    r"Found GPU[0-9]{1,3} (\S.{1,80}?) which is of (?:cuda|compute) capability (?:\(CC\) )?([0-9]{1,2}\.[0-9])"
)
_BUILT_FOR_CODE = re.compile(r"- ([0-9]{1,2})\.([0-9]) which supports hardware CC\b")
"""A line of the list in which PyTorch 2.10 and newer tell the code of the build."""
_OLD_DRIVER = re.compile(r"driver on your system is too old \(found version ([0-9]{4,5})\)")
_BUILT_FOR = re.compile(rf"PyTorch {_VERSION}(?: with CUDA [0-9]{{2,5}})? \(you have ({_VERSION})\)")
_RUNS_ON = re.compile(r"Python\s{1,4}[0-9.]{3,10} \(you have ([0-9.]{3,10})\)")
_TOOLKIT_MISMATCH = re.compile(r"mismatches the version that was used to compile PyTorch \(([0-9]{1,2}\.[0-9]{1,2})\)")
_CONFIG = "PyTorch built with:"
_OF_CONFIG = re.compile(
    r"\s{0,8}- (?:CUDA Runtime (?P<cuda>[0-9]{1,2}\.[0-9]{1,2})$|NVCC architecture flags: (?P<flags>\S.{1,4000}))"
)
_FLAG = re.compile(r"\bcode=(sm_[0-9]{2,3}[af]?|compute_[0-9]{2,3})")


def read(paste: Paste) -> Snapshot:
    parts = [part for line in paste.statements for reader in _READERS if (part := reader(line))]
    if code := _listed_code(paste):
        parts.append(_torch(gpu_code=code))
    if _CONFIG in paste.text:
        parts.extend(_of_config(paste))
    return joined(parts)


def _of_config(paste: Paste) -> Iterator[Snapshot]:
    """What ``torch.__config__.show()`` tells of the build; reports of OpenMMLab and Detectron2 end with it."""
    for found in filter(None, map(_OF_CONFIG.match, paste.lines)):
        code = tuple(dict.fromkeys(_FLAG.findall(found["flags"] or "")))[:_MOST_CODE]
        yield _torch(cuda=found["cuda"]) if found["cuda"] else _torch(gpu_code=code or None)


def _listed_code(paste: Paste) -> tuple[str, ...]:
    """The code of the build where the warning has a line for each."""
    found = (_BUILT_FOR_CODE.search(line) for line in paste.statements if "supports hardware CC" in line)
    return tuple(f"sm_{match[1]}{match[2]}" for match in found if match)[:_MOST_CODE]


def _torch(*, version: str | None = None, cuda: str | None = None, gpu_code: tuple[str, ...] | None = None) -> Snapshot:
    torch = Framework(source=SOURCE, name="torch", version=version, cuda=cuda, gpu_code=gpu_code)
    return with_environment(environment(frameworks=(torch,)))


def _named_gpu(name: str, capability: str) -> Snapshot:
    gpu = Gpu(source=SOURCE, label=f"{NAMED}{name}", name=name, compute_capability=capability)
    return Snapshot(gpus=Listing(items=(gpu,)))


def _incompatible_gpu(line: str) -> Snapshot | None:
    before, _, after = line.partition(_CAPABILITY)
    found = _INCOMPATIBLE.match(after)
    name = before.rpartition(": ")[2].strip()
    return _named_gpu(name, f"{found[1]}.{found[2]}") if found and 0 < len(name) <= _LONGEST_NAME else None


def _found_gpu(line: str) -> Snapshot | None:
    found = _FOUND_GPU.search(line) if "which is of c" in line else None
    return _named_gpu(found[1], found[2]) if found else None


def _supported_code(line: str) -> Snapshot | None:
    found = _SUPPORTS.search(line)
    return _torch(gpu_code=tuple(found[1].split())) if found else None


def _old_driver(line: str) -> Snapshot | None:
    """The driver's CUDA version, as ``cuDriverGetVersion`` returned it."""
    found = _OLD_DRIVER.search(line)
    return Snapshot(driver=Driver(source=SOURCE, cuda=str(CudaVersion.decode(int(found[1]))))) if found else None


def _built_for_another(line: str) -> Snapshot | None:
    """The facts in xFormers' message: it names the installed torch and Python after those it was built for."""
    if "(you have" not in line:
        return None
    found, python = _BUILT_FOR.search(line), _RUNS_ON.search(line)
    if python:
        return with_environment(environment(python=python[1]))
    return _torch(version=found[1]) if found else None


def _toolkit_mismatch(line: str) -> Snapshot | None:
    found = _TOOLKIT_MISMATCH.search(line)
    return _torch(cuda=found[1]) if found else None


def _no_runtime(line: str) -> Snapshot | None:
    """What torch prints where ``torch.cuda.is_available()`` is False, as it builds or loads something."""
    if "No CUDA runtime is found, using CUDA_HOME=" not in line and "on a CUDA device but torch.cuda" not in line:
        return None
    torch = Framework(source=SOURCE, name="torch", gpu_available=False)
    return with_environment(environment(frameworks=(torch,)))


_READERS: tuple[Callable[[str], Snapshot | None], ...] = (
    _incompatible_gpu,
    _found_gpu,
    _supported_code,
    _old_driver,
    _built_for_another,
    _toolkit_mismatch,
    _no_runtime,
)
