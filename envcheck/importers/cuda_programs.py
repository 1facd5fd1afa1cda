"""What programs print of CUDA where they run: ``cupy.show_config()``, ``numba -s``, ``deviceQuery``, Paddle's log, and
llama.cpp's ``system_info``.

The CUDA of the driver is the newest that it supports. Of llama.cpp's ``ARCHS`` nobody knows which are native, so each
counts as PTX.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.importers.kit.assemble import NAMED
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, joined, with_environment
from envcheck.importers.kit.stated_libraries import stated_cudnn
from envcheck.snapshot import Driver, Framework, Gpu, Listing, Snapshot

NAME = "CUDA programs"
RANK = Rank.MESSAGE

_CUDA = r"(?P<{}>[0-9]{{4,5}}|[0-9]{{1,2}}\.[0-9]{{1,2}})(?![\w.])"
_DRIVER = re.compile(rf"CUDA Driver Version(?: / Runtime Version)?\s{{0,40}}:?\s{{1,20}}{_CUDA.format('driver')}")
_BUILD = re.compile(rf"CUDA Build Version\s{{1,40}}: {_CUDA.format('build')}")
_RUNTIME = re.compile(rf"CUDA Runtime Version\s{{1,40}}: {_CUDA.format('runtime')}")
_NVRTC = re.compile(r"NVRTC Version\s{1,40}: \((?P<major>[0-9]{1,2}), (?P<minor>[0-9]{1,2})\)")
_CUPY = re.compile(r"CuPy Version\s{1,40}: (?P<version>[0-9]{1,2}\.[0-9]{1,2}[\w.]{0,20})")
_DEVICE = re.compile(r"Device [0-9]{1,3} Name\s{1,40}: (?P<name>\S.{2,60})$")
_ARCHS = re.compile(r"\bARCHS = (?P<archs>[0-9]{3,4}(?:,[0-9]{3,4}){0,40})")
_PADDLE = re.compile(
    r"device: [0-9]{1,3}, (?:GPU Compute|CUDA) Capability: [0-9]{1,2}\.?[0-9], "
    r"Driver API Version: (?P<driver>[0-9]{1,2}\.[0-9]{1,2}), Runtime API Version: (?P<runtime>[0-9]{1,2}\.[0-9]{1,2})"
)
_PADDLES_CUDNN = re.compile(r"\bdevice: [0-9]{1,3}, cuDNN Version: (?P<cudnn>[0-9]{1,2}\.[0-9]{1,2})")
_OF_NUMBA = "__CUDA Information__"
_LONGEST_LINE = 600


def read(paste: Paste) -> Snapshot:
    return joined(_facts(paste))


def _facts(paste: Paste) -> Iterator[Snapshot]:
    cupy = next((found["version"] for line in paste.statements if (found := _CUPY.match(line.strip()))), None)
    of_numba = _OF_NUMBA in paste.text
    for line in paste.statements:
        text = line.strip()[:_LONGEST_LINE]
        if "CUDA" in text and (found := _DRIVER.match(text)):
            yield Snapshot(driver=Driver(source=SOURCE, cuda=_version(found["driver"])))
        elif cupy and (found := _BUILD.match(text)):
            yield _framework("cupy", version=cupy, cuda=_version(found["build"]))
        elif cupy and (found := _NVRTC.match(text)):
            yield _framework("cupy", compiles_with={"nvrtc": f"{found['major']}.{found['minor']}"})
        elif of_numba and (found := _RUNTIME.match(text)):
            yield _framework("numba", cuda=_version(found["runtime"]))
        elif cupy and (found := _DEVICE.match(text)):
            gpu = Gpu(source=SOURCE, label=f"{NAMED}{found['name']}", name=found["name"])
            yield Snapshot(gpus=Listing(items=(gpu,)))
        elif "API Version" in text and (found := _PADDLE.search(text)):
            yield Snapshot(driver=Driver(source=SOURCE, cuda=found["driver"]))
            yield _framework("paddlepaddle-gpu", cuda=found["runtime"])
        elif "cuDNN Version" in text and (found := _PADDLES_CUDNN.search(text)):
            yield Snapshot(libraries=Listing(items=(stated_cudnn(found["cudnn"]),)))
        elif "ARCHS" in text and (found := _ARCHS.search(text)):
            code = tuple(f"compute_{int(arch) // 10}" for arch in found["archs"].split(","))
            yield _framework("llama.cpp", gpu_code=code)


def _framework(name: str, **facts: object) -> Snapshot:
    return with_environment(environment(frameworks=(Framework(source=SOURCE, name=name, **facts),)))  # type: ignore[arg-type]


def _version(text: str) -> str:
    """``12.2`` of ``12020``, as CUDA's functions give it, or of ``12.2``."""
    return text if "." in text else f"{int(text) // 1000}.{int(text) % 1000 // 10}"
